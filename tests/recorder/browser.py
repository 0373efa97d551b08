"""A real browser without a window, driven over a pair of pipes. Knows as much of the DevTools protocol as the report's tests need."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["CHROMIUM", "Browser", "browsing"]

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

# The browser reads commands from descriptor 3 and writes to 4, whatever numbers the pipes have here.
_PLACED = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(read, 3), os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One page. `said` is what it complained of: errors of scripts, and what its policy forbade."""

    def __init__(self, commands: int, answers: int) -> None:
        self.messages: list[str] = []
        self._commands, self._answers = commands, answers
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self._call(f"{domain}.enable")

    def open(self, path: Path) -> None:
        """Show a file, to its last script."""
        self._call("Page.navigate", url=path.as_uri())
        self.until(f"location.href === '{path.as_uri()}' && document.readyState === 'complete'")

    def look(self, expression: str) -> Any:
        """What an expression is worth in the page."""
        found = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        """Go on when something is so; the test has a limit of time."""
        while not self.look(f"new Promise((done) => setTimeout(() => done(Boolean({expression})), 10))"):
            pass

    def type(self, text: str) -> None:
        self._call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        code = {
            "Enter": 13,
            "Escape": 27,
            "ArrowDown": 40,
            "ArrowRight": 39,
            "ArrowLeft": 37,
            "End": 35,
            "Home": 36,
        }.get(key, ord(key[0]))
        text = {"text": key} if len(key) == 1 else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def _call(self, method: str, **params: Any) -> Any:
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, msgspec.json.encode(command) + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def _next(self) -> Any:
        while b"\0" not in self._buffer:
            more = os.read(self._answers, 1 << 16)
            assert more, "the browser went away"
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\0")
        return msgspec.json.decode(line)

    def _note(self, event: Any) -> None:
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.messages.append(str(event["params"]["exceptionDetails"]))
            case "Log.entryAdded":
                self.messages.append(event["params"]["entry"]["text"])
            case _:
                pass


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A browser that keeps everything it writes in a folder."""
    assert CHROMIUM
    commands, answers = os.pipe(), os.pipe()
    # Without its sandbox: containers often forbid what it needs, and the only page it opens is ours.
    options = [
        "--headless=new",
        "--remote-debugging-pipe",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--window-size=1300,900",
        f"--user-data-dir={folder}",
    ]
    command = [sys.executable, "-c", _PLACED, str(commands[0]), str(answers[1]), CHROMIUM, *options]
    process = subprocess.Popen(
        command, pass_fds=(commands[0], answers[1]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(commands[0])
    os.close(answers[1])
    try:
        yield Browser(commands[1], answers[0])
    finally:
        os.close(commands[1])
        os.close(answers[0])
        process.terminate()
        process.wait(20)
