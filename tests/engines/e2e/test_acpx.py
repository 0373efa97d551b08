"""`acpx`, a client that others wrote, drives each engine through its own commands. It prints the raw traffic."""

import json

import pytest

from tests.engines.acpx import Acpx, stop_of, text_of, updates_of
from tests.engines.model.steps import Gate, Text, Think, Wait
from tests.engines.places import Place
from tests.engines.subjects import proves

pytestmark = pytest.mark.prove  # acpx comes from npm


@proves("turn.text", "turn.thinking", "turn.once", "stop.end-turn", every_version=False)
async def test_acpx_gets_an_answer(at: Place) -> None:
    at.model.answers(Think("hm"), Text("an answer in parts"))
    messages = await Acpx(at).run("exec", "hello")
    assert text_of(messages) == "an answer in parts" and stop_of(messages) == ["end_turn"]
    assert text_of(messages, "agent_thought_chunk") == "hm"


@proves(
    claude=["permission.asked", "permission.allow-once", "permission.reject-once", "turn.diff-write"],
    codex=["approval.change", "approval.accept", "approval.decline", "turn.diff-add"],
    every_version=False,
)
async def test_acpx_allows_and_rejects(at: Place) -> None:
    acpx, song = Acpx(at), at.folder / "song.txt"
    at.model.answers(at.calls.add_file(song, "la\n"))
    at.model.answers(Text("not written"))
    messages = await acpx.run("exec", "write", permission="--deny-all", status=5)
    assert any(each.get("method") == "session/request_permission" for each in messages) and not song.exists()
    at.model.answers(at.calls.add_file(song, "la\n"))
    messages = await acpx.run("exec", "write")
    assert song.read_text(encoding="utf-8") == "la\n" and stop_of(messages) == ["end_turn"]
    diffs = [item for each in updates_of(messages, "tool_call_update") for item in each.get("content") or []]
    assert {"type": "diff", "path": str(song), "newText": "la\n"} in [
        {key: value for key, value in item.items() if value is not None} for item in diffs
    ]


@proves(
    "sessions.list",
    "cancel.speaking",
    "cancel.next",
    claude=["modes.at-once"],
    codex=["modes.accept-edits"],
    every_version=False,
)
async def test_acpx_keeps_a_session_changes_its_mode_and_cancels_a_turn(at: Place) -> None:
    acpx, gate = Acpx(at), Gate()
    assert (await acpx.run("sessions", "new"))[-1]["created"] is True
    assert text_of(await acpx.run("prompt", "remember the river")) == "echo: remember the river"
    assert (await acpx.run("set-mode", "acceptEdits"))[-1]["modeId"] == "acceptEdits"
    at.model.answers(at.calls.add_file(at.folder / "song.txt", "la\n"))
    messages = await acpx.run("prompt", "write", permission="--deny-all")
    assert (at.folder / "song.txt").exists() and not any("request_permission" in str(each) for each in messages)
    at.model.answers(Text("la la "), Wait(gate))
    prompting = await acpx.start("prompt", "sing for ever")
    await gate.is_reached()
    assert (await acpx.run("cancel"))[-1]["cancelled"] is True
    out, _ = await prompting.communicate()
    assert stop_of([json.loads(line) for line in out.splitlines()]) == ["cancelled"]
    assert text_of(await acpx.run("prompt", "go on")) == "echo: go on"
    assert "remember the river" in at.model.last.texts
    [listed] = await acpx.run("sessions", "list")
    assert listed["source"] == "agent" and len(listed["sessions"]) == 1
    assert (await acpx.run("sessions", "close"))[-1]["action"] == "session_closed"
