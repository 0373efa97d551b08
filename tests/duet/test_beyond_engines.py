"""The real Claude Code and Codex: what they told live, cut after every update, and what they tell later, are one history in the end."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from antiphon.duet import events
from antiphon.duet.beyond import beyond
from antiphon.protocol import v1
from tests.duet.histories import ended, given, looks, prompted, shown, told_by
from tests.engines.claude.model.steps import Call as ClaudeCall
from tests.engines.claude.place import place as claude_place
from tests.engines.claude.versions import NEW
from tests.engines.claude.versions import program as claude_program
from tests.engines.codex.model.steps import Search, command, patch
from tests.engines.codex.place import place as codex_place
from tests.engines.codex.versions import PYPI
from tests.engines.codex.versions import program as codex_program
from tests.engines.driving import Client, connected
from tests.engines.model.steps import Text, Think

pytestmark = pytest.mark.slow


async def live(client: Client, prompts: Sequence[str]) -> list[events.Event]:
    """The events of these turns."""
    kept: list[events.Event] = []
    for text in prompts:
        told = await client.say(text)
        kept += [prompted(text), given(text), *shown(*told.updates), ended()]
    return kept


def check(kept: list[events.Event], history: list[v1.Update], renamed: dict[str, str]) -> None:
    """For every cut; the names by which an engine keeps its commands aside."""
    whole = looks(history)
    assert len(whole) > 10
    for cut in range(2, len(kept) + 1):
        if isinstance(kept[cut - 1], events.Prompted):
            continue
        more = beyond(kept[:cut], history, "claude")
        again = [*kept[:cut], ended(stop_reason=""), *shown(*more)]
        assert beyond(again, history, "claude") == []
        seen = looks([*told_by(kept[:cut]), *more])
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
    command_left_out = [each for each in kept if not isinstance(each, events.Given) or each.text != "/compact"]
    check(command_left_out, history, {})
    for cut in range(2, len(kept) + 1):  # which Codex keeps no word of
        seen = looks([*told_by(kept[:cut]), *beyond(kept[:cut], history, "claude")])
        assert [each for each in seen if each[1] != "/compact"] == looks(history) or isinstance(
            kept[cut - 1], events.Prompted
        )
