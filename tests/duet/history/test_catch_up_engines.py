"""The real Claude Code and Codex: what they sent live, cut after every update, and what they send later, are one history in the end."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from antiphon.duet.history import events
from antiphon.protocol import v1
from antiphon.protocol.base import decoder
from antiphon.protocol.methods import Call as Method
from tests.duet.history.histories import ended, given, looks, missed_updates, prompted, shown, updates_of
from tests.engines.claude.model.steps import Call as ClaudeCall
from tests.engines.claude.place import place as claude_place
from tests.engines.claude.versions import NEW
from tests.engines.claude.versions import program as claude_program
from tests.engines.client import Client, connected
from tests.engines.codex.model.steps import Search, command, patch
from tests.engines.codex.place import place as codex_place
from tests.engines.codex.versions import PYPI
from tests.engines.codex.versions import program as codex_program
from tests.engines.model.steps import Gate, Text, Think, Wait

pytestmark = pytest.mark.slow

STEER: "Final[Method[Any, Any]]" = Method("_session/steering", dict, dict, side="agent")
UPDATES: Final[Any] = decoder(v1.Update)  # type: ignore[arg-type]  # a union is a type to msgspec


async def live(client: Client, prompts: Sequence[str]) -> list[events.Event]:
    """The events of these turns."""
    kept: list[events.Event] = []
    for text in prompts:
        reply = await client.say(text)
        kept += [prompted(text), given(text), *shown(*reply.updates), ended()]
    return kept


def check(kept: list[events.Event], history: list[v1.Update], renamed: dict[str, str]) -> None:
    """For every cut; the names by which an engine keeps its commands aside."""
    whole = looks(history)
    assert len(whole) > 10
    for cut in range(2, len(kept) + 1):
        if isinstance(kept[cut - 1], events.PromptEvent):
            continue
        more = missed_updates(kept[:cut], history, "claude")
        again = [*kept[:cut], ended(stop_reason=""), *shown(*more)]
        assert missed_updates(again, history, "claude") == []
        seen = looks([*updates_of(kept[:cut]), *more])
        assert [
            (who, renamed.get(str(what), what)) if who == "user" else (who, what, *rest) for who, what, *rest in seen
        ] == whole


async def test_a_turn_of_claude_code_that_was_cut_anywhere_is_whole_again(tmp_path: Path) -> None:
    program = claude_program(NEW)
    if program is None:
        pytest.skip(f"Claude Code {NEW} is not installed")
    with claude_place(tmp_path, program, NEW) as at:
        song = str(at.write("song.txt", "do\nre\nmi\n"))
        at.model.answers(Think("how to begin"), Text("I read it. "), ClaudeCall("Read", {"file_path": song}))
        edit = {"file_path": song, "old_string": "re", "new_string": "RE"}
        hello = {"command": "echo hi", "description": "Say hi"}
        at.model.answers(Text("Now edit."), ClaudeCall("Edit", edit), ClaudeCall("Bash", hello))
        at.model.answers(Text("This fails."), ClaudeCall("Bash", {"command": "false", "description": "Fail"}))
        at.model.answers(Text("All is sung."))
        async with connected(at) as client:
            await client.open()
            await client.session.set_mode("acceptEdits")
            kept = await live(client, ["sing the song", "again", "again", "/cost", "the last"])
            await at.keeps("echo: the last")
            id = client.session.id
        async with connected(at) as client:
            history = (await client.load(id)).updates
    check(kept, history, {"/cost": "/usage"})


async def test_a_turn_of_codex_that_was_cut_anywhere_is_whole_again(tmp_path: Path) -> None:
    program = codex_program(PYPI)
    if program is None:
        pytest.skip(f"Codex {PYPI} is not installed")
    with codex_place(tmp_path, program, PYPI) as at:
        at.write("song.txt", "do\nre\nmi\n")
        at.model.answers(Think("how to begin"), Text("I read it. "), command("cat song.txt"))
        at.model.answers(patch("*** Update File: song.txt", "@@", " do", "-re", "+RE", " mi"))
        at.model.answers(Search("songs"), command("false"))
        at.model.answers(Text("All is sung."))
        async with connected(at) as client:
            await client.open()
            await client.session.set_mode("acceptEdits")
            kept = await live(client, ["sing the song", "again", "again", "/compact", "the last"])
            id = client.session.id
        async with connected(at) as client:
            history = (await client.load(id)).updates
    command_left_out = [each for each in kept if not isinstance(each, events.GivenEvent) or each.text != "/compact"]
    check(command_left_out, history, {})
    for cut in range(2, len(kept) + 1):  # which Codex keeps no word of
        seen = looks([*updates_of(kept[:cut]), *missed_updates(kept[:cut], history, "claude")])
        assert [each for each in seen if each[1] != "/compact"] == looks(history) or isinstance(
            kept[cut - 1], events.PromptEvent
        )


def events_between(client: Client, first: int, last: int | None = None) -> list[events.Event]:
    """What came between two moments."""
    return shown(*(UPDATES.decode(msgspec.json.encode(each)) for each in client.updates[first:last]))


async def steered(client: Client, gate: Gate) -> list[events.Event]:
    """A turn to which something is added."""
    before = len(client.updates)
    turn = asyncio.create_task(client.say("sing"))
    await gate.is_reached()
    await client.until(lambda: client.all_text.endswith("la "))
    middle = len(client.updates)
    added = {"sessionId": client.session.id, "prompt": [{"type": "text", "text": "higher"}]}
    await client.agent.connection.request(STEER, added)
    gate.open()
    await turn
    added_events: list[events.Event] = [prompted("higher", steering=True), given("higher")]
    return [
        prompted("sing"),
        given("sing"),
        *events_between(client, before, middle),
        *added_events,
        *events_between(client, middle),
    ]


async def called_off(client: Client, gate: Gate) -> list[events.Event]:
    """A turn that is cancelled."""
    before = len(client.updates)
    turn = asyncio.create_task(client.say("stop me"))
    await gate.is_reached()
    await client.until(lambda: client.all_text.endswith("long "))
    await client.session.cancel()
    gate.open()
    await turn
    return [prompted("stop me"), given("stop me"), *events_between(client, before)]


async def with_files(client: Client, song: Path) -> list[events.Event]:
    """A turn whose prompt brings files along, which engines write down in their own way."""
    code = v1.EmbeddedResource(resource=v1.TextResource(text="x", uri="file:///x.py"))
    blocks: list[v1.ContentBlock] = [
        v1.TextBlock(text="look at "),
        v1.ResourceLink(name="song.txt", uri=f"file://{song}"),
        code,
    ]
    reply = await client.say(blocks)
    return [prompted("look at "), given("look at "), *shown(*reply.updates)]


def check_loosely(kept: list[events.Event], history: list[v1.Update]) -> None:
    """For every cut, what the engine sent and did, whatever the order and the words of the user."""

    def seen(updates: Sequence[v1.Update]) -> list[str]:
        return sorted(str(each) for each in looks(updates) if each[0] != "user")

    assert len(seen(history)) > 4
    for cut in range(2, len(kept) + 1):
        more = missed_updates(kept[:cut], history, "claude")
        assert seen([*updates_of(kept[:cut]), *more]) == seen(history), cut
    assert missed_updates(kept, history, "claude") == []


async def test_unusual_turns_of_claude_code_are_whole_again(tmp_path: Path) -> None:
    program = claude_program(NEW)
    if program is None:
        pytest.skip(f"Claude Code {NEW} is not installed")
    with claude_place(tmp_path, program, NEW) as at:
        song, first, second = at.write("song.txt", "do\nre\nmi\n"), Gate(), Gate()
        task = {
            "description": "Read it",
            "prompt": "read",
            "subagent_type": "general-purpose",
            "run_in_background": False,
        }
        async with connected(at) as client:
            await client.open()
            at.model.answers(Text("la "), Wait(first), ClaudeCall("Read", {"file_path": str(song)}))
            kept = await steered(client, first)
            at.model.answers(Text("I send somebody. "), ClaudeCall("Agent", task))
            kept += await live(client, ["send"])
            at.model.answers(Text("long "), Wait(second), Text("more"))
            kept += await called_off(client, second)
            kept += await with_files(client, song)
            kept += await live(client, ["/compact", "bye"])
            await at.keeps("echo: bye")
            id = client.session.id
        async with connected(at) as client:
            history = (await client.load(id)).updates
    check_loosely(kept, history)


async def test_unusual_turns_of_codex_are_whole_again(tmp_path: Path) -> None:
    program = codex_program(PYPI)
    if program is None:
        pytest.skip(f"Codex {PYPI} is not installed")
    with codex_place(tmp_path, program, PYPI) as at:
        song, first, second = at.write("song.txt", "do\nre\nmi\n"), Gate(), Gate()
        async with connected(at) as client:
            await client.open()
            at.model.answers(Text("la "), Wait(first), command("true"))
            kept = await steered(client, first)
            at.model.answers(Text("long "), Wait(second), Text("more"))
            kept += await called_off(client, second)
            kept += await with_files(client, song)
            kept += await live(client, ["bye"])
            id = client.session.id
        async with connected(at) as client:
            history = (await client.load(id)).updates
    check_loosely(kept, history)
