"""`antiphon record` as an editor starts it: a real program between a real agent and us."""

import hashlib
import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli.main import main
from antiphon.recorder.writer import BACKLOG
from tests.limits import limit

RECORD = [sys.executable, "-m", "antiphon", "record"]
HOSTILE = bytes(range(256)) * 3 + b'\n{"a":1}\r\n{"b":"\xff"}\n\n\x00\nno end'


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


def record(*words: str, input: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*RECORD, *words], input=input, capture_output=True, timeout=limit(), env=os.environ | environment
    )


def started(*words: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([*RECORD, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def line_from(tap: "subprocess.Popen[bytes]") -> bytes:
    assert tap.stdout is not None
    return tap.stdout.readline()


def lines_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def sent_in(path: Path, direction: str) -> list[Any]:
    return [line.get("msg", line.get("raw")) for line in lines_in(path) if line["dir"] == direction]


def test_bytes_pass_unchanged_and_both_directions_are_recorded_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    done = record("-o", str(path), "--", "cat", input=HOSTILE)
    assert (done.returncode, done.stdout) == (0, HOSTILE)
    assert done.stderr.decode() == f"antiphon record: recording to {path}\n"
    note, *lines = lines_in(path)
    assert note["dir"] == "note" and note["command"] == ["cat"] and note["note"].startswith("antiphon record ")
    assert sent_in(path, "c2a") == sent_in(path, "a2c")
    assert {"a": 1} in sent_in(path, "a2c") and lines[-1]["partial"] is True
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)
    # A question is never behind its answer.
    kinds = [(line["dir"], line.get("raw")) for line in lines]
    assert kinds.index(("c2a", "no end")) < kinds.index(("a2c", "no end"))


def test_the_agents_status_is_ours_and_all_its_words_are_passed_on_first(tmp_path: Path) -> None:
    agent = python("import os; os.write(2, b'to people\\n'); print(end='x' * 3_000_000, flush=True); os._exit(7)")
    done = record("--stderr", "-q", "-o", str(tmp_path / "a.jsonl"), "--", *agent)
    assert (done.returncode, len(done.stdout), done.stderr) == (7, 3_000_000, b"to people\n")
    assert sent_in(tmp_path / "a.jsonl", "stderr") == ["to people"]
    assert sent_in(tmp_path / "a.jsonl", "a2c") == ["x" * 3_000_000]


def test_an_agent_that_a_signal_ends_gives_128_and_its_number(tmp_path: Path) -> None:
    done = record("-o", str(tmp_path / "a.jsonl"), "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 128 + signal.SIGKILL


def test_a_full_disk_is_reported_once_and_stops_nothing() -> None:
    many = b'{"a":1}\n' * 50_000
    done = record("-o", "/dev/full", "--", "cat", input=many)
    assert (done.returncode, done.stdout) == (0, many)
    assert done.stderr.decode().count("\n") == 1
    assert "/dev/full cannot be written (No space left on device)" in done.stderr.decode()


def test_without_a_file_it_is_in_the_state_directory_for_our_eyes_only(tmp_path: Path) -> None:
    done = record(
        "--rotate",
        "1K",
        "--redact",
        "secrets",
        "--",
        "cat",
        "-",
        input=b'{"token":"abc"}\n' * 20,
        ANTIPHON_STATE_DIR=str(tmp_path),
    )
    [first, *rest] = sorted((tmp_path / "recordings").iterdir())
    assert done.returncode == 0 and first.name.startswith("cat-") and str(first) in done.stderr.decode()
    assert rest and all(file.stat().st_size <= 1024 and file.stat().st_mode & 0o777 == 0o600 for file in (first, *rest))
    assert b"abc" not in b"".join(file.read_bytes() for file in (first, *rest)) and b"abc" in done.stdout


def test_signals_are_passed_on_and_the_agent_decides(tmp_path: Path) -> None:
    agent = python(
        "import os, signal, sys\n"
        "for name in ('SIGTERM', 'SIGINT', 'SIGHUP'):\n"
        "    signal.signal(getattr(signal, name), lambda number, _: os.write(1, b'%d\\n' % number))\n"
        "os.write(1, b'ready\\n')\n"
        "while os.read(0, 100): pass\n"
        "sys.exit(3)"
    )
    with started("-q", "-o", str(tmp_path / "a.jsonl"), "--", *agent) as tap:
        assert line_from(tap) == b"ready\n"
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            tap.send_signal(number)
            assert line_from(tap) == b"%d\n" % number
        _, err = tap.communicate(timeout=limit())
        assert (tap.returncode, err) == (3, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="processes are watched by descriptors of Linux")
def test_killed_without_warning_it_leaves_no_process_behind(tmp_path: Path) -> None:
    """The agent does not end when its stdin does, and has a child that left its group."""
    agent = python(
        "import os, time\n"
        "child = os.posix_spawn('/bin/sleep', ['sleep', '1000'], os.environ, setsid=True)\n"
        "os.read(0, 100)\n"
        "os.write(1, b'%d %d\\n' % (os.getpid(), child))\n"
        "__import__('signal').pause()"
    )
    with started("-q", "-o", str(tmp_path / "a.jsonl"), "--", *agent) as tap:
        assert tap.stdin is not None
        tap.stdin.write(b"go\n")
        tap.stdin.flush()
        left = [os.pidfd_open(int(pid)) for pid in line_from(tap).split()]
        tap.kill()
        for fd in left:
            assert select.select([fd], [], [], limit())[0]
            os.close(fd)


def test_a_program_that_is_not_there_ends_in_a_hint_and_leaves_no_file(tmp_path: Path) -> None:
    status = record("-o", str(tmp_path / "a.jsonl"), "--", "/not/here")
    assert (status.returncode, status.stdout) == (127, b"")
    assert status.stderr.decode().endswith("hint: install it, or give its full path\n")
    assert list(tmp_path.iterdir()) == []


def test_the_agent_is_started_before_anything_heavy_is_loaded() -> None:
    """Everything that is imported before it: an editor waits for all of that."""
    early = "antiphon.cli.main, antiphon.cli.debug.record, antiphon.recorder.writer, antiphon.recorder.tap"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys, {early}; print(*sys.modules)"],
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    heavy = {"argparse", "asyncio", "json", "logging", "msgspec", "pathlib", "re", "subprocess", "threading", "typing"}
    assert not heavy & set(done.stdout.split())


@pytest.mark.parametrize(
    "words",
    [[], ["-o", "x"], ["--"], ["--redact", "tunes", "--", "cat"], ["--rotate", "much", "--", "cat"], ["--keep", "-1", "--", "cat"], ["cat", "--", "cat"],
     ["--token-file", "x", "--", "cat"], ["--connect", "ws://localhost/acp", "--", "cat"],
     ["--from", "x"], ["--from", "x", "-o", "y", "--redact", "all", "--", "cat"], ["-o", "", "--", "cat"]],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_reported(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("error: ") and printed.err.splitlines()[-1].startswith("hint: ")


def test_a_file_that_cannot_be_created_is_reported_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "-o", "/not/here/a.jsonl", "--", "cat"]) == 2
    assert capsys.readouterr().err.startswith(
        "error: `/not/here/a.jsonl` cannot be written: there is no such directory\n"
    )


def test_a_recording_is_redacted_afterwards(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    source.write_text('{"t":0,"dir":"c2a","msg":{"password":"hunter2"}}\n', encoding="utf-8")
    assert main(["record", "--from", str(source), "-o", str(target), "--redact", "all"]) == 0
    assert sent_in(target, "c2a") == [{"password": "[secret 1]"}]
    assert capsys.readouterr().err == f"antiphon record: 1 lines to {target}\n"
    assert main(["record", "--from", str(tmp_path / "none"), "-o", str(target), "--redact", "all"]) == 2


@pytest.mark.slow
def test_two_full_directions_do_not_wait_for_each_other(tmp_path: Path) -> None:
    """The agent reads and writes at once; we write everything before we read a byte."""
    agent = python(
        "import os, threading\n"
        "def hear():\n"
        "    size = 0\n"
        "    while block := os.read(0, 65536): size += len(block)\n"
        "    os.write(2, b'%d' % size)\n"
        "ear = threading.Thread(target=hear); ear.start()\n"
        "print(end='y' * 8_000_000, flush=True)\n"
        "ear.join()"
    )
    with started("-q", "-o", str(tmp_path / "a.jsonl"), "--", *agent) as tap:
        assert tap.stdin is not None and tap.stdout is not None and tap.stderr is not None
        tap.stdin.write(b"x" * 8_000_000)
        tap.stdin.close()
        assert tap.stderr.read(7) == b"8000000"
        assert len(tap.stdout.read()) == 8_000_000


def assert_passes(text: bytes, recording: Path) -> bytes:
    """Send a line through `cat`, see it come back, and return it."""
    line = b'{"data":"%s"}\n' % text
    done = record("-o", str(recording), "--", "cat", input=line)
    assert hashlib.sha256(done.stdout).digest() == hashlib.sha256(line).digest()
    return line


@pytest.mark.slow
def test_a_line_of_64_megabytes_passes_and_one_that_fits_into_the_backlog_is_recorded(tmp_path: Path) -> None:
    """More than the backlog is recorded only if the disk keeps up, which a busy machine does not promise."""
    assert_passes(b"A" * (64 * 1024 * 1024), tmp_path / "a.jsonl")
    line = assert_passes(b"A" * (BACKLOG // 3), tmp_path / "b.jsonl")
    _, sent, answered = (tmp_path / "b.jsonl").read_bytes().split(b"\n")[:-1]
    assert line[:-1] in sent and line[:-1] in answered


@pytest.mark.slow
def test_an_agent_whose_reader_is_gone_is_recorded_on_and_ended(tmp_path: Path) -> None:
    agent = python(
        "import os, time\n"
        "os.write(1, b'first\\n')\n"
        "os.read(0, 100)\n"
        "os.write(1, b'second\\n')\n"
        "os.write(1, b'third\\n')\n"
        "__import__('signal').pause()"
    )
    with started("-q", "-o", str(tmp_path / "a.jsonl"), "--", *agent) as tap:
        assert tap.stdin is not None and tap.stdout is not None
        assert line_from(tap) == b"first\n"
        tap.stdout.close()
        tap.stdin.write(b"go\n")
        tap.stdin.flush()
        assert tap.wait(limit()) == 128 + signal.SIGTERM
    assert sent_in(tmp_path / "a.jsonl", "a2c") == ["first", "second", "third"]


@pytest.mark.slow
def test_a_process_that_the_agent_leaves_behind_with_its_output_is_not_waited_for(tmp_path: Path) -> None:
    agent = python(
        "import os; os.close(2); print(os.posix_spawn('/bin/sleep', ['sleep', '1000'], os.environ), flush=True)"
    )
    done = record("-q", "-o", str(tmp_path / "a.jsonl"), "--", *agent)
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.returncode == 0 and sent_in(tmp_path / "a.jsonl", "a2c") == [int(done.stdout)]


@pytest.mark.slow
def test_a_disk_that_does_not_answer_stops_nothing(tmp_path: Path) -> None:
    stuck = tmp_path / "stuck"
    os.mkfifo(stuck)
    fd = os.open(stuck, os.O_RDWR)  # open, so that it can be written; it has no reader
    many = b'{"a":1}\n' * 200_000
    done = record("-q", "-o", str(stuck), "--", "cat", input=many)
    os.close(fd)
    assert (done.returncode, done.stdout) == (0, many)
    assert (
        done.stderr.decode()
        == "antiphon record: the end of the recording could not be written: the disk does not answer\n"
    )


@pytest.mark.slow
def test_the_end_of_either_side_is_passed_on(tmp_path: Path) -> None:
    """An agent that closes its stdout and lives on until its stdin ends."""
    agent = python("import os; os.close(1); os.read(0, 100); os._exit(5)")
    with started("-q", "-o", str(tmp_path / "a.jsonl"), "--", *agent) as tap:
        assert tap.stdin is not None and tap.stdout is not None
        assert tap.stdout.read() == b""
        tap.stdin.close()
        assert tap.wait(limit()) == 5
