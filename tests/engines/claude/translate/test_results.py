"""What came of a call, from the result as the model reads it and its structured twin."""

from itertools import product
from typing import Any

from antiphon.engines.claude.translate.results import CallResult, result_of
from antiphon.engines.claude.wire import ToolResultBlock
from antiphon.protocol import v1
from tests.rows import each_row

CWD = "/song"
PIXEL = "iVBORw0KGgo="


def call_result(
    name: str, content: Any, structured: Any = None, *, given: Any = None, error: bool | None = None
) -> CallResult:
    block = ToolResultBlock(tool_use_id="t", content=content, is_error=error)
    return result_of(name, given or {}, block, structured, CWD)


def texts(result: CallResult) -> list[str]:
    found = [item.content for item in result.content if isinstance(item, v1.ContentItem)]
    return [block.text for block in found if isinstance(block, v1.TextBlock)]


def ran(**more: Any) -> dict[str, Any]:
    return {"stdout": "", "stderr": "", "interrupted": False, "isImage": False, **more}


COMMANDS = [
    ("what it printed", "out\nerr", ran(stdout="out", stderr="err"), None, (["```console\nout\nerr\n```"], 0, "out\nerr")),
    ("nothing printed", "(Bash completed with no output)", ran(), None, ([], 0, "")),
    ("nothing printed, and no structure", "(Bash completed with no output)", None, None, ([], 0, "")),
    ("only text", "out", None, None, (["```console\nout\n```"], 0, "out")),
    ("blocks of text", [{"type": "text", "text": "out"}], None, None, (["```console\nout\n```"], 0, "out")),
    ("a failure", "Exit code 3\nno such file", "Error: Exit code 3\nno such file", True,
     (["```console\nno such file\n```", "Exit code 3"], 3, "no such file")),
    ("a failure that printed nothing", "Exit code 1", "Error: Exit code 1", True, (["Exit code 1"], 1, "")),
    ("a command that was not run", "<tool_use_error>Bad input</tool_use_error>", "Error: Bad input", True,
     (["```\nBad input\n```"], None, "Bad input")),
    ("a code that is not a failure", "", ran(returnCodeInterpretation="No matches found"), None,
     (["No matches found"], None, "[No matches found]")),
    ("colours", "", ran(stdout="\x1b[31mred\x1b[0m"), None, (["```console\nred\n```"], 0, "\x1b[31mred\x1b[0m")),
    ("a fence", "", ran(stdout="```\nx\n```"), None, (["````console\n```\nx\n```\n````"], 0, "```\nx\n```")),
    ("a background task", "Command running in background with ID: b1", ran(backgroundTaskId="b1"), None,
     (["Goes on in the background as b1"], None, "[Goes on in the background as b1]")),
    ("a task that took too long", "a\nmoved", ran(stdout="a", backgroundTaskId="b1", timedOutAfterMs=1500), None,
     (["```console\na\n```", "Goes on in the background after 1.5 s as b1"], None, "a\n[Goes on in the background after 1.5 s as b1]")),
    ("more than fits", "<persisted-output>…", ran(stdout="a", persistedOutputPath="/o.txt", persistedOutputSize=40000), None,
     (["```console\na\n```", "Only the beginning of 39.1 KiB: all of it is in /o.txt"], 0,
      "a\n[Only the beginning of 39.1 KiB: all of it is in /o.txt]")),
    ("more than fits, and no structure", "<persisted-output>\nToo large\n</persisted-output>", None, None,
     (["```console\nToo large\n```"], 0, "Too large")),
]  # fmt: skip


@each_row(("case", "content", "structured", "error", "expected"), COMMANDS, ids=[case for case, *_ in COMMANDS])
def test_a_command_shows_what_it_printed_and_how_it_ended(
    case: str, content: Any, structured: Any, error: bool | None, expected: tuple[list[str], int | None, str]
) -> None:
    result = call_result("Bash", content, structured, error=error)
    assert (texts(result), result.exit_code, result.output) == expected
    assert result.failed is bool(error)


