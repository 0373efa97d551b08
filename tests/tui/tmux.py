"""A chat in a real tmux, as people have it: what tmux makes of our output, its history included."""

import os
import pty
import shlex
import shutil
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path

import pytest

from tests.limits import limit
from tests.tui.terminal import Terminal

__all__ = ["TmuxScreen", "chat_in_tmux"]

CONFIG = "set -g status off\nset -s escape-time 0\nset -g history-limit 5000\nset -g focus-events on\n"


class TmuxScreen(Terminal):
    """What is shown in one tmux, and its keyboard."""

    command: list[str]

    @property
    def pane(self) -> str:
        """All lines of the pane, with its history."""
        words = [*self.command, "capture-pane", "-p", "-J", "-S", "-"]
        return subprocess.run(words, check=True, capture_output=True, encoding="utf-8", timeout=limit()).stdout

    @property
    def colours(self) -> str:
        """What is on the screen, with the codes of its colours."""
        words = [*self.command, "capture-pane", "-p", "-e"]
        return subprocess.run(words, check=True, capture_output=True, encoding="utf-8", timeout=limit()).stdout


@contextmanager
def chat_in_tmux(
    place: Path, *words: str, columns: int = 80, rows: int = 24, **environment: str
) -> Iterator[TmuxScreen]:
    """A chat in a tmux of its own; without tmux the test is skipped."""
    if (tmux := shutil.which("tmux")) is None:
        pytest.skip("tmux is not installed")
    work, config = place / "work", place / "tmux.conf"
    work.mkdir(exist_ok=True)
    config.write_text(CONFIG, encoding="utf-8")
    env = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "HOME") if name in os.environ}
    env |= {
        "TERM": "linux",  # of tmux itself: pyte does not know all by which an xterm is scrolled
        "LANG": "C.UTF-8",
        "ANTIPHON_STATE_DIR": str(place / "state"),
        "ANTIPHON_CONFIG_DIR": str(place / "config"),
        "CLAUDE_CODE_EXECUTABLE": "/not/here/claude",
        "CODEX_EXECUTABLE": "/not/here/codex",
        **environment,
    }
    command = [tmux, "-S", str(place / "socket"), "-f", str(config)]
    chat = shlex.join([sys.executable, "-m", "antiphon", "chat", *words])
    keyboard, other_end = pty.openpty()
    screen_size = ["-x", str(columns), "-y", str(rows)]
    process = subprocess.Popen(
        [*command, "new-session", *screen_size, chat], cwd=work, env=env, stdin=other_end, stdout=other_end, stderr=other_end,
        start_new_session=True, preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(other_end)
    terminal = TmuxScreen(process, keyboard, columns, rows)
    terminal.command = command
    terminal.resize(columns, rows)
    try:
        yield terminal
    finally:
        subprocess.run([*command, "kill-server"], capture_output=True, timeout=limit())
        terminal.close()
