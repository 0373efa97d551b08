"""How commands and changes to files are sent, from their start to their end."""

import asyncio
from typing import Any

from tests.engines.codex.bullets import proves
from tests.engines.codex.client import Client, connected
from tests.engines.codex.model.steps import command, patch
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH
from tests.engines.model.steps import Gate, Text, Wait

Json = dict[str, Any]

SONG = "".join(f"line {number}\n" for number in range(1, 41))


def diffs(call: Json) -> list[Json]:
    return [each for each in call["content"] if each["type"] == "diff"]


def shown(call: Json) -> str:
    return "\n".join(each["content"]["text"] for each in call["content"] if each["type"] == "content")


async def free(client: Client) -> None:
    """A session in which nothing is asked and nothing is in the way."""
    await client.open()
    await client.session.set_mode("bypassPermissions")


@proves("turn.command", "turn.name", "turn.whole-output", "turn.exit-code", on=BOTH)
async def test_a_command_is_shown_with_its_line_its_output_and_its_exit_code(at: Place) -> None:
    line = "printf 'la\\n```\\nla\\n'; exit 3"
    at.model.answers(command(line))
    async with connected(at) as client:
        await free(client)
        reply = await client.say("sing")
    history, call = reply.history("Bash"), reply.call("Bash")
    assert history[0]["sessionUpdate"] == "tool_call" and history[0]["status"] == "in_progress"
    assert call["title"] == line and call["rawInput"] == {"command": line, "cwd": str(at.folder)}
    assert call["kind"] == "execute" and call["status"] == "failed"
    assert call["rawOutput"]["exitCode"] == 3 and call["rawOutput"]["aggregatedOutput"] == "la\n```\nla\n"
    assert "la\n```\nla" in shown(call) and "````" in shown(call) and "exit code 3" in shown(call)


@proves("turn.kind", on=BOTH)
async def test_a_command_that_only_looks_is_called_so(at: Place) -> None:
    song = at.write("song.txt", SONG)
    at.model.answers(command("cat song.txt"))
    at.model.answers(command("grep -rn 'line 7' ."))
    async with connected(at) as client:
        reply = await client.say("look")
        calls = client.updates_of("tool_call")
    assert [each["kind"] for each in calls] == ["read", "search"]
    assert reply.call("Bash")["locations"] == [{"path": str(song)}]


@proves("turn.live-output", "turn.whole-output", on=BOTH)
async def test_what_a_command_prints_is_shown_while_it_runs_and_all_of_it_in_the_end(at: Place) -> None:
    pipe, lines = at.pipe(), "".join(f"line {number}\n" for number in range(1, 6))
    loop = (
        f"echo line 1; for n in 2 3 4; do cat {pipe} >/dev/null; echo line $n; done; cat {pipe} >/dev/null; echo line 5"
    )
    at.model.answers(command(loop, yield_time_ms=30_000))
    async with connected(at) as client:
        await free(client)
        turn = client.session.prompt("sing")
        await client.until(lambda: client.updates_of("tool_call"))  # what is printed before is reported only at the end
        for number in (2, 3, 4):
            await asyncio.to_thread(pipe.write_text, "go\n", encoding="utf-8")
            await client.until(lambda number=number: f"line {number}" in str(client.updates_of("tool_call_update")))  # type: ignore[misc]
        assert not any("completed" in str(each) for each in client.updates_of("tool_call_update"))
        await asyncio.to_thread(pipe.write_text, "go\n", encoding="utf-8")
        await turn
        last = client.updates_of("tool_call_update")[-1]
    assert last["status"] == "completed" and last["rawOutput"]["aggregatedOutput"] == lines
    assert lines.strip() in shown(last)