def test_a_command_that_was_interrupted_has_failed() -> None:
    result = call_result("Bash", "half", ran(stdout="half", interrupted=True))
    assert result.failed and result.exit_code is None
    assert texts(result) == ["```console\nhalf\n```", "Stopped before it had ended"]


def test_a_picture_that_a_command_printed_is_a_picture() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    result = call_result("Bash", [image], ran(stdout=f"data:image/png;base64,{PIXEL}", isImage=True))
    assert result.content == [v1.ContentItem(content=v1.ImageBlock(data=PIXEL, mime_type="image/png"))]
    assert result.output is None


REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. a file edit was NOT written)."
)


@each_row(
    ("text", "shown"),
    [
        ("<tool_use_error>String not found.\nString: x</tool_use_error>", "String not found.\nString: x"),
        ("Error: Error: no", "no"),
        ("Keep planning", "Keep planning"),
        (REFUSED, "Not run, because it was declined."),
        (f"{REFUSED} To tell you how to proceed, the user said:\nuse tabs", "Not run, because you said: use tabs"),
        (
            f"{REFUSED} Correction: this call was stopped while running.",
            "Stopped while it was running. It may have done some of its work.",
        ),
        ("Denied by a mode. IMPORTANT: You *may* attempt this with other tools.", "Denied by a mode."),
        ("no\n<system-reminder>psst</system-reminder>", "no"),
    ],
)
@each_row("name", ["Edit", "mcp__s__t", "Bash"])
def test_a_failure_has_a_reason_in_words_for_the_user(name: str, text: str, shown: str) -> None:
    result = call_result(name, text, "Error: something else", error=True)
    assert result.failed and texts(result) == [f"```\n{shown}\n```"]
    assert result.denied is shown.startswith("Not run")
    assert result.raw_output == {"error": "Error: something else"}


def test_an_edit_shows_the_whole_file_before_and_after_and_where_it_changed() -> None:
    patch = [{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" one", "-two", "+2"]}]
    structured = {
        "filePath": "/song/a",
        "oldString": "two",
        "newString": "2",
        "originalFile": "one\ntwo\n",
        "structuredPatch": patch,
    }
    result = call_result("Edit", "The file was updated", structured, given={"file_path": "/song/a"})
    assert result.content == [v1.Diff(path="/song/a", old_text="one\ntwo\n", new_text="one\n2\n")]
    assert result.locations == [v1.ToolLocation(path="/song/a", line=2)]
    assert result.raw_output == structured


def test_an_edit_that_changed_nothing_is_shown_as_unchanged() -> None:
    structured = {"type": "update", "filePath": "/song/a", "content": "x", "originalFile": "x", "structuredPatch": []}
    assert texts(call_result("Write", "ok", structured)) == ["No change."]


def test_an_edit_with_only_text_shows_the_input_of_the_call() -> None:
    result = call_result("Edit", "ok", None, given={"file_path": "a", "old_string": "x", "new_string": "y"})
    assert result.content == [v1.Diff(path="/song/a", old_text="x", new_text="y")]


def test_a_notebook_that_could_not_be_edited_has_failed() -> None:
    result = call_result(
        "NotebookEdit", "ok", {"notebook_path": "/n", "error": "no such cell", "original_file": "", "updated_file": ""}
    )
    assert result.failed and texts(result) == ["```\nno such cell\n```"]


def file(**fields: Any) -> dict[str, Any]:
    return {"type": "text", "file": {"filePath": "/song/a.py", **fields}}


@each_row(
    ("content", "structured", "shown"),
    [
        ("1\tx = 1\n2\t", file(content="x = 1\n", numLines=2, startLine=1, totalLines=2), ["```py\nx = 1\n```"]),
        ("", file(content="", startLine=1), ["The file is empty."]),
        (
            "…",
            file(content="x", numLines=1, totalLines=9, truncatedByTokenCap=True),
            ["```py\nx\n```", "The first 1 of 9 lines."],
        ),
        ("     1→x = 1\n     2→y", None, ["```py\nx = 1\ny\n```"]),
        ("1\tx\n<system-reminder>psst</system-reminder>", None, ["```py\nx\n```"]),
        ("not numbered\n2\tx", None, ["```py\nnot numbered\n2\tx\n```"]),
        ([{"type": "text", "text": "1\tx"}], None, ["```py\nx\n```"]),
        ("", {"type": "file_unchanged", "file": {"filePath": "/song/a.py"}}, ["Unchanged since it was last read."]),
    ],
)
def test_what_was_read_is_shown_without_the_line_numbers(content: Any, structured: Any, shown: list[str]) -> None:
    assert texts(call_result("Read", content, structured, given={"file_path": "/song/a.py"})) == shown


