"""The blocks of code on a page of the documentation, and a page that is run: its files are written, its commands typed, their output compared.

How a page is written for this:

- A `console` block has commands after `$ ` and what they print. `…` stands for any text in a line, and alone on it for any lines. A command
  without output below it may print anything. Commands of `sh` blocks may, too.
- A command has to end with 0, unless the next one is `echo $?`, below which its status stands.
- A block with a title, such as ```` ```python title="hello.py" ````, is a file, written to the current directory or, with `~/`, to the home.
- `<!-- run: background -->` above a block: its command goes on until the page is over, and the page goes on when the lines shown were printed.
- `<!-- run: no: REASON -->` above a block: it is not run. Its commands are still parsed.

A page starts in an empty home, `/home/ada` on the page. The port 8321 is a free one. `antiphon` is a fork of a process that has
imported it, so a command costs some hundredths of a second. `python -m tests.pages docs/start/terminal.md` runs a page by hand.
"""

import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.limits import limit
from tests.prepared import NUMBER, Forked, Request

__all__ = ["ROOT", "Block", "Command", "RunningPage", "blocks", "commands", "matches"]

ROOT: Final = Path(__file__).resolve().parents[1]
HOME: Final = "/home/ada"
PORT: Final = "8321"
FENCE: Final = re.compile(r"^( *)(`{3,})(\w*)(?: +title=\"([^\"]+)\")?[^\n]*\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
NOTE: Final = re.compile(r"<!-- run: (.+?) -->\s*\Z")
SHELLS: Final = ("sh", "console")
CONTROLS: Final = ("status", "tokens", "shares", "sessions", "backup", "unit")
"""Words after `antiphon serve` that start no gateway."""


@dataclass(frozen=True)
class Block:
    """A block of code."""

    language: str
    title: str | None
    note: str
    text: str
    line: int

    @property
    def runs(self) -> bool:
        """Whether it is run."""
        return not self.note.startswith("no: ")


@dataclass(frozen=True)
class Command:
    """A command of a block, and what stands below it."""

    words: str
    expected: str
    line: int


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page."""
    for found in FENCE.finditer(text):
        indent, _, language, title, body = found.groups()
        note = NOTE.search(text, 0, found.start())
        lines = "".join(line.removeprefix(indent) for line in body.splitlines(keepends=True))
        yield Block(language, title, note[1] if note else "", lines, text.count("\n", 0, found.start()) + 2)


def commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a block of a shell."""
    mark = "$ " if block.language == "console" else ""
    typed: list[str] = []
    shown: list[str] = []
    first = goes_on = 0
    for number, line in enumerate(block.text.splitlines(), block.line):
        if goes_on or line.startswith(mark):
            if not goes_on:
                if typed:
                    yield Command("\n".join(typed), "\n".join(shown), first)
                typed, shown, first = [], [], number
            typed.append(line if goes_on else line.removeprefix(mark))
            goes_on = line.endswith("\\")
        else:
            shown.append(line)
    if typed:
        yield Command("\n".join(typed), "\n".join(shown), first)


def matches(expected: str, printed: str) -> bool:
    """Whether the output is what the page shows."""
    pattern = ""
    for line in expected.strip().splitlines():
        if line.strip() == "…":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in line.rstrip().split("…")) + r"[ \t]*\n"
    return re.fullmatch(pattern, printed.strip() + "\n") is not None


# --- running one ----------------------------------------------------------------------------------------------------

SHIM: Final = """\
#!{python} -SE
import json, os, signal, socket, struct, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
data = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [struct.pack("i", len(data))], [0, 1, 2])
server.sendall(data)
process, = struct.unpack("i", server.recv(4))
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, _: os.kill(process, number))
status, = struct.unpack("i", server.recv(4))
os._exit(status if status >= 0 else 128 - status)
"""
"""`antiphon` on the PATH of a page: it hands its arguments and streams over to the process that forks."""


