"""A recording that is still being written: whatever happens to the file, each line comes once and whole."""

from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon.cli.debug.inspect import run
from antiphon.recorder.views.diagram import FileTail
from tests.recorder.recordings import Tape

Steps = list[Callable[[], object]]


def followed(path: Path, *steps: Callable[[], object]) -> list[bytes]:
    """The lines that come while these things happen, one each time nothing is new."""
    left, restarts = list(steps), []
    tail = FileTail(path, pause=lambda: None)
    tail.restarted = lambda: restarts.append(b"(again)")
    lines = []
    for line in tail:
        if line is not None:
            lines.append(line)
        elif left:
            left.pop(0)()
        else:
            break
    return lines + restarts


def adding(path: Path, data: bytes) -> Callable[[], object]:
    def add() -> None:
        with path.open("ab") as file:
            file.write(data)

    return add


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    assert followed(path, lambda: None, adding(path, b"1\n2\n"), adding(path, b"3\n")) == [b"1\n", b"2\n", b"3\n"]


def test_half_a_line_waits_for_its_other_half(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    assert followed(path, adding(path, b"1\n2"), adding(path, b"2"), adding(path, b"2\n")) == [b"1\n", b"222\n"]


def test_a_file_that_is_rotated_is_read_to_its_end_and_then_the_next(tmp_path: Path) -> None:
    path, old = tmp_path / "x.jsonl", tmp_path / "x.jsonl.1"
    steps: Steps = [adding(path, b"1\n"), lambda: path.rename(old), adding(old, b"2\nhalf"), adding(path, b"3\n")]
    assert followed(path, *steps) == [b"1\n", b"2\n", b"half", b"3\n", b"(again)"]


def test_a_file_that_is_cut_is_read_again_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    steps: Steps = [adding(path, b"1\n2\n"), lambda: path.write_bytes(b""), adding(path, b"3\n")]
    assert followed(path, *steps) == [b"1\n", b"2\n", b"3\n", b"(again)"]


def test_messages_are_shown_as_they_come_and_the_summary_when_it_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.jsonl"
    tape = Tape().meet().prompt(2).say("la").say("la").answer(2, {"stopReason": "end_turn"})
    left: Steps = [adding(path, b"".join(tape.lines[:5])), adding(path, b"".join(tape.lines[5:]))]

    def pause(seconds: float) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop(0)()

    monkeypatch.setattr("antiphon.recorder.views.diagram.time.sleep", pause)
    monkeypatch.setenv("COLUMNS", "100")
    assert run(["--follow", str(path)]) == 0
    shown, err = capsys.readouterr()
    names = (
        "client",
        "initialize editor",
        "session/prompt sing",
        "2 \u00d7 agent_message_chunk",
        "editor 1 ↔ singer 2",
        "Turns",
    )
    places = [shown.index(name) for name in names]
    assert places == sorted(places) and "\x1b" not in shown and f"waiting for `{path}`" in err


def test_a_choice_holds_while_following_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join(Tape().meet().prompt(2).say("la").lines))

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("antiphon.recorder.views.diagram.time.sleep", interrupt)
    run(["-f", str(path), "--method", "session/prompt"])
    drawn = capsys.readouterr().out.split("\n\n")[0]
    assert "session/prompt" in drawn and "initialize" not in drawn
