"""`antiphon replay` as a program: what editors, scripts and tests start."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from antiphon.cli.main import main
from antiphon.recorder.replay.agent import Player, serve
from tests.cli.program import Place
from tests.limits import limit
from tests.recorder.replay_recordings import INITIALIZE, TURN, lines, prompt, raw, strict, tolerant

ANTIPHON = [sys.executable, "-m", "antiphon"]
SAID = b"".join(raw(line) + b"\n" for line in TURN if line[0] == "c2a")
ANSWERED = b"".join(raw(line) + b"\n" for line in TURN if line[0] == "a2c")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "turn.jsonl"
    path.write_bytes(lines(TURN))
    return path


def served(player: Player, line: bytes) -> bytes:
    """What a client that says this and closes its end gets."""
    (source, near), (far, target) = os.pipe(), os.pipe()
    os.write(near, line)
    os.close(near)
    serve(player, lambda player: None, source, target)
    os.close(source)
    os.close(target)
    with os.fdopen(far, "rb") as received:
        return received.read()


def test_piping_the_client_in_gives_the_agent_out() -> None:
    assert served(strict(TURN), SAID) == ANSWERED
    assert served(tolerant(TURN), SAID) == ANSWERED


def test_a_last_line_without_an_end_counts() -> None:
    assert served(tolerant(TURN), SAID[:-1]) == ANSWERED


def test_after_a_mismatch_the_client_gets_an_error_and_nothing_more_is_read() -> None:
    player = strict(TURN)
    received = served(player, raw(INITIALIZE) + b"\n" + raw(prompt(9, "x")) + b"\n" + SAID)
    assert [sorted(msgspec.json.decode(line)) for line in received.splitlines()] == [
        ["id", "jsonrpc", "result"],
        ["error", "id", "jsonrpc"],
    ]
    assert len(player.problems) == 1


def test_a_client_that_is_gone_is_not_an_error() -> None:
    (source, near), (far, target) = os.pipe(), os.pipe()
    os.write(near, SAID)
    os.close(far)
    serve(tolerant(TURN), lambda player: None, source, target)
    for fd in (source, near, target):
        os.close(fd)


def test_the_program_prints_on_stderr_what_differed_and_ends_with_1(recording: Path) -> None:
    text = raw(INITIALIZE).replace(b'"editor"', b'"\\u001b[31mvim"') + b"\n"
    done = subprocess.run(
        [*ANTIPHON, "replay", "--strict", str(recording)],
        input=text,
        capture_output=True,
        check=False,
        timeout=limit(),
    )
    assert done.returncode == 1
    assert done.stderr.decode() == (
        'error: message 1 (initialize): params.clientInfo.name: recorded "editor", got "\\u001b[31mvim"\n'
    )
    assert msgspec.json.decode(done.stdout)["error"]["code"] == -32602


def test_starting_loads_nothing_heavy_and_notes_that_there_are_several_conversations(tmp_path: Path) -> None:
    two = tmp_path / "two.jsonl"
    two.write_bytes(lines([*TURN, *TURN]))
    code = (
        "import sys; from antiphon.cli.main import main; status = main(sys.argv[1:]);"
        "print(sorted({'argparse', 'asyncio', 'selectors', 'subprocess'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "replay", "--speed", "max", str(two)],
        input=SAID,
        capture_output=True,
        check=True,
        timeout=limit(),
    )
    assert done.stdout == ANSWERED
    assert done.stderr.decode() == (
        "note: the file holds 2 conversations; this is the first, --conversation chooses\n[]\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "FILE is missing"),
        (["a", "b"], "unexpected argument `b`"),
        (["a", "--strict", "--tolerant"], "cannot be used together with"),
        (["a", "--speed", "fast"], "`fast` is not a speed"),
        (["a", "--speed", "-1"], "`-1` is not a speed"),
        (["a", "--conversation", "0"], "`0` is not a number from 1 on"),
        (["a", "--json"], "are for `--as client`"),
        (["a", "--", "agent"], "are for `--as client`"),
        (["a", "--as", "client"], "needs the agent to start"),
    ],
)
def test_words_that_make_no_sense_end_with_2(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", *words]) == 2
    printed = capsys.readouterr()
    assert sentence in printed.err and "\nhint: " in printed.err and (printed.out == "") == ("--json" not in words)


def test_a_recording_that_cannot_be_replayed_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").write_bytes(b"# nothing\n")
    (tmp_path / "two").write_bytes(lines([*TURN, *TURN]))
    for words, sentence, status in (
        (["missing"], "cannot be read: no such file", 2),
        (["empty"], "is not a recording: no message in 1 line", 1),
        (["two", "--conversation", "3"], "there is no conversation 3: the file holds 2", 2),
    ):
        assert main(["replay", str(tmp_path / words[0]), *words[1:]]) == status
        printed = capsys.readouterr().err
        assert sentence in printed and "\nhint: " in printed


@pytest.mark.slow
def test_a_recorded_run_is_the_same_run_again_and_the_agent_still_does_the_same(tmp_path: Path) -> None:
    place, file = Place(tmp_path), tmp_path / "run.jsonl"
    words = ["--allow", "Bash", "/run echo hi"]
    demo = [*ANTIPHON, "agent", "--engine", "demo"]
    tapped = shlex.join([sys.executable, "-m", "tests.recorder.tap", str(file), *demo])
    first = place.run("--agent", tapped, *words)
    again = place.run("--agent", shlex.join([*ANTIPHON, "replay", str(file), "--speed", "max"]), *words)
    assert (first.status, first.out) == (0, "`echo hi` ended with 0.\n")
    assert again == first

    replay = [*ANTIPHON, "replay", "--as", "client", "--strict", "--json", str(file), "--", *demo]
    other = tmp_path / "other"
    other.mkdir()
    done = subprocess.run(replay, cwd=other, env=place.env, capture_output=True, check=False, timeout=limit())
    report = msgspec.json.decode(done.stdout)
    assert done.returncode == 0 and report["differences"] == [] and report["matched"] > 10, done.stderr


@pytest.mark.slow
def test_an_agent_that_dies_or_is_silent_fails_the_client(recording: Path) -> None:
    for agent, early in (("pass", "exited with status 0"), ("import sys; sys.stdin.read()", "silent for 0.2 seconds")):
        words = [*ANTIPHON, "replay", "--as", "client", "--json", "--timeout", "0.2", str(recording), "--"]
        done = subprocess.run(
            [*words, sys.executable, "-c", agent],
            capture_output=True,
            check=False,
            timeout=limit(),
            cwd=recording.parent,
        )
        report = msgspec.json.decode(done.stdout)
        assert done.returncode == 1 and early in report["ended_early"], report
        assert [one["message"] for one in report["differences"]] == [2, 4, 8, 11]
