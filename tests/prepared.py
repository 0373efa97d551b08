"""`antiphon` in a process of its own, without the time to import it: one process has imported it, and each command is a fork of that.
So is each gateway; they are forks of another process, which has imported what they need.

To start Python and import the package takes most of the processor time of a short command, and hundreds of tests run one. A fork has
a directory, an environment, streams and an exit status of its own, as a program has. What Python reads when it starts is that of
the tests: where a test is about that (flags, `PYTHONPATH`, what is imported when), it starts an interpreter.
"""

import atexit
import fcntl
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]

NUMBER: Final = struct.Struct("i")
"""How a length, the id of a process and its exit status are sent."""

FOR_CHILDREN: Final = frozenset({"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"})
"""Variables of Python that a command passes on to what it starts, and that make no difference to itself."""

_SENDING: Final = threading.Lock()

IMPORTED: Final = (
    "catalogue",
    "cli",
    "client",
    "config",
    "doctor",
    "editors",
    "engines",
    "export",
    "policy",
    "store",
    "tui",
)
"""The packages with what commands import when they run."""

FOR_GATEWAYS: Final = ("cli.serve", "gateway", "journal", "store")
"""The packages with what a gateway imports."""


class Request(NamedTuple):
    """A command: as much of a program as differs from one to the next."""

    words: list[str]
    cwd: str
    env: dict[str, str]
    leads: bool = False
    """Whether it leads a session of its own, whose terminal is its stdin: that sends the signals of keys."""


