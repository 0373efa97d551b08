"""Version 2 with the official SDKs: their clients with our agent, their agents with our client, and both across a bridge."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import antiphon
from antiphon import v1
from antiphon.client.session import ClientSession
from antiphon.conformance.agent_check import AgentCommand, check_agent
from antiphon.conformance.agent_run import CheckOptions
from antiphon.conformance.client_check import check_client
from antiphon.conformance.client_process import ClientCommands
from antiphon.conformance.client_run import ClientCheckOptions
from antiphon.conformance.requirements import RequirementStatus
from antiphon.conformance.suites.agent_v2 import SUITE_V2
from antiphon.conformance.suites.client_v2 import CLIENT_SUITE_V2
from antiphon.connection.reports import Report, TranslationLoss
from tests.interop.environment import Environment, environment
from tests.interop.programs import NEXT_PYTHON, NODE, PROGRAMS, all_programs
from tests.limits import limit

pytestmark = [pytest.mark.slow, pytest.mark.prove]

OURS: Final = (sys.executable, "-m", "antiphon", "agent", "--engine", "demo")
BRIDGE: Final = (sys.executable, "-m", "antiphon", "bridge", "--")
CLIENTS: Final = {
    "typescript": (str(NODE), str(PROGRAMS / "typescript_client_v2.mjs")),
    "python-next": (str(NEXT_PYTHON), str(PROGRAMS / "python_client_v2.py")),
}
AGENTS: Final = {
    "typescript": (str(NODE), str(PROGRAMS / "typescript_agent_v2.mjs")),
    "python-next": (str(NEXT_PYTHON), str(PROGRAMS / "python_agent_v2.py")),
}
DUAL: Final = (*AGENTS["typescript"], "dual")
ASKED: Final = ["running", "requires_action", "running", "end_turn"]
Json = dict[str, Any]


def need(*names: str) -> None:
    for name in names:
        peer = all_programs()[name]
        if peer.missing:
            pytest.skip(f"{peer.title} {peer.missing}")


def steps_of(on: Environment, client: str, *agent: str, **words: str) -> dict[str, Json]:
    """What a client of version 2 saw of each step."""
    on.environment |= {"WORDS": json.dumps(words), "PATIENCE": str(limit(1.0))}
    done = on.run([*CLIENTS[client], str(on.folder), *agent], limit())
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    failed = [line for line in lines if not line["ok"]]
    assert lines and not failed, f"{failed}\n{done.stderr}"
    return {line["step"]: line["detail"] for line in lines}


@pytest.mark.parametrize("bridged", [False, True], ids=["alone", "bridged"])
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_of_version_2_uses_our_agent(tmp_path: Path, client: str, bridged: bool) -> None:
    need(client)
    words = {"slow": "/slow 1000", "ask": "/permission", "ask_again": "/permission", "form": "/ask", "fail": "/fail"}
    with environment(tmp_path) as on:
        found = steps_of(on, client, *(BRIDGE if bridged else ()), *OURS, **words)
    assert (found["initialize"]["version"], found["initialize"]["name"]) == (2, "antiphon-demo")
    assert found["prompt"]["own"] and found["prompt"]["states"] == ["running", "end_turn"]
    assert found["held"] == {"different": 2, "last": "end_turn"}
    assert found["permission"]["allowed"] == found["permission"]["rejected"] == ASKED
    assert found["permission"]["title"] == "Do nothing"
    assert found["cancel_asking"]["states"] == ["running", "requires_action", "cancelled"]
    assert (found["form"]["forms"], found["form"]["states"]) == (1, ASKED) and "name: me" in found["form"]["said"]
    assert found["fail"]["states"] == ["running", "error"]
    assert found["cancel"]["states"] == ["running", "cancelled"]
    assert found["resume"]["state"] == "idle" and found["resume"]["users"] >= 7
    assert found["prompt"]["said"] in found["resume"]["said"]
    assert (found["list"], found["close"]) == ({"listed": True}, {})
    if client == "typescript":
        assert found["unknown"] == {"code": -32602}
        assert found["resume_without_replay"]["replayed"] == 0


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_of_version_2_uses_an_agent_of_version_1_through_a_bridge(tmp_path: Path, client: str) -> None:
    need(client, "typescript")
    with environment(tmp_path) as on:
        found = steps_of(on, client, *BRIDGE, *all_programs()["typescript"].agent, fail="/fail")
    assert found["initialize"]["version"] == 2
    assert found["prompt"]["own"] and found["prompt"]["states"] == ["running", "end_turn"]
    assert found["held"] == {"different": 2, "last": "end_turn"}
    assert found["fail"]["states"] == ["refused"]  # nothing was seen of it before its error
    assert found["cancel"]["states"] == ["running", "cancelled"]
    assert found["resume"]["state"] == "idle" and "You said: hello" in found["resume"]["said"]


def permit(kind: str) -> Any:
    return lambda request: next(option.option_id for option in request.options if option.kind.value == kind)


def fill_in(form: v1.FormElicitation | v1.UrlElicitation) -> v1.Accepted:
    assert isinstance(form, v1.FormElicitation)
    return v1.Accepted({next(iter(form.requested_schema.properties)): "me"})


@pytest.mark.parametrize("bridged", [False, True], ids=["alone", "bridged"])
@pytest.mark.parametrize("name", AGENTS)
async def test_our_client_uses_an_agent_of_version_2(tmp_path: Path, name: str, bridged: bool) -> None:
    need(name)
    lost: list[Report] = []
    decisions = [permit("allow_once"), permit("reject_once")]
    asked = asyncio.Event()

    async def decide(request: v1.RequestPermission) -> Any:
        if decisions:
            return decisions.pop(0)(request)
        asked.set()
        return await asyncio.Event().wait()

    async with (
        asyncio.timeout(limit()),
        antiphon.connect(
            [*(BRIDGE if bridged else ()), *AGENTS[name]], permission=decide, elicitation=fill_in,
            observer=lost.append, versions=(1,) if bridged else (1, 2),
        ) as agent,
    ):  # fmt: skip
        session = await agent.new_session(tmp_path)
        assert await played(session, "hello") == ("you said hello", v1.StopReason.END_TURN)
        calls: list[Any] = []
        assert await played(session, "/tool", calls) == ("written", v1.StopReason.END_TURN)
        assert isinstance(calls[0], v1.ToolCall) and calls[0].title == "Write poem"
        if name == "typescript":
            diffs = [item for call in calls if isinstance(call.content, list) for item in call.content]
            assert v1.Diff(path=f"{tmp_path}/poem", new_text="roses\n") in diffs
        assert calls[-1].status is v1.ToolStatus.COMPLETED
        assert await played(session, "/tool") == ("not written", v1.StopReason.END_TURN)
        assert await played(session, "/ask") == ("you are me", v1.StopReason.END_TURN)
        with pytest.raises(antiphon.RequestRefused, match="out of ink" if name == "typescript" else "Internal error"):
            await session.prompt("/fail")
        both = await asyncio.gather(played(session, "one"), played(session, "two"))
        assert list(both) == [("you said one", v1.StopReason.END_TURN), ("you said two", v1.StopReason.END_TURN)]
        turn = session.prompt("/slow")
        async for update in turn:
            if isinstance(update, v1.AgentMessageChunk):
                await turn.cancel()
        assert (await turn).stop_reason is v1.StopReason.CANCELLED
        turn = session.prompt("/tool")
        await asked.wait()
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        await session.set_mode("go")
        shown = (await agent.load_session(session.id, tmp_path)).transcript.plain()
        assert "you said hello" in shown and "you are me" in shown and shown.count("slowly") == 1
        assert await played(await agent.resume_session(session.id, tmp_path), "on") == (
            "you said on",
            v1.StopReason.END_TURN,
        )
        with pytest.raises(antiphon.RequestRefused):
            await agent.load_session("no-such-session", tmp_path)
    # A call that was not allowed is `cancelled` in version 2, which has no word in version 1. Behind a bridge all agents speak version 1.
    reasons = {report.reason for report in lost if isinstance(report, TranslationLoss)}
    unused = "an agent of version 2 uses no files and terminals of its client"
    assert reasons == (set() if bridged else {"version 1 has no status `cancelled`", unused})


@pytest.mark.parametrize("bridged", [False, True], ids=["alone", "bridged"])
async def test_an_agent_of_both_versions_is_asked_for_the_version_of_the_client(tmp_path: Path, bridged: bool) -> None:
    need("typescript")
    command = [*(BRIDGE if bridged else ()), *DUAL]
    for versions, said in (((1, 2), "this is version 1"), ((2, 1), "you said hello")):
        async with asyncio.timeout(limit()), antiphon.connect(command, versions=versions) as agent:
            session = await agent.new_session(tmp_path)
            assert await played(session, "hello") == (said, v1.StopReason.END_TURN)


async def played(session: ClientSession, prompt: str, calls: list[Any] | None = None) -> tuple[str, v1.StopReason]:
    turn = session.prompt(prompt)
    text = ""
    async for update in turn:
        if isinstance(update, v1.AgentMessageChunk) and isinstance(update.content, v1.TextBlock):
            text += update.content.text
        elif calls is not None and isinstance(update, v1.ToolCall | v1.ToolCallUpdate):
            calls.append(update)
    return text, (await turn).stop_reason


KNOWN = {
    "resume.cleared": "it replays the very updates that it sent",
    "session.mcp-unknown": "it starts no MCP servers, and looks at none",
    "resume.cursor": "it takes every cursor for the start",
    "content.refused": "it reads the text of a prompt, and looks at nothing else",
}
"""What the agent of these tests does wrong, and why. The SDK leaves it to the agent."""


async def test_the_check_of_agents_finds_what_an_agent_of_version_2_does_wrong_and_nothing_else() -> None:
    need("typescript")
    options = CheckOptions(limit=limit(10.0))
    report = await check_agent(AgentCommand(AGENTS["typescript"]), options, suite=SUITE_V2)
    assert {one.requirement.id for one in report.broken} == KNOWN.keys()
    assert report.count(RequirementStatus.PASSED) > 75


async def test_the_check_of_clients_finds_nothing_wrong_with_a_client_of_version_2() -> None:
    need("typescript")
    client = ClientCommands.of([str(NODE), str(PROGRAMS / "typescript_prompt_v2.mjs"), "{agent}"])
    options = ClientCheckOptions(limit=limit(10.0))
    report = await check_client(client, options, suite=CLIENT_SUITE_V2)
    assert {one.requirement.id: one.verdict for one in report.broken} == {}
    assert (report.peer, report.count(RequirementStatus.BLOCKED)) == ("typescript-prompt 1", 0)
    assert report.count(RequirementStatus.PASSED) > 110
