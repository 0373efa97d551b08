"""`antiphon run` that is stopped: by signals that are really sent, by its own limit, by a reader that goes away."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli import agents
from tests.cli.program import Place, ended
from tests.cli.test_run_flags import git, repository
from tests.limits import limit

pytestmark = pytest.mark.slow  # each starts several programs


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def read_until(program: "subprocess.Popen[bytes]", wanted: bytes) -> None:
    """Read until it has sent this."""
    assert program.stdout is not None
    line = b""
    while wanted not in line:
        byte = os.read(program.stdout.fileno(), 1)
        assert byte, f"it ended after {line!r}"
        line += byte


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:  # it ended before it was looked at, or while it was
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_cancels_the_turn(number: signal.Signals, place: Place) -> None:
    program = place.start("go", "--agent", place.agent(agents.Waits))
    read_until(program, b"begun")
    program.send_signal(number)
    done = ended(program)
    assert done.status == 130 and "cancelling" in done.err and "stopped: cancelled" in done.err
    assert "▸ Work" in done.err  # what was not finished is shown
    assert place.received[-1] == "session/cancel"


def test_a_signal_while_the_agent_starts_ends_it(place: Place) -> None:
    ready = place.cwd / "ready"
    os.mkfifo(ready)
    program = place.start("go", "--agent", f"sh -c 'echo > {ready}; exec sleep 600'")
    ready.read_bytes()  # it is there
    program.send_signal(signal.SIGINT)
    assert ended(program).status == 130


def test_a_second_ctrl_c_ends_the_whole_tree_at_once(place: Place) -> None:
    program = place.start("go", "--agent", place.agent(agents.NeverEnds))
    read_until(program, b"working")
    pids = [int(pid) for pid in place.received[-1].split()[1:]]
    assert len(pids) == 2 and all(map(is_alive, pids))
    program.send_signal(signal.SIGINT)
    assert program.stderr is not None and b"cancelling" in program.stderr.readline()
    program.send_signal(signal.SIGINT)
    assert program.wait(limit()) == 130
    ended(program)
    give_up = time.monotonic() + limit()
    while any(map(is_alive, pids)):  # they are killed; the kernel takes a moment for it on a busy machine
        assert time.monotonic() < give_up


def test_an_agent_that_ignores_the_cancellation_is_ended_with_its_tree(place: Place) -> None:
    program = place.start("go", "--agent", place.agent(agents.NeverEnds))
    read_until(program, b"working")
    pids = [int(pid) for pid in place.received[-1].split()[1:]]
    program.send_signal(signal.SIGINT)
    assert ended(program).status == 130
    assert not any(map(is_alive, pids))


def test_the_limit_cancels_the_turn_and_ends_with_124(place: Place) -> None:
    done = place.run("go", "--agent", place.agent(agents.Waits), "--timeout", "1.5")
    assert done.status == 124 and done.out == "begun\n"
    assert "longer than 1.5s" in done.err and "hint: " in done.err
    assert place.received[-1] == "session/cancel"


def test_the_limit_counts_while_the_agent_starts(place: Place) -> None:
    done = place.run("go", "--agent", "sleep 600", "--timeout", "0.5s", "--json")
    assert done.status == 124 and done.result["exitCode"] == 124


def test_a_cancelled_turn_has_its_result(place: Place) -> None:
    program = place.start("/slow 1000", "--json")
    read_until(program, b'"text":"2 "}\n')
    program.send_signal(signal.SIGINT)
    result = ended(program).result
    assert (result["exitCode"], result["stopReason"]) == (130, "cancelled")
    assert result["text"].startswith("1 2 ") and "error" not in result


def test_a_reader_that_goes_away_ends_the_run_without_a_trace(place: Place) -> None:
    program = place.start("/slow 1000")
    read_until(program, b"2 ")
    assert program.stdout is not None and program.stderr is not None
    program.stdout.close()
    err = program.stderr.read().decode()
    program.stderr.close()
    assert program.wait(limit()) == 130 and "Traceback" not in err and "BrokenPipe" not in err


def test_ctrl_c_while_the_prompt_is_read_ends_it(place: Place) -> None:
    program = place.start("-", stdin=subprocess.PIPE)
    log = place.state / "logs" / "antiphon.log"
    while not log.exists():  # it is opened just before
        os.sched_yield()
    program.send_signal(signal.SIGINT)
    assert program.wait(limit()) in (130, -signal.SIGINT)
    ended(program)


# A worktree is never left behind.


def worktrees(place: Place) -> list[str]:
    """The worktrees and branches of runs that there are."""
    lines = [git(place, *words).splitlines() for words in (("worktree", "list"), ("branch", "--list", "antiphon/*"))]
    return [*lines[0][1:], *lines[1]]


def test_a_worktree_is_removed_if_ctrl_c_comes_while_the_prompt_is_read(place: Place) -> None:
    repository(place)
    program = place.start("--worktree", "-", stdin=subprocess.PIPE)
    log = place.state / "logs" / "antiphon.log"
    while not log.exists():
        os.sched_yield()
    program.send_signal(signal.SIGTERM)
    assert program.wait(limit()) in (130, -signal.SIGTERM)
    ended(program)
    assert worktrees(place) == []


@pytest.mark.parametrize("place_of_signal", ["before", "after"])
def test_a_worktree_is_removed_if_a_signal_comes_while_it_is_made(place: Place, place_of_signal: str) -> None:
    repository(place)
    reached, released, programs = place.cwd.parent / "reached", place.cwd.parent / "released", place.cwd.parent / "bin"
    os.mkfifo(reached)
    os.mkfifo(released)
    programs.mkdir()
    wait, real = f"echo > {reached}; read _ < {released}", shutil.which("git")
    made = f'"{real}" "$@"' if place_of_signal == "after" else ":"
    rest = "exit 0" if place_of_signal == "after" else f'exec "{real}" "$@"'
    (programs / "git").write_text(
        f'#!/bin/sh\ncase "$*" in *"worktree add"*) {made}; {wait}; {rest};; esac\nexec "{real}" "$@"\n',
        encoding="utf-8",
    )
    (programs / "git").chmod(0o755)
    place.env["PATH"] = f"{programs}:{place.env['PATH']}"
    program = place.start("hi", "--worktree")
    reached.read_bytes()
    program.send_signal(signal.SIGTERM)
    released.write_text("go\n", encoding="utf-8")
    assert ended(program).status == 130 and worktrees(place) == []


def test_a_reader_that_goes_away_leaves_no_worktree_and_the_patch_is_written(place: Place) -> None:
    repository(place)
    reached, released = place.cwd.parent / "reached", place.cwd.parent / "released"
    os.mkfifo(reached)
    os.mkfifo(released)
    for change, kept in (("true", 0), ("touch new", 2)):
        command = f"/run {change}; echo > {reached}; read _ < {released}"
        program = place.start(command, "--worktree", "--patch", "p.patch", "--json", "--on-ask", "allow")
        reached.read_bytes()
        assert program.stdout is not None and program.stderr is not None
        program.stdout.close()
        released.write_text("go\n", encoding="utf-8")
        err = program.stderr.read().decode()
        program.stderr.close()
        assert program.wait(limit()) == 130 and len(worktrees(place)) == kept
        assert ("on branch antiphon/run-" in err) is bool(kept)
        assert ("new" in (place.cwd / "p.patch").read_text(encoding="utf-8")) is bool(kept)
