"""Editors that others wrote: acpx and clients of both official SDKs, each from `initialize` to an answer of both engines."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any, cast

import acp
import pytest
from acp import schema

from tests.duet.e2e.editors import Place
from tests.engines.acpx import Acpx, stop_of, text_of
from tests.engines.claude.model.steps import Call
from tests.engines.codex.model.steps import patch
from tests.engines.model.steps import Gate, Text, Wait, wait_limit
from tests.interop.peers.python_client import Listener, abilities
from tests.interop.programs import PROGRAMS, all_programs

pytestmark = [pytest.mark.slow, pytest.mark.prove]  # the clients come from npm and PyPI

Json = dict[str, Any]


def both_write(at: Place) -> None:
    """Each engine asks whether it may write a file, writes it and says so."""
    at.environment["ANTIPHON_ROUTE"] = "duet"
    at.codex.settings(top='model_provider = "choir"\napproval_policy = "on-request"\nsandbox_mode = "read-only"')
    at.claude.model.answers(Call("Write", {"file_path": str(at.folder / "one.txt"), "content": "la\n"}))
    at.claude.model.answers(Text("a first voice"))
    at.codex.model.answers(patch("*** Add File: two.txt", "+la"))
    at.codex.model.answers(Text("a second voice"))


def are_written(at: Place) -> bool:
    return all((at.folder / name).read_text(encoding="utf-8") == "la\n" for name in ("one.txt", "two.txt"))


def both_answered(texts: Iterable[str]) -> bool:
    """Whether both were received, each under its name."""
    whole = "".join(texts)
    places = [whole.find(words) for words in ("Claude Code", "a first voice", "Codex", "a second voice")]
    return -1 not in places and places == sorted(places)


async def test_acpx_asks_for_permission_of_both_and_receives_both(at: Place) -> None:
    both_write(at)
    messages = await Acpx(at).run("exec", "sing")
    asked = [each for each in messages if each.get("method") == "session/request_permission"]
    assert len(asked) == 2 and stop_of(messages) == ["end_turn"]
    assert both_answered([text_of(messages)]) and are_written(at)


async def test_acpx_keeps_a_session_chooses_a_route_and_cancels_a_turn(at: Place) -> None:
    editor, gate = Acpx(at), Gate()
    assert (await editor.run("sessions", "new"))[-1]["created"] is True
    assert text_of(await editor.run("prompt", "remember the river")) == "echo: remember the river"
    await editor.run("set", "route", "codex")
    at.codex.model.answers(Text("of the river"))
    assert text_of(await editor.run("prompt", "what was it?")) == "of the river"
    assert "remember the river" in at.codex.model.last.everything
    assert (await editor.run("set-mode", "acceptEdits"))[-1]["modeId"] == "acceptEdits"
    at.codex.model.answers(Text("la la "), Wait(gate))
    prompting = await editor.start("prompt", "sing for ever")
    await gate.is_reached()
    assert (await editor.run("cancel"))[-1]["cancelled"] is True
    out, _ = await prompting.communicate()
    assert stop_of([json.loads(line) for line in out.splitlines()]) == ["cancelled"]
    [listed] = await editor.run("sessions", "list")
    assert listed["source"] == "agent" and len(listed["sessions"]) == 1
    assert (await editor.run("sessions", "close"))[-1]["action"] == "session_closed"


async def test_a_client_of_the_official_python_sdk_receives_both(at: Place) -> None:
    both_write(at)
    editor = Listener()
    asked: list[Any] = []
    permit = editor.request_permission

    async def note(session_id: str, tool_call: Any, options: list[schema.PermissionOption], **rest: Any) -> Any:
        asked.append(tool_call)
        return await permit(session_id, tool_call, options, **rest)

    editor.request_permission = note  # type: ignore[method-assign]
    starting = acp.spawn_agent_process(
        cast("acp.Client", editor), *at.agent, env=at.environment, cwd=at.folder, transport_kwargs={"stderr": None}
    )
    async with asyncio.timeout(wait_limit()), starting as (agent, _):
        info = schema.Implementation(name="python-sdk-editor", version="1")
        first = await agent.initialize(
            protocol_version=acp.PROTOCOL_VERSION, client_capabilities=abilities(), client_info=info
        )
        made = await agent.new_session(cwd=str(at.folder), mcp_servers=[])
        block = schema.TextContentBlock(type="text", text="sing")
        stop = (await agent.prompt(session_id=made.session_id, prompt=[block])).stop_reason
    assert first.protocol_version == 1 and stop == "end_turn" and are_written(at)
    claude, codex = [str(call.title) for call in asked]
    assert "Claude Code" in claude and "Codex" in codex
    texts = [update for update in editor.updates if update.session_update == "agent_message_chunk"]
    assert both_answered(update.content.text for update in texts)


async def test_a_client_of_the_official_typescript_sdk_receives_both(at: Place) -> None:
    who = all_programs()["typescript"]
    if who.missing:
        pytest.skip(f"{who.name} {who.missing}")
    both_write(at)
    started = await asyncio.create_subprocess_exec(
        who.client[0], str(PROGRAMS / "typescript_editor.mjs"), str(at.folder), "sing", *at.agent,
        cwd=at.folder, env=at.environment, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=2**26,
    )  # fmt: skip
    async with asyncio.timeout(wait_limit()):
        out, err = await started.communicate()
    assert started.returncode == 0, err
    seen: Json = json.loads(out)
    assert seen["version"] == 1 and seen["stop"] == "end_turn" and are_written(at)
    claude, codex = [str(call["title"]) for call in seen["asked"]]
    assert "Claude Code" in claude and "Codex" in codex
    texts = [each for each in seen["updates"] if each["sessionUpdate"] == "agent_message_chunk"]
    assert both_answered(each["content"]["text"] for each in texts)