class Forked:
    """A fork that runs: what tests use of `subprocess.Popen`."""

    def __init__(self, request: Request, streams: tuple[int, int, int], *, gateway: bool = False) -> None:
        self._status, theirs = socket.socketpair()
        _send(request, [*streams, theirs.fileno()], gateway=gateway)
        theirs.close()
        (self.pid,) = NUMBER.unpack(self._status.recv(NUMBER.size))
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, and return its status."""
        if self.returncode is None:
            self._status.settimeout(timeout)
            (self.returncode,) = NUMBER.unpack(self._status.recv(NUMBER.size))
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)


class ForkedGateway(Forked):
    """`tests/gateway/weakened.py` with these words, and what it prints."""

    def __init__(self, *words: str, cwd: Path, env: Mapping[str, str]) -> None:
        (from_stdout, stdout), (from_stderr, stderr) = os.pipe(), os.pipe()
        stdin = os.open(os.devnull, os.O_RDONLY)
        super().__init__(Request(list(words), str(cwd), dict(env)), (stdin, stdout, stderr), gateway=True)
        for fd in (stdin, stdout, stderr):
            os.close(fd)
        self.stdout = open(from_stdout, encoding="utf-8")  # noqa: SIM115  # closed by the test, as those of a Popen
        self.stderr = open(from_stderr, encoding="utf-8")  # noqa: SIM115


def start_on_terminal(*words: str, cwd: Path, env: Mapping[str, str], terminal: int) -> Forked:
    """Start `antiphon` with these words on a terminal, which becomes its own."""
    return Forked(Request(list(words), str(cwd), dict(env), leads=True), (terminal, terminal, terminal))


def run(
    *words: str,
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    input: bytes | None = None,
    timeout: float | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run `antiphon` with these words to its end: with this or nothing on its stdin, and its other streams in pipes."""
    request = Request(list(words), str(cwd or Path.cwd()), dict(os.environ if env is None else env))
    for name in set(request.env) - FOR_CHILDREN:
        if name.startswith("PYTHON") and request.env[name] != os.environ.get(name):
            raise ValueError(f"{name} is read when Python starts: start an interpreter for this command")
    with ExitStack() as ends:
        ours, theirs = (ends.enter_context(one) for one in socket.socketpair())
        (from_stdout, stdout), (from_stderr, stderr) = os.pipe(), os.pipe()
        stdin, to_stdin = os.pipe() if input is not None else (os.open(os.devnull, os.O_RDONLY), None)
        readers = [ends.enter_context(open(fd, "rb", 0)) for fd in (from_stdout, from_stderr)]
        _send(request, [stdin, stdout, stderr, theirs.fileno()])
        for fd in (stdin, stdout, stderr):
            os.close(fd)
        theirs.close()
        (process,) = NUMBER.unpack(ours.recv(NUMBER.size))
        if to_stdin is not None:
            threading.Thread(target=_feed, args=(to_stdin, input), daemon=True).start()
        try:
            out, err = _read_all(readers, timeout)
            ours.settimeout(timeout)
            (status,) = NUMBER.unpack(ours.recv(NUMBER.size))
        except TimeoutError:
            os.kill(process, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(["antiphon", *words], status, out, err)


def _feed(fd: int, data: bytes) -> None:
    with suppress(BrokenPipeError), open(fd, "wb", 0) as pipe:
        pipe.write(data)


def _read_all(readers: list[Any], timeout: float | None) -> tuple[bytes, bytes]:
    """Read streams to their ends."""
    found: dict[Any, bytes] = dict.fromkeys(readers, b"")
    until = None if timeout is None else time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            selector.register(reader, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(None if until is None else until - time.monotonic())
            if not ready:
                raise TimeoutError(f"not over after {timeout:g} s; it has written: {list(found.values())}")
            for key, _ in ready:
                data = key.fileobj.read(1 << 16)  # type: ignore[union-attr]  # they are the files above
                found[key.fileobj] += data
                if not data:
                    selector.unregister(key.fileobj)
    out, err = found.values()
    return out, err


def _send(request: Request, descriptors: list[int], *, gateway: bool = False) -> None:
    data = json.dumps(request).encode()
    with _SENDING:
        socket.send_fds(_server(gateway), [NUMBER.pack(len(data))], descriptors)
        _server(gateway).sendall(data)


@cache
def _server(gateway: bool) -> socket.socket:
    """Start the process that forks, once in each process of tests; gateways have one of their own. It ends when we do."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-m", "tests.prepared", str(theirs.fileno()), *(["gateway"] if gateway else [])]
    server = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


# --- the process that forks ---


def serve(requests: socket.socket) -> Request:
    """Fork a process for each request. It is the forks that return from here, each with its own."""
    woken, wake = socket.socketpair()
    for one in (woken, wake):
        one.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake.fileno())
    waiting: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(requests, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is woken:
                    with suppress(BlockingIOError):
                        woken.recv(4096)
                    _report(waiting)
                    continue
                request, descriptors = _receive(requests)
                if not (process := os.fork()):
                    return _become(request, descriptors, [woken, wake, requests, *waiting.values()])
                waiting[process] = socket.socket(fileno=descriptors[3])
                waiting[process].send(NUMBER.pack(process))
                for fd in descriptors[:3]:
                    os.close(fd)


def _receive(requests: socket.socket) -> tuple[Request, list[int]]:
    head, descriptors, _, _ = socket.recv_fds(requests, NUMBER.size, 4)
    if not head:
        os._exit(0)  # the tests are over
    data = b""
    while len(data) < NUMBER.unpack(head)[0]:
        data += requests.recv(NUMBER.unpack(head)[0] - len(data))
    return Request(*json.loads(data)), descriptors


def _report(waiting: dict[int, socket.socket]) -> None:
    """Send the status of each process that has ended to the test that waits for it."""
    for process in list(waiting):
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            with waiting.pop(process) as test:
                test.send(NUMBER.pack(os.waitstatus_to_exitcode(status)))


def _become(request: Request, descriptors: list[int], others: list[socket.socket]) -> Request:
    """Give this fork what a program has of its own."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for one in others:
        one.close()
    for number, fd in enumerate(descriptors[:3]):
        os.dup2(fd, number)
    if request.leads:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for fd in descriptors:
        os.close(fd)
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.env)
    time.tzset()
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # they are open as long as the process lives
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = [str(ROOT / "src" / "antiphon" / "__main__.py"), *request.words]
    return request


def _import(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:  # it needs an extra that is not installed
        return None


def _import_packages(names: tuple[str, ...]) -> None:
    for name in names:
        package = _import(f"antiphon.{name}")
        if package is not None:
            for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
                _import(module.name)


def _run_to_the_end(main: Callable[[], int]) -> int:
    """Run the command as the interpreter would: what is raised is shown, what is registered for the end is called."""
    try:
        status = main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # threads are waited for
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    return status


if __name__ == "__main__":
    if sys.argv[2:] == ["gateway"]:
        from tests.gateway.weakened import run_weakened as command

        _import_packages(FOR_GATEWAYS)
    else:
        from antiphon.__main__ import main as command

        _import_packages(IMPORTED)
    serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(_run_to_the_end(command))