class RunningPage:
    """A page that is run, in a home of its own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        self._folder = folder
        self._sockets = tempfile.mkdtemp(prefix="antiphon-pages-")  # an address of a socket has 107 bytes at most
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{self._sockets}/s")
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()
        programs = folder / "bin"
        programs.mkdir()
        (programs / "antiphon").write_text(
            SHIM.format(python=sys.executable, address=f"{self._sockets}/s"), encoding="utf-8"
        )
        (programs / "antiphon").chmod(0o755)
        path = os.pathsep.join([str(programs), os.path.dirname(sys.executable), os.environ["PATH"]])
        self._env = {
            "HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "PYTEST_ADDOPTS": "-p no:asyncio -p no:cacheprovider", **environment,
        }  # fmt: skip
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = str(free.getsockname()[1])

    def close(self) -> None:
        """Take no more commands."""
        self._listener.close()
        shutil.rmtree(self._sockets)

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._command, args=(client,), daemon=True).start()

    def _command(self, client: socket.socket) -> None:
        with client:
            head, streams, _, _ = socket.recv_fds(client, NUMBER.size, 3)
            (length,) = struct.unpack("i", head)
            data = b""
            while len(data) < length:
                data += client.recv(length - len(data))
            words, cwd, env = json.loads(data)
            if words[:1] == ["serve"] and not {"--port", *CONTROLS} & {*words}:
                words[1:1] = ["--port", self._port]
            forked = Forked(Request(words, cwd, env), (streams[0], streams[1], streams[2]))
            for fd in streams:
                os.close(fd)
            client.sendall(NUMBER.pack(forked.pid))
            with suppress(BrokenPipeError):
                client.sendall(NUMBER.pack(forked.wait()))

    def run(self, text: str) -> list[str]:
        """Run a page, and return what was not as it stands there."""
        script, typed = self._script(text)
        path = self._folder / "page.sh"
        path.write_text(script, encoding="utf-8")
        with open(self._folder / "output", "w+b") as output:
            subprocess.run(
                ["bash", "--norc", str(path)], cwd=self.home, env=self._env, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, check=False, timeout=limit(),
            )  # fmt: skip
            output.seek(0)
            printed = output.read().decode(errors="replace")
        printed = printed.replace(str(self.home), HOME).replace(self._port, PORT)
        return list(_differences(typed, printed))

    def _script(self, text: str) -> tuple[str, list[Command]]:
        """Return a script that does what the page says, and its commands in their order."""
        typed: list[Command] = []
        lines = ["trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT"]
        for block in blocks(text):
            if not block.runs:
                continue
            if block.title:
                name = '"$HOME"/' + block.title[2:] if block.title.startswith("~/") else f"./{block.title}"
                lines.append(f"mkdir -p $(dirname {name}); cat > {name} <<'END-OF-FILE'\n{block.text}END-OF-FILE")
            elif block.language in SHELLS:
                for command in commands(block):
                    number = len(typed)
                    typed.append(command)
                    lines += _typed(number, command, background=block.note == "background")
        return "\n".join(lines).replace(PORT, self._port).replace(HOME, str(self.home)) + "\n", typed


def _typed(number: int, command: Command, *, background: bool) -> Iterator[str]:
    yield f"status=$?; echo; echo '::: begin {number}'; (exit $status)"
    if background:
        *_, last = [part for part in re.split("…|\n", command.expected) if part.strip()]
        yield f"{command.words} > ~/.page-{number} 2>&1 &"
        yield f"until grep -qsF -- '{last.strip()}' ~/.page-{number} || ! kill -0 $!; do sleep 0.02; done"
        yield f"cat ~/.page-{number}; true"
    else:
        yield command.words
    yield f"status=$?; echo; echo '::: end {number}' $status; (exit $status)"


def _differences(typed: list[Command], printed: str) -> Iterator[str]:
    found = {
        int(number): (output, int(status))
        for number, output, status in re.findall(r"::: begin (\d+)\n(.*?)\n::: end \1 (\d+)\n", printed, re.DOTALL)
    }
    for number, command in enumerate(typed):
        if number not in found:
            yield f"line {command.line}: `{command.words}` did not end; the output so far: {printed[-2000:]}"
            return
        output, status = found[number]
        shown_next = number + 1 < len(typed) and typed[number + 1].words == "echo $?"
        if status and not shown_next:
            yield f"line {command.line}: `{command.words}` ended with {status}:\n{output}"
        elif command.expected.strip() and not matches(command.expected, output):
            yield f"line {command.line}: `{command.words}` printed\n{output}\nand not\n{command.expected}"


if __name__ == "__main__":
    from tests.cli.program import NO_ENGINES

    for argument in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as directory:
            page = RunningPage(Path(directory), NO_ENGINES)
            sys.stdout.writelines(
                f"{argument}, {each}\n\n" for each in page.run(Path(argument).read_text(encoding="utf-8"))
            )
            page.close()
