"""How tool calls are sent: from the first token of their input to their result."""

import base64
from typing import Any

from tests.engines.claude.model.steps import Call, Gate, Text, Wait
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import STAND_IN, proves
from tests.engines.claude.stand_in_lines import RESULT, assistant, stand_in_says, tool_result
from tests.engines.claude.versions import BOTH
from tests.engines.client import connected
from tests.engines.pictures import DOT

Json = dict[str, Any]

SONG = "".join(f"line {number}\n" for number in range(1, 41))


def diffs(call: Json) -> list[Json]:
    return [each for each in call["content"] if each["type"] == "diff"]


@proves("turn.call-early", "turn.raw-input", "turn.raw-output", "turn.kind", "turn.call-title", "turn.name", on=BOTH)
async def test_a_call_is_shown_from_its_first_token_to_its_result(at: Place) -> None:
    gate = Gate()
    bash = {"command": "echo sung aloud", "description": "Sing it aloud"}
    at.model.answers(Call("Bash", bash), Wait(gate))
    async with connected(at) as client:
        await client.open()
        turn = client.session.prompt("sing")
        await gate.is_reached()
        await client.until(lambda: client.updates_of("tool_call"))
        gate.open()
        await turn
        updates = [each for each in client.updates if each["sessionUpdate"].startswith("tool_call")]
    assert updates[0]["sessionUpdate"] == "tool_call" and updates[0].get("status", "pending") == "pending"
    assert "rawInput" not in updates[0] and updates[0]["name"] == "Bash"
    whole: Json = {}
    for each in updates:
        whole |= each
    assert len({each["toolCallId"] for each in updates}) == 1
    assert whole["status"] == "completed" and whole["kind"] == "execute" and whole["name"] == "Bash"
    assert whole["rawInput"] == bash and "sung aloud" in str(whole["rawOutput"])
    assert "echo sung aloud" in whole["title"]
    statuses = [each["status"] for each in updates if "status" in each]
    assert statuses[-2:] == ["in_progress", "completed"]


@proves(
    "turn.diff-edit", "turn.diff-write", "turn.locations", "turn.call-title", "turn.kind", "turn.name", "turn.command-text",
    "turn.raw-output", on=BOTH
)  # fmt: skip
async def test_calls_show_diffs_places_output_pictures_and_why_they_failed(at: Place) -> None:
    song, old, new = at.write("song.txt", SONG), at.write("old.txt", "before\n"), at.folder / "new.txt"
    (at.folder / "dot.png").write_bytes(base64.b64decode(DOT))
    async with connected(at) as client:
        # An edit shows the file before and after, and where it changed.
        at.model.answers(Call("Read", {"file_path": str(song), "offset": 20, "limit": 5}))
        edit = {"file_path": str(song), "old_string": "line 23\n", "new_string": "a high note\n"}
        at.model.answers(Call("Edit", edit))
        reply = await client.say("make it higher")
        read, edited = reply.call("Read"), reply.call("Edit")
        assert read["kind"] == "read" and "song.txt" in read["title"]
        assert read["locations"] == [{"path": str(song), "line": 20}]
        assert edited["kind"] == "edit" and edited["status"] == "completed" and "song.txt" in edited["title"]
        after = SONG.replace("line 23\n", "a high note\n")
        assert diffs(edited) == [{"type": "diff", "path": str(song), "oldText": SONG, "newText": after}]
        assert [each["path"] for each in edited["locations"]] == [str(song)]
        assert 20 <= edited["locations"][0]["line"] <= 23

        # A file that is written shows what it was, or that it is new.
        at.model.answers(Call("Write", {"file_path": str(new), "content": "all new\n"}))
        assert diffs((await client.say("write")).call("Write")) == [
            {"type": "diff", "path": str(new), "newText": "all new\n"}
        ]
        at.model.answers(Call("Read", {"file_path": str(old)}))
        at.model.answers(Call("Write", {"file_path": str(old), "content": "after\n"}))
        assert diffs((await client.say("write")).call("Write")) == [
            {"type": "diff", "path": str(old), "oldText": "before\n", "newText": "after\n"}
        ]

        # The output of a command is text, which cannot end its own fence.
        at.model.answers(Call("Bash", {"command": "printf 'la\\n```\\nla\\n'; false", "description": "Sing"}))
        call = (await client.say("sing")).call("Bash")
        shown = "\n".join(each["content"]["text"] for each in call["content"] if each["type"] == "content")
        assert "la\n```\nla" in shown and "````" in shown and call["status"] == "failed" and "1" in shown

        # A call that fails says why.
        at.model.answers(Text("Let me read. "), Call("Read", {"file_path": str(at.folder / "nothing.txt")}))
        call = (await client.say("read")).call("Read")
        assert call["status"] == "failed" and call["kind"] == "read" and "not exist" in str(call["content"])

        # A picture is shown as one.
        at.model.answers(Call("Read", {"file_path": str(at.folder / "dot.png")}))
        call = (await client.say("look")).call("Read")
        [picture] = [each["content"] for each in call["content"]]
        assert picture == {"type": "image", "data": DOT, "mimeType": "image/png"} and call["rawOutput"]


@proves("turn.diff-multiedit", on=[STAND_IN])
async def test_several_edits_in_one_call_show_one_diff(at: Place) -> None:
    song = at.write("song.txt", "do\nre\nmi\n")
    edits = [{"old_string": "do", "new_string": "DO"}, {"old_string": "mi", "new_string": "MI"}]
    patch = {"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3, "lines": ["-do", "+DO", " re", "-mi", "+MI"]}
    done = {"filePath": str(song), "edits": edits, "originalFile": "do\nre\nmi\n", "structuredPatch": [patch]}
    stand_in_says(
        at,
        assistant(
            {"type": "tool_use", "id": "t1", "name": "MultiEdit", "input": {"file_path": str(song), "edits": edits}}
        ),
        tool_result("t1", "done", done),
        RESULT,
    )
    async with connected(at) as client:
        reply = await client.say("edit")
    edited = reply.call("MultiEdit")
    assert edited["kind"] == "edit" and "song.txt" in edited["title"]
    assert diffs(edited) == [{"type": "diff", "path": str(song), "oldText": "do\nre\nmi\n", "newText": "DO\nre\nMI\n"}]
