"""Starts children that end with us: our side of the watcher, of which there is one per process, started with the first child.

Imports little: `antiphon record` starts an agent through this, and an editor waits for it.
"""

import _socket
import atexit
import os
import signal
import sys
from _thread import allocate_lock
from contextlib import suppress

from antiphon.transports import tree, watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Child", "NoDirectory", "prepare", "start"]

START_LIMIT = 30.0
"""Seconds that the watcher may take to start a child: a few milliseconds, unless the machine is very busy."""

GOODBYE = 2.0
"""Seconds that the watcher may take, when we exit, to end what is left."""

_lock = allocate_lock()
_watcher: "_Watcher | None" = None
_children: "set[Child]" = set()


class NoDirectory(FileNotFoundError):
    """The directory that a child was to start in is not there, or cannot be entered."""


class Child:
    """A process that was started, through the supervisor that is its parent. `release` it when it has ended, or to end it."""

    def __init__(self, channel: _socket.socket, pid: int, supervisor: int, mark: str) -> None:
        self.pid = pid
        self.supervisor = supervisor
        """The process whose descendants are all that the child started; 0 where that cannot be relied on."""
        self.mark = mark
        self.returncode: int | None = None
        """How it ended, once `ended` is true: its status, or the negative of a signal; None if that is not known."""
        self._channel: _socket.socket | None = channel
        self._words = b""
        self._ended = False
        _children.add(self)

    def fileno(self) -> int:
        """A descriptor that can be read when the child has ended; -1 once it is released."""
        return -1 if self._channel is None else self._channel.fileno()

    def ended(self, seconds: "float | None" = 0) -> bool:
        """Whether it has ended, after waiting for at most so long; None waits without a limit."""
        while not self._ended and self._channel is not None:
            self._channel.settimeout(seconds)
            try:
                words = self._channel.recv(64)
            except (BlockingIOError, TimeoutError):
                return False
            except OSError:
                words = b""
            self._words += words
            if not words:  # the supervisor was killed, and reports nothing
                self._ended = True
                self.supervisor = 0
            elif b"\n" in self._words:
                self._ended = True
                self.returncode = int(self._words.partition(b"\n")[0].lstrip(b"="))
        return self._ended

    def dismiss(self) -> None:
        """Have the supervisor end what is left, and exit; `dismissed` is set when it has."""
        if self._channel is not None:
            with suppress(OSError):
                self._channel.shutdown(_socket.SHUT_WR)

    def dismissed(self) -> bool:
        """Whether the supervisor has gone."""
        while self._channel is not None:
            self._channel.settimeout(0)
            try:
                words = self._channel.recv(64)
            except BlockingIOError:
                return False
            except OSError:
                return True
            if not words:
                return True
        return True

    def leave(self) -> None:
        """Release it once it has ended, and let what it started go on as if we had not been there."""
        if self._channel is not None:
            with suppress(OSError):
                self._channel.send(watcher.LEAVE)
        self.release()

    def release(self) -> None:
        """Close our end: the supervisor ends what is left, and goes. The process id means nothing from now on."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        _children.discard(self)


class _Watcher:
    """The watcher of this process."""

    def __init__(self) -> None:
        self._orders, theirs = _socket.socketpair()
        try:
            self._pid = _posix_spawn_watcher(theirs.fileno())
        finally:
            theirs.close()

    def order(self, descriptors: "Sequence[int]") -> None:
        """Have a supervisor forked.

        Raises:
            OSError: the watcher is gone.
        """
        packed = b"".join(each.to_bytes(4, sys.byteorder) for each in descriptors)
        self._orders.sendmsg([b"+"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)])

    def close(self) -> None:
        """Close our end, upon which it ends what is left and exits."""
        self._orders.close()

    def wait(self, seconds: float) -> None:
        """Wait for its exit, for so long at most."""
        import time

        deadline = time.monotonic() + seconds
        with suppress(ChildProcessError):
            while os.waitpid(self._pid, os.WNOHANG)[0] == 0 and time.monotonic() < deadline:
                time.sleep(0.001)

    @property
    def pid(self) -> int:
        return self._pid


def prepare() -> None:
    """Start the watcher now, if none runs: it is ready by the time that the first child is to start."""
    with _lock, suppress(OSError):
        _ready()


def start(
    words: "Sequence[str | os.PathLike[str]]",
    streams: "tuple[int, int, int]",
    *,
    env: "Mapping[str, str]",
    cwd: "str | os.PathLike[str] | None" = None,
    apart: bool = False,
) -> Child:
    """Start a program with these descriptors as its stdin, stdout and stderr, in a session of its own. All of it ends with us.

    `apart` has this process fork the supervisor, without a watcher: for a process that has one thread and one child.

    Raises:
        OSError: it cannot be started; `NoDirectory` if that is because of `cwd`.
        ValueError: a word or a variable cannot be given to a program.
    """
    mark = os.urandom(16).hex()
    request = _request(words, tree.marked(env, mark, os.environ.get(tree.MARK)), cwd, mark)
    ours, theirs = _socket.socketpair()
    try:
        try:
            if apart or not sys.executable:
                watcher.supervise_apart(theirs.fileno(), streams)
            else:
                _order((theirs.fileno(), *streams))
        finally:
            theirs.close()
        ours.settimeout(START_LIMIT)
        ours.sendall(request)
        pid, supervisor = _started(ours, words, cwd)
    except BaseException:
        ours.close()
        raise
    return Child(ours, pid, supervisor if sys.platform == "linux" else 0, mark)


def _request(
    words: "Sequence[str | os.PathLike[str]]",
    env: "Mapping[str, str]",
    cwd: "str | os.PathLike[str] | None",
    mark: str,
) -> bytes:
    arguments = [os.fsencode(word) for word in words]
    pairs = [os.fsencode(name) + b"=" + os.fsencode(value) for name, value in env.items() if _named(name)]
    place = os.path.abspath(os.getcwd() if cwd is None else cwd)
    fields = [os.fsencode(place), mark.encode(), b"%d" % len(arguments), *arguments, *pairs]
    if any(b"\0" in field for field in fields):
        raise ValueError("embedded null byte")
    data = b"\0".join(fields)
    return len(data).to_bytes(8, "big") + data


def _named(name: str) -> bool:
    if not name or "=" in name:
        raise ValueError("illegal environment variable name")
    return True


def _order(descriptors: "tuple[int, ...]") -> None:
    with _lock:
        try:
            _ready().order(descriptors)
        except (BrokenPipeError, ConnectionResetError):  # it was killed
            _forget()
            _ready().order(descriptors)


def _started(
    channel: _socket.socket, words: "Sequence[str | os.PathLike[str]]", cwd: "str | os.PathLike[str] | None"
) -> tuple[int, int]:
    """The answer of the supervisor: the process ids of the child and of itself."""
    answer = b""
    while not answer.endswith(b"\n"):
        byte = channel.recv(1)  # not more: what follows is the end of a child that was quick
        if not byte:
            raise OSError(0, "the process that starts others was killed")
        answer += byte
    if answer[:1] == b"+":
        pid, supervisor = answer[1:].split()
        return int(pid), int(supervisor)
    number, what = answer[1:].split()
    code = int(number)
    if what == watcher.WORKING_DIRECTORY:
        raise NoDirectory(code, os.strerror(code), os.fspath(cwd or os.curdir))
    raise OSError(code, os.strerror(code), os.fspath(words[0]))


def _ready() -> _Watcher:
    global _watcher
    if _watcher is None:
        _watcher = _Watcher()
    return _watcher


def _posix_spawn_watcher(orders: int) -> int:
    script = os.path.abspath(watcher.__file__)
    environment = {tree.MARK: os.environ[tree.MARK]} if tree.MARK in os.environ else {}
    actions = [
        (os.POSIX_SPAWN_DUP2, orders, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    words = [sys.executable, "-I", "-S", script]
    defaults = (signal.SIGPIPE, signal.SIGXFSZ)
    try:
        return os.posix_spawn(
            sys.executable, words, environment, file_actions=actions, setsid=True, setsigmask=(), setsigdef=defaults
        )
    except NotImplementedError:  # an older macOS
        return os.posix_spawn(
            sys.executable, words, environment, file_actions=actions, setpgroup=0, setsigmask=(), setsigdef=defaults
        )


def _forget() -> None:
    global _watcher
    if _watcher is not None:
        _watcher.close()
        _watcher.wait(0)
        _watcher = None


def _dismiss() -> None:
    """We exit: what is left is ended, and the watcher goes."""
    for child in list(_children):
        child.release()
    if _watcher is not None:
        _watcher.close()
        _watcher.wait(GOODBYE)


def _disown() -> None:
    """We are a fork. The children are our parent's, and to hold their sockets would hide our parent's death."""
    global _watcher, _lock
    _lock = allocate_lock()
    for child in list(_children):
        child.release()
    if _watcher is not None:
        _watcher.close()
        _watcher = None


atexit.register(_dismiss)
os.register_at_fork(after_in_child=_disown)