@proves("turn.diff-add", "turn.diff-update", "turn.diff-delete", "turn.diff-move", "turn.name", on=BOTH)
async def test_changes_show_the_whole_text_before_and_after(at: Place) -> None:
    song, old, here = at.write("song.txt", SONG), at.write("old.txt", "long ago\n"), at.write("here.txt", "a\nb\n")
    at.model.answers(patch("*** Add File: new.txt", "+all new", "+and more"))
    at.model.answers(patch("*** Update File: song.txt", "@@", " line 22", "-line 23", "+a high note", " line 24"))
    at.model.answers(patch("*** Delete File: old.txt"))
    at.model.answers(patch("*** Update File: here.txt", "*** Move to: there.txt", "@@", " a", "-b", "+c"))
    async with connected(at) as client:
        await free(client)
        await client.say("write")
        ended = [each for each in client.updates_of("tool_call_update") if each.get("status") == "completed"]
        begun = client.updates_of("tool_call")
    add, update, delete, move = [diffs(each) for each in ended]
    assert add == [{"type": "diff", "path": str(at.folder / "new.txt"), "newText": "all new\nand more\n"}]
    changed = SONG.replace("line 23\n", "a high note\n")
    assert update == [{"type": "diff", "path": str(song), "oldText": SONG, "newText": changed}]
    assert delete == [{"type": "diff", "path": str(old), "oldText": "long ago\n", "newText": ""}]
    there = at.folder / "there.txt"
    assert move == [{"type": "diff", "path": str(there), "oldText": "a\nb\n", "newText": "a\nc\n"}]
    assert "here.txt" in shown(ended[3]) and "there.txt" in shown(ended[3])
    assert [each["name"] for each in begun] == ["Write", "Edit", "Delete", "Edit"]
    assert [each["kind"] for each in begun] == ["edit", "edit", "delete", "edit"]
    assert 20 <= begun[1]["locations"][0]["line"] <= 23 and song.read_text(encoding="utf-8") == changed
    assert there.read_text(encoding="utf-8") == "a\nc\n" and not here.exists() and not old.exists()


@proves("turn.diff-update")
async def test_several_files_in_one_change_are_one_call_with_a_diff_for_each(at: Place) -> None:
    one, two = at.write("one.txt", "do\nre\n"), at.write("two.txt", "mi\nfa\n")
    at.model.answers(
        patch("*** Update File: one.txt", "@@", "-do", "+DO", "*** Update File: two.txt", "@@", "-fa", "+FA")
    )
    async with connected(at) as client:
        await free(client)
        reply = await client.say("louder")
    assert diffs(reply.call("Edit")) == [
        {"type": "diff", "path": str(one), "oldText": "do\nre\n", "newText": "DO\nre\n"},
        {"type": "diff", "path": str(two), "oldText": "mi\nfa\n", "newText": "mi\nFA\n"},
    ]


@proves("turn.late", on=BOTH)
async def test_a_command_that_outlives_its_turn_is_shown_to_its_end(at: Place) -> None:
    pipe = at.pipe()
    at.model.answers(command(f"echo before; cat {pipe}; exit 4", yield_time_ms=250))
    at.model.answers(Text("It runs."))
    async with connected(at) as client:
        await free(client)
        reply = await client.say("run something long")
        assert reply.text == "It runs." and reply.stop == "end_turn" and reply.call("Bash")["status"] == "in_progress"
        await asyncio.to_thread(pipe.write_text, "after\n", encoding="utf-8")
        await client.until(
            lambda: (
                client.updates_of("tool_call_update")[-1:] and client.updates_of("tool_call_update")[-1].get("status")
            )
        )
        last = client.updates_of("tool_call_update")[-1]
        assert last["status"] == "failed" and last["rawOutput"]["exitCode"] == 4
        assert last["rawOutput"]["aggregatedOutput"] == "before\nafter\n"
        assert (await client.say("thank you")).text == "echo: thank you"


@proves("turn.closed", on=BOTH)
async def test_what_is_open_when_a_turn_is_interrupted_is_closed(at: Place) -> None:
    gate = Gate()
    at.model.answers(Text("la "), patch("*** Add File: new.txt", "+new"))
    async with connected(at) as client:
        client.decisions.append(lambda _: asyncio.Event().wait())  # no answer comes
        await client.open()
        await client.session.set_mode("default")
        turn = client.session.prompt("sing")
        await client.until(lambda: client.asked)
        await turn.cancel()
        [call] = client.updates_of("tool_call")
        changes = [each for each in client.updates_of("tool_call_update") if each["toolCallId"] == call["toolCallId"]]
        assert [each["status"] for each in changes if "status" in each][-1] == "failed"
        at.model.answers(Text("la"), Wait(gate))
        turn = client.session.prompt("sing")
        await gate.is_reached()
        await turn.cancel()
    assert not (at.folder / "new.txt").exists()
