"""A terminal that is closed, and Ctrl-C, at random moments from a seed: we end in time, without a traceback, and leave nothing running."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Final

import pytest

from antiphon.cli.main import COMMANDS
from antiphon.transports import tree
from antiphon.tui.screen import PROMPT
from tests.cli.program import Place
from tests.cli.terminal import Terminal
from tests.limits import limit
from tests.rows import proved_from
from tests.waits import wait_until_gone

pytestmark = pytest.mark.slow


LOADING: Final = 1.5
"""Seconds from the start in which a random moment lies: more than loading takes on most machines."""

TOOL = "/run sh -c 'trap \"\" HUP; exec sleep 300'"

SITUATIONS: Final[dict[str, tuple[list[str], str, str]]] = {
    "a tool runs": (["--permission-mode", "bypassPermissions"], TOOL, "sleep"),
    "a question is open": ([], TOOL, "Allow"),
    "it counts": ([], "/slow 500", "2"),
    "it talks fast": ([], "/many 1000000", "0"),
    "a form is open": ([], "/ask", "?"),
}
"""What goes on when the terminal is closed: options, the prompt, and what the screen shows then."""

OUTPUTS: Final[list[list[str]]] = [[], ["--json"], ["-q"], ["--verbose"]]


def nothing_left(mark: str) -> bool:
    return wait_until_gone(mark, limit())


def closed(terminal: Terminal, mark: str) -> int:
    """Close the terminal; the status of the program, of which nothing is left."""
    terminal.hang_up()
    status = terminal.process.wait(limit())
    assert nothing_left(mark), tree.processes_with(mark)
    return status


def when(chance: random.Random, terminal: Terminal, sign: str, output: list[str]) -> None:
    """Wait until it happens, or for a random time."""
    if chance.random() < 0.6 and not output:
        terminal.wait_for(sign)
        terminal.listen(chance.uniform(0, 0.3))
    else:
        terminal.listen(chance.uniform(0, 2 * LOADING))


@pytest.mark.parametrize("seed", proved_from(4, 12))
def test_run_ends_when_its_terminal_is_closed(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    place, mark = Place(tmp_path), f"closed{os.getpid()}x{seed}"
    options, prompt, sign = SITUATIONS[list(SITUATIONS)[seed % len(SITUATIONS)]]
    output = OUTPUTS[0] if seed < 6 else chance.choice(OUTPUTS)
    words = [prompt, "--agent", "demo", *options, *output]
    with place.terminal(*words, env={tree.MARK: mark}) as terminal:
        when(chance, terminal, sign, output)
        assert closed(terminal, mark) in (130, -signal.SIGHUP)  # by the signal: before anything was loaded


@pytest.mark.parametrize("seed", proved_from(3, 8))
def test_chat_ends_when_its_terminal_is_closed(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    place, mark = Place(tmp_path), f"left{os.getpid()}x{seed}"
    options, prompt, sign = SITUATIONS[list(SITUATIONS)[seed % len(SITUATIONS)]]
    words = [sys.executable, "-m", "antiphon", "chat", "demo", *options]
    with Terminal(words, cwd=place.cwd, env={**place.env, tree.MARK: mark}) as terminal:
        if chance.random() < 0.7:
            terminal.wait_for(PROMPT)
            terminal.type(f"{prompt}\r")
        when(chance, terminal, sign, [])
        assert closed(terminal, mark) in (130, -signal.SIGHUP)


def test_run_is_cancelled_when_a_terminal_that_sends_no_signal_is_gone(tmp_path: Path) -> None:
    """A terminal that is not the controlling one of its session closes without SIGHUP: only writing to it fails."""
    place, mark = Place(tmp_path), f"silent{os.getpid()}"
    words = ["setsid", "-w", *place.words("/slow 500", "--agent", "demo")]
    with Terminal(words, cwd=place.cwd, env={**place.env, tree.MARK: mark}) as terminal:
        terminal.wait_for("2")
        terminal.hang_up()
        assert nothing_left(mark), tree.processes_with(mark)


# Ctrl-C while something is loaded.

WORDS: Final[dict[str, list[str]]] = {
    "run": ["--agent", "demo", "/slow 50"],
    "chat": ["demo"],
    "check": ["--", "cat"],
    "check-client": ["--", "cat"],
    "record": ["-q", "-o", "recording.jsonl", "--", "sleep", "60"],
    "policy": ["explain", "Bash", "ls"],
    "agent": ["--engine", "demo"],
    "setup": ["zed", "--dry-run"],
    "completion": ["bash"],
    "inspect": ["/not/here"],
    "replay": ["/not/here"],
}
"""Arguments with which a command loads what it needs; the others need none."""


@pytest.mark.prove
@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupt_at_any_moment_leaves_no_traceback(command: str, tmp_path: Path) -> None:
    chance = random.Random(command)
    place = Place(tmp_path)
    for _ in range(4):
        words = [sys.executable, "-m", "antiphon", command, *WORDS.get(command, [])]
        program = subprocess.Popen(
            words, cwd=place.cwd, env=place.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        threading.Event().wait(chance.uniform(0.03, LOADING))
        program.send_signal(signal.SIGINT)
        _, printed = program.communicate(timeout=limit())
        if b"Traceback" in printed and b"antiphon" not in printed:
            continue  # Python itself was starting, before anything of ours
        assert b"Traceback" not in printed and b"Exception ignored" not in printed, printed.decode()
        assert program.returncode in (130, -signal.SIGINT, 0, 1, 2)  # it may have ended before


@pytest.mark.parametrize("seed", proved_from(1, 4))
def test_an_interrupt_while_the_chat_is_loaded_leaves_no_traceback(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    place, mark = Place(tmp_path), f"loading{os.getpid()}x{seed}"
    words = [sys.executable, "-m", "antiphon", "chat", "demo"]
    with Terminal(words, cwd=place.cwd, env={**place.env, tree.MARK: mark}) as terminal:
        terminal.listen(chance.uniform(0.05, LOADING))
        deadline = time.monotonic() + limit()
        while terminal.process.poll() is None and time.monotonic() < deadline:
            terminal.type("\x03")  # once the chat has the terminal, a second one leaves
            terminal.listen(0.2)
        assert "Traceback" not in terminal.text or "antiphon" not in terminal.text
        assert terminal.process.poll() is not None
        assert nothing_left(mark)


LOST_IN_A_CALLBACK = """
import os, time, weakref
from antiphon.cli.interrupts import begin_loading, begin_working

class Thing: pass

def callback(_):
    os.kill(os.getpid(), 2)
    for _ in range(1000): pass

begin_loading(), begin_working()
thing = Thing()
kept = weakref.ref(thing, callback)
del thing
try:
    time.sleep(600)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_an_interrupt_that_falls_into_a_callback_is_not_lost() -> None:
    words = [sys.executable, "-c", LOST_IN_A_CALLBACK]
    done = subprocess.run(words, capture_output=True, timeout=limit(), check=False)
    assert (done.stdout, done.stderr) == (b"interrupted\n", b"")
