"""A client of version 2 alone, of the official TypeScript SDK, with agents that speak version 1 alone, through `antiphon bridge`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from antiphon.transports import tree
from tests.interop.environment import Environment, environment
from tests.interop.programs import PROGRAMS, all_programs
from tests.limits import limit
from tests.thirdparty.agents import BINARIES, BRIDGE, NODE
from tests.thirdparty.model import model, script
from tests.thirdparty.place import GRACE, place
from tests.waits import wait_until_gone

pytestmark = [pytest.mark.slow, pytest.mark.prove, pytest.mark.timeout(180)]

SUNG: Final = "Sung by two halves of a choir."
GEMINI: Final = BINARIES / "gemini"


class OldAgent(NamedTuple):
    """An agent of version 1, and the prompts that make it do something."""

    command: tuple[str, ...]
    on: Environment
    words: dict[str, str]


def words(write: str, path: str, allowed: Path, rejected: Path) -> dict[str, str]:
    """The prompts of an agent whose model plays a script, and whose tool for writing takes the path under this name."""
    asks = [
        script(["call", write, {path: str(file), "content": "la\n"}], ["say", "Done."]) for file in (allowed, rejected)
    ]
    return {
        "say": script(["say", SUNG]),
        "slow": script(["hold", "This goes on and on."]),
        "ask": asks[0],
        "ask_again": asks[1],
        "fail": script(["fail", 400]),
    }


@contextmanager
def kimi(path: Path) -> Iterator[OldAgent]:
    with place("kimi-code", path) as at:
        yield OldAgent(at.agent.command, at.on, words("Write", "path", at.folder / "one", at.folder / "two"))


@contextmanager
def gemini(path: Path) -> Iterator[OldAgent]:
    if not GEMINI.exists():
        pytest.skip("gemini-cli is not installed: npm could not install the agents of tests/thirdparty")
    with model() as listening, environment(path) as on:
        on.environment |= {
            "GEMINI_API_KEY": "no key",
            "GOOGLE_GEMINI_BASE_URL": listening.address.removesuffix("/v1"),
            "GEMINI_CLI_NO_RELAUNCH": "1",
            "GEMINI_TELEMETRY_ENABLED": "false",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "LOGIN": "gemini-api-key",
        }
        command = (str(NODE), str(GEMINI), "--acp")
        yield OldAgent(command, on, words("write_file", "file_path", on.folder / "one", on.folder / "two"))
        assert wait_until_gone(on.mark, GRACE), f"still running: {tree.processes_with(on.mark)}"


def steps(found: OldAgent) -> dict[str, Any]:
    """What the client saw of each step. What a step could not do is its error."""
    on = found.on
    on.environment |= {"WORDS": json.dumps(found.words), "PATIENCE": str(limit(1.0))}
    client = str(PROGRAMS / "typescript_client_v2.mjs")
    done = on.run([str(NODE), client, str(on.folder), *BRIDGE, *found.command], limit(60.0))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines, done.stderr
    return {line["step"]: line["detail"] if line["ok"] else line["detail"]["error"] for line in lines}


@pytest.mark.parametrize("agent", [kimi, gemini])
def test_a_client_of_version_2_uses_an_agent_of_version_1_through_a_bridge(agent: Any, tmp_path: Path) -> None:
    if missing := all_programs()["typescript"].missing:
        pytest.skip(f"TypeScript SDK {missing}")
    with agent(tmp_path) as found:
        seen = steps(found)
        assert (seen["initialize"]["version"], seen["initialize"]["session"]) == (2, True)
        assert seen["prompt"]["own"] and seen["prompt"]["said"] == SUNG
        assert seen["prompt"]["states"] == ["running", "end_turn"]
        assert seen["held"] == {"different": 2, "last": "end_turn"}
        asked = seen["permission"]
        assert asked["allowed"] == asked["rejected"] == ["running", "requires_action", "running", "end_turn"]
        assert (asked["asked"], asked["subject"]) == (1, "tool_call") and asked["title"]
        assert [(found.on.folder / name).exists() for name in ("one", "two")] == [True, False]
        assert seen["cancel_asking"]["states"] == ["running", "requires_action", "cancelled"]
        assert seen["cancel"]["states"] == ["running", "cancelled"]
        assert seen["resume_without_replay"]["replayed"] == 0
        assert seen["resume_without_replay"]["then"]["said"] == SUNG
        assert (seen["list"], seen["unknown"], seen["close"]) == ({"listed": True}, {"code": -32602}, {})
        if agent is gemini:
            assert "no such chord" in seen["fail"]["error"]
            return  # it does not find the sessions that it has stored, so there is nothing to replay
        assert seen["fail"]["states"] == ["running", "end_turn"]  # it is silent about errors of its model
        assert seen["resume"]["state"] == "idle" and SUNG in seen["resume"]["said"] and seen["resume"]["users"] >= 5
        found.on.environment["SESSION"] = seen["new"]["session"]
        again = steps(found)  # in another process
        assert again["resume"]["said"].startswith(SUNG) and again["resume"]["users"] >= 5
        assert again["resume_without_replay"]["then"]["states"] == ["running", "end_turn"]
