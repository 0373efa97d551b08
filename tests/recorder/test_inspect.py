"""`antiphon inspect` as people use it: in a pipe, with choices, as data, as a page, on files that are no recordings."""

import io
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from antiphon.cli.debug.inspect import parser
from antiphon.cli.main import main
from antiphon.recorder.views.style import many
from tests.recorder.recordings import Tape
from tests.rows import each_row
from tools.inspect_page import page

ROOT = Path(__file__).resolve().parents[2]
DEMO = "examples/recordings/demo.jsonl"
PAGE = (ROOT / "docs" / "inspect.md").read_text(encoding="utf-8")


class Inspection:
    """Where recordings are inspected."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self.status = 0
        self.err = ""

    def inspect(self, *words: str) -> str:
        self.status = main(["inspect", *words])
        done = self._capsys.readouterr()
        self.err = done.err
        return done.out

    def tape(self, tape: Tape) -> str:
        path = self.folder / "tape.jsonl"
        path.write_bytes(b"".join(tape.lines))
        return str(path)

    def json(self, *words: str) -> Any:
        return msgspec.json.decode(self.inspect("--json", *words))


@pytest.fixture
def inspection(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Inspection:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(ROOT)
    return Inspection(tmp_path, capsys)


def full_turn() -> Tape:
    """A turn with everything in it, and a second one that fails."""
    tape = Tape().meet().prompt(2, "sing a song")
    tape.update("tool_call", toolCallId="c", title="Read a.txt", kind="read", status="pending")
    tape.permission(0, {"toolCallId": "c"}).later(2).choose(0, "yes")
    tape.update("tool_call_update", toolCallId="c", status="completed")
    for _ in range(5):
        tape.later(0.25).say("la")
    tape.answer(2, {"stopReason": "end_turn"})
    return tape.prompt(3, "louder").refuse(3, -32603, "no voice").ask(4, "session/set_mode", {"sessionId": "s"})


def test_the_example_on_the_page_is_what_the_program_prints() -> None:
    assert page() == PAGE, "run `python tools/inspect_page.py`"


def test_every_option_is_on_the_page_and_no_other() -> None:
    options = {name for action in parser()._actions for name in action.option_strings if name.startswith("--")}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE)) == options - {"--help"}


def test_no_line_is_wider_than_the_terminal(inspection: Inspection, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (60, 80, 140):
        monkeypatch.setenv("COLUMNS", str(width))
        lines = inspection.inspect(DEMO, "--diagram").splitlines()
        assert max(len(line) for line in lines if "https://" not in line) <= width  # half an address leads nowhere


def test_runs_of_pieces_are_one_arrow(inspection: Inspection) -> None:
    assert re.search(
        r"◀─+ 5 \u00d7 agent_message_chunk \d+ B in 1\.00 s │",
        inspection.inspect(inspection.tape(full_turn()), "--diagram"),
    )


def test_a_terminal_without_unicode_gets_ascii(inspection: Inspection, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    main(["inspect", inspection.tape(full_turn().meet().prompt(2, "sing " * 100)), "--diagram"])
    out.flush()
    text = out.buffer.getvalue().decode("ascii")
    assert "session/prompt sing a song ---" in text and "\\u" not in text


def test_nothing_that_a_terminal_would_obey_is_written(inspection: Inspection) -> None:
    bad = "\x1b[2J\u202e\x9b31m"
    tape = (
        Tape()
        .ask(0, "initialize", {"clientInfo": {"name": bad, "version": bad}})
        .answer(0, {"agentInfo": {"name": bad}})
    )
    tape.ask(1, f"x/{bad}", {}).refuse(1, -1, bad).prompt(2, bad).update(bad, content={"type": "text", "text": bad})
    tape.update("tool_call", toolCallId=bad, title=bad, kind=bad, status=bad).permission(7, {"toolCallId": bad})
    tape.choose(7, bad).answer(2, {"stopReason": bad}).line(t=1, dir="a2c", raw=bad)
    for words in (("--diagram",), ("--message", "1-20"), ("--turn", "1"), ("--deviations",)):
        shown = inspection.inspect(inspection.tape(tape), *words)
        assert shown and not set(shown) & set(bad) - set("[2J31m")


@each_row(
    ("words", "messages"),
    [
        (("--turn", "2"), [16, 17]),
        (("--turn", "1-2", "--dir", "c2a"), [5, 8, 16]),
        (("--method", "tool_call*"), [6, 9]),
        (("--method", "session/new"), [3, 4]),
        (("--errors",), [17]),
        (("--deviations",), [18]),
        (("--grep", "LOUDER"), [16]),
        (("--session", "nobody"), []),
        (("--message", "2-3"), [2, 3]),
    ],
)
def test_a_choice_of_messages(inspection: Inspection, words: tuple[str, ...], messages: list[int]) -> None:
    path = inspection.tape(full_turn())
    assert [entry["message"] for entry in inspection.json(path, "--messages", *words)["entries"]] == messages
    shown = inspection.inspect(path, *words)
    assert [int(number) for number in re.findall(r"^ +(\d+) +\d+\.\d{3} ", shown, re.MULTILINE)] == messages


def test_a_deviation_is_printed_below_its_message(inspection: Inspection) -> None:
    assert re.search(
        r"18 .*session/set_mode.*\n +! .*modeId", inspection.inspect(inspection.tape(full_turn()), "--deviations")
    )


def test_a_message_is_printed_whole(inspection: Inspection) -> None:
    shown = inspection.inspect(inspection.tape(full_turn()), "--message", "16")
    assert msgspec.json.decode(shown[shown.index("{") :])["params"]["prompt"][0]["text"] == "louder"


def test_json_has_the_analysis_and_the_messages_only_when_asked(inspection: Inspection) -> None:
    found = inspection.json(DEMO)
    assert found["messages"] == 96 and found["undecodable"] == 0 and "entries" not in found
    assert {"rule", "message", "text"} <= found["deviations"][0].keys()
    assert len(inspection.json(DEMO, "--messages")["entries"]) == 96


def test_the_user_chooses_what_counts_as_slow(inspection: Inspection) -> None:
    path = inspection.tape(full_turn())
    assert len(inspection.json(path)["slow"]) == 1 and len(inspection.json(path, "--slow", "0.2")["slow"]) == 6


def test_stdin_is_a_recording_too(inspection: Inspection, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (("-",), ("-f", "-")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"".join(full_turn().lines)), encoding="utf-8"))
        assert "sing a song" in inspection.inspect(*words)


def test_strict_is_for_ci(inspection: Inspection) -> None:
    inspection.inspect(inspection.tape(full_turn()), "--strict")
    assert inspection.status == 1
    inspection.inspect(inspection.tape(full_turn()))
    assert inspection.status == 0


@pytest.mark.parametrize(("text", "why"), [("", "it is empty"), ("hello\nyou\n", "no message in 2 lines")])
def test_a_file_that_is_not_a_recording_is_reported(inspection: Inspection, text: str, why: str) -> None:
    path = inspection.folder / "x.jsonl"
    path.write_text(text, encoding="utf-8")
    assert inspection.inspect(str(path)) == "" and inspection.status == 1
    assert f"`{path}` is not a recording: {why}" in inspection.err and "hint: a line is" in inspection.err
    assert why in inspection.json(str(path))["error"]["message"] and inspection.status == 1


@each_row(
    ("words", "status", "text"),
    [
        (("nowhere.jsonl",), 2, "no such file"),
        ((), 2, "name a recording"),
        ((DEMO, "--turn", "x"), 2, "`x` is neither a number"),
        ((DEMO, "--turn", "3-1"), 2, "`3-1` is not a range"),
        ((DEMO, "--messages"), 2, "--messages is for --json"),
        ((DEMO, "-f", "--json"), 2, "--follow"),
        ((DEMO, "--json", "--html"), 2, "ask for one"),
        ((DEMO, "--html", DEMO), 2, "over the recording"),
        ((DEMO, "--html", "nowhere/page.html"), 1, "cannot be written"),
    ],
)
def test_misuse_is_reported_with_a_hint(inspection: Inspection, words: tuple[str, ...], status: int, text: str) -> None:
    assert (inspection.inspect(*words) == "") == ("--json" not in words) and inspection.status == status
    assert text in inspection.err and "hint: " in inspection.err


def test_a_page_is_written_beside_the_recording_for_its_owner_alone(inspection: Inspection) -> None:
    path = inspection.tape(full_turn())
    assert inspection.inspect("--html", path) == "" and "wrote" in inspection.err
    page = inspection.folder / "tape.html"
    assert page.stat().st_mode & 0o777 == 0o600 and "sing a song" in page.read_text(encoding="utf-8")
    assert inspection.inspect(path, "--html", "-") == page.read_text(encoding="utf-8")


def test_numbers_that_follow_each_other_are_joined() -> None:
    assert (many([3]), many([1, 2, 3, 5, 7], 2)) == ("message 3", "messages 1-3, 5 and 1 more")