def test_the_place_of_a_read_has_the_first_line() -> None:
    result = call_result("Read", "", file(content="x", startLine=12), given={"file_path": "a.py"})
    assert result.locations == [v1.ToolLocation(path="/song/a.py", line=12)]


def test_a_picture_that_was_read_is_a_picture_and_not_shown_twice() -> None:
    data = "A" * 8000
    result = call_result(
        "Read", [], {"type": "image", "file": {"base64": data, "type": "image/webp", "originalSize": 6000}}
    )
    assert result.content == [v1.ContentItem(content=v1.ImageBlock(data=data, mime_type="image/webp"))]
    assert isinstance(result.raw_output, dict)
    assert result.raw_output["file"]["base64"] == "(5.86 KiB in base64, left out)"


def test_a_document_is_shown_by_its_size_and_its_pages_are_pictures() -> None:
    page = {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": PIXEL}}
    structured = {
        "type": "parts",
        "file": {"filePath": "/d.pdf", "originalSize": 1_500_000, "count": 1, "outputDir": "/tmp/x"},
    }
    result = call_result("Read", [{"type": "text", "text": "PDF pages extracted"}, page], structured)
    assert texts(result) == ["PDF (1.43 MiB, 1 page read)"]
    assert result.content[1:] == [v1.ContentItem(content=v1.ImageBlock(data=PIXEL, mime_type="image/jpeg"))]


def test_a_notebook_reads_as_text_and_code_with_its_output() -> None:
    cells = [
        {"cellType": "markdown", "source": "# Hi"},
        {
            "cellType": "code",
            "source": "print(1)",
            "language": "python",
            "outputs": [{"output_type": "stream", "text": "1\n"}],
        },
    ]
    result = call_result("Read", [], {"type": "notebook", "file": {"filePath": "/n.ipynb", "cells": cells}})
    assert texts(result) == ["# Hi", "```python\nprint(1)\n```\n```\n1\n```"]


def test_what_a_server_answers_is_shown_block_by_block() -> None:
    blocks = [
        {"type": "text", "text": "said"},
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        {"type": "audio", "data": PIXEL, "mimeType": "audio/mp3"},
        {"type": "resource", "resource": {"uri": "x://a", "text": "t", "mimeType": "text/plain"}},
        {"type": "resource", "resource": {"uri": "x://b", "blob": "AA=="}},
        {"type": "resource_link", "uri": "x://c", "name": "c"},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
            "title": "d",
        },
        {"type": "tool_reference", "tool_name": "T"},
        {"type": "never_heard_of"},
        3,
    ]
    result = call_result("mcp__s__t", blocks, blocks)
    assert [item.content for item in result.content if isinstance(item, v1.ContentItem)] == [
        v1.TextBlock(text="said"),
        v1.ImageBlock(data=PIXEL, mime_type="image/png"),
        v1.AudioBlock(data=PIXEL, mime_type="audio/mp3"),
        v1.EmbeddedResource(resource=v1.TextResource(uri="x://a", text="t", mime_type="text/plain")),
        v1.EmbeddedResource(resource=v1.BlobResource(uri="x://b", blob="AA==")),
        v1.ResourceLink(uri="x://c", name="c"),
        v1.TextBlock(text="[application/pdf d, 3 bytes]"),
        v1.TextBlock(text="Tool: T"),
        v1.TextBlock(text="[never_heard_of]"),
    ]


def test_a_failing_server_keeps_its_pictures() -> None:
    image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    result = call_result("mcp__s__t", [{"type": "text", "text": "no"}, image], None, error=True)
    assert result.content == [
        v1.ContentItem(content=v1.TextBlock(text="```\nno\n```")),
        v1.ContentItem(content=v1.ImageBlock(data=PIXEL, mime_type="image/png")),
    ]


@each_row(
    ("name", "content", "structured", "shown"),
    [
        ("WebSearch", "for the model", {"results": [
            {"tool_use_id": "s", "content": [{"title": "A [b]", "url": "https://a.org/x(1)", "snippet": "about"}, {"title": "no address"}]},
            " In short. ",
        ]}, ["- [A \\[b\\]](https://a.org/x%281%29): about", "In short."]),
        ("WebFetch", "for the model", {"code": 200, "result": "The page says"}, ["The page says"]),
        ("Glob", "", {"filenames": ["/song/a", "/song/b"], "numFiles": 2, "truncated": True}, ["```\n/song/a\n/song/b\n```", "There are more."]),
        ("Grep", "", {"mode": "content", "content": "a:1:x\n", "filenames": []}, ["```\na:1:x\n```"]),
        ("Grep", "No files found", {"filenames": [], "numFiles": 0}, ["Nothing found."]),
        ("Agent", "framed", {"status": "completed", "content": [{"type": "text", "text": "Found it"}]}, ["Found it"]),
        ("Agent", "framed", {"status": "async_launched", "isAsync": True}, ["Works in the background."]),
        ("Task", "as it was", None, ["as it was"]),
        ("ToolSearch", [], {"matches": ["WebFetch"]}, ["Found: WebFetch"]),
        ("ExitPlanMode", "User has approved", {"plan": "# Plan", "isAgent": False}, ["# Plan"]),
        ("ExitPlanMode", "User has approved", {"plan": None}, ["User has approved"]),
        ("AskUserQuestion", "answered", {"answers": {"Which?": "Blue"}}, ["Blue"]),
        ("TodoWrite", "Todos have been modified", {"oldTodos": [], "newTodos": []}, []),
        ("TaskCreate", "Task #1 created", {"task": {"id": "1"}}, ["Task #1 created"]),
        ("TaskStop", "{}", {"message": "Stopped t1", "task_id": "t1"}, ["Stopped t1"]),
        ("Unheard", None, None, []),
        ("Unheard", "x", 3, ["x"]),
    ],
)  # fmt: skip
def test_each_tool_shows_what_the_user_wants_to_see(name: str, content: Any, structured: Any, shown: list[str]) -> None:
    result = call_result(name, content, structured)
    assert texts(result) == shown and not result.failed


NAMES = (
    "Bash",
    "Read",
    "Edit",
    "Write",
    "MultiEdit",
    "NotebookEdit",
    "Glob",
    "Grep",
    "WebSearch",
    "Agent",
    "AskUserQuestion",
    "mcp__a__b",
)


CONTENTS: tuple[Any, ...] = (
    None,
    "",
    [],
    [{}],
    [{"type": "text"}],
    [{"type": "image", "source": {"type": "url", "url": "u"}}],
)
STRUCTURED: tuple[Any, ...] = (
    None,
    "",
    [],
    {},
    {"file": 3, "type": "text"},
    {"type": "pdf"},
    {"results": [3]},
    {"answers": 3},
    {"edits": [3]},
)


@each_row("name", NAMES)
def test_a_result_that_is_not_as_we_know_it_is_harmless(name: str) -> None:
    for content, structured, error in product(CONTENTS, STRUCTURED, (None, True)):
        result = call_result(name, content, structured, error=error)
        assert result.failed is bool(error)
        v1.ToolCallUpdate(tool_call_id=v1.ToolCallId("t"), content=result.content, locations=result.locations)


def test_the_raw_output_is_the_structured_result_or_else_the_text() -> None:
    assert call_result("Read", "x", {"type": "text"}).raw_output == {"type": "text"}
    assert call_result("Unheard", [{"type": "text", "text": "x"}]).raw_output == {
        "output": [{"type": "text", "text": "x"}]
    }
