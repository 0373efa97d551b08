"""The processes between us and what we start: they end all of it when we are gone, however that came.

One watcher for each program of ours, started with the first child; for each child it forks a supervisor, which starts the child, is
its parent, reports how it ended, and holds one end of a socket. End of file there means that we are gone or have released the child: the
supervisor then kills every descendant and exits. Watcher and supervisors are subreapers on Linux: a descendant whose parent has exited
becomes their child, so that none leaves the tree, whatever it does with its session, its group and its environment. On systems without
subreapers the group and the mark in the environment have to do.

Runs as `python -I -S watcher.py`, in a few milliseconds and little memory, so it imports nothing that is not in the interpreter.
`antiphon record` imports it, and forks its one supervisor itself.
"""

import _socket
import os
import signal
import sys
import time

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import tree  # type: ignore[import-not-found]  # now: the package may be gone when it is needed
else:
    from antiphon.transports import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

__all__ = ["END_LIMIT", "LEAVE", "PROGRAM", "WORKING_DIRECTORY", "supervise_apart"]

END_LIMIT = 5.0
"""Seconds after which processes that do not end by KILL (stuck in the kernel, or another user's) are left."""

PR_SET_CHILD_SUBREAPER = 36
PROGRAM, WORKING_DIRECTORY = b"program", b"cwd"
"""What a failed start failed at."""

LEAVE = b"."
"""The last byte of an owner that wants its child left running."""

DESCRIPTORS = 4
"""Descriptors that come with an order: the supervisor's socket, and stdin, stdout and stderr of the child."""

_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)


def main() -> None:
    """Fork a supervisor for each order on stdin; at its end kill what is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # our owner's to handle; we go when the socket closes
        _disregard(number)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors need no reaping
    is_subreaper = become_subreaper()
    orders = _socket.socket(fileno=os.dup(0))
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    _close_others({0, 1, 2, orders.fileno()})
    while (descriptors := _next_order(orders)) is not None:
        if len(descriptors) == DESCRIPTORS:
            _fork_supervisor(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
    if is_subreaper:
        end_descendants(END_LIMIT)


def _next_order(orders: _socket.socket) -> "list[int] | None":
    """Receive the descriptors of the next order; None at the end."""
    flags = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)
    try:
        word, ancillary, *_ = orders.recvmsg(1, _socket.CMSG_SPACE(4 * DESCRIPTORS), flags)
    except OSError:
        return None
    if not word:
        return None
    data = b"".join(each[2] for each in ancillary if each[1] == _socket.SCM_RIGHTS)
    found = [int.from_bytes(data[at : at + 4], sys.byteorder) for at in range(0, len(data) - 3, 4)]
    for descriptor in found:
        os.set_inheritable(descriptor, False)
    return found


def _fork_supervisor(descriptors: "list[int]") -> None:
    try:
        pid = os.fork()
    except OSError as error:
        os.write(descriptors[0], b"-%d %s\n" % (error.errno or 0, PROGRAM))
        return
    if pid == 0:
        _supervise_and_exit(descriptors)


def supervise_apart(channel: int, descriptors: "tuple[int, int, int]") -> None:
    """Fork the supervisor of one child from this very process, which must have no other thread."""
    if os.fork() == 0:
        os.setsid()  # what is sent to our group is for us
        # Two times: the child's descriptors may be our own 0, 1 and 2, which become something else below.
        _supervise_and_exit([channel, *(os.dup(each) for each in descriptors)])


def _supervise_and_exit(descriptors: "list[int]") -> None:
    try:
        supervise(*descriptors)
    finally:
        os._exit(0)


def supervise(channel: int, stdin: int, stdout: int, stderr: int) -> None:
    """Start the child that the channel describes, report its start and its end, and end all of it when the channel closes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        _disregard(number)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    _close_others({0, 1, 2, channel, stdin, stdout, stderr})
    is_subreaper = become_subreaper()
    peer = _socket.socket(fileno=channel)
    request = _Request.receive(peer)
    if request is None:
        return
    answer, child = _start(request, stdin, stdout, stderr)
    for descriptor in (stdin, stdout, stderr):
        os.close(descriptor)
    _send(peer, answer)
    if not child:
        return
    reaper = _Reaper(child, peer)
    signal.signal(signal.SIGCHLD, reaper.reap)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    reaper.reap()
    if _until_closed(peer) == LEAVE:
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if is_subreaper:
        _signal(-child, signal.SIGKILL)  # also where there is no `/proc` to find the others in
    else:
        tree.kill_tree(child, request.mark)
    end_descendants(END_LIMIT)


class _Request:
    """A child to start."""

    def __init__(self, fields: "list[bytes]") -> None:
        self.cwd, mark, count, *rest = fields
        self.mark = mark.decode()
        self.words = rest[: int(count)]
        self.environment = dict(pair.split(b"=", 1) for pair in rest[int(count) :])

    @classmethod
    def receive(cls, peer: _socket.socket) -> "_Request | None":
        """Read a request: eight bytes of length, and the fields with NUL between them. None if its sender is gone."""
        size = int.from_bytes(_exactly(peer, 8), "big")
        data = _exactly(peer, size)
        return cls(data.split(b"\0")) if size and len(data) == size else None


def _exactly(peer: _socket.socket, size: int) -> bytes:
    chunks = []
    while size:
        try:
            chunk = peer.recv(min(size, 1 << 16))
        except OSError:
            chunk = b""
        if not chunk:
            return b""
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def _start(request: _Request, *streams: int) -> "tuple[bytes, int]":
    """Start the child. Return the response to send, and its process id, or 0 if it did not start."""
    try:
        os.chdir(request.cwd)
    except OSError as error:
        return b"-%d %s\n" % (error.errno or 0, WORKING_DIRECTORY), 0
    failed: OSError | ValueError = FileNotFoundError(2, "No such file or directory")
    for path in _candidates(request):
        try:
            child = _spawn(path, request, streams)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            failed = error
            continue
        return b"+%d %d\n" % (child, os.getpid()), child
    return b"-%d %s\n" % (getattr(failed, "errno", 0) or 0, PROGRAM), 0


def _candidates(request: _Request) -> "list[bytes]":
    """The files that the program may be, as a shell would look for it."""
    name = request.words[0]
    if b"/" in name:
        return [name]
    places = request.environment.get(b"PATH", os.fsencode(os.defpath)).split(b":")
    return [os.path.join(place, name) for place in places]


def _spawn(path: bytes, request: _Request, streams: "tuple[int, ...]") -> int:
    actions = [(os.POSIX_SPAWN_DUP2, ours, its) for its, ours in enumerate(streams)]
    try:
        return os.posix_spawn(
            path,
            request.words,
            request.environment,
            file_actions=actions,
            setsid=True,
            setsigmask=(),
            setsigdef=_IGNORED_BY_PYTHON,
        )
    except NotImplementedError:  # an older macOS: a group of its own will do
        return os.posix_spawn(
            path,
            request.words,
            request.environment,
            file_actions=actions,
            setpgroup=0,
            setsigmask=(),
            setsigdef=_IGNORED_BY_PYTHON,
        )


class _Reaper:
    """Reaps adopted processes, and reports the end of the child, whose zombie stays: its group keeps its number as long."""

    def __init__(self, child: int, peer: _socket.socket) -> None:
        self._child = child
        self._peer = peer
        self._reported = False

    def reap(self, number: int = 0, frame: "FrameType | None" = None) -> None:
        if not hasattr(os, "waitid"):  # macOS before Python 3.13: no zombie stays
            self._reap_at_once()
            return
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if found is None:
                return
            if found.si_pid == self._child:
                self._report(found.si_status if found.si_code == os.CLD_EXITED else -found.si_status)
                self._reap_others()
                return
            _reap_one(found.si_pid)

    def _reap_others(self) -> None:
        """Reap what stands behind the zombie of the child, which `waitid` would give us again and again."""
        for pid, parent, state in tree.all_processes():
            if parent == os.getpid() and pid != self._child and state == "Z":
                _reap_one(pid)

    def _reap_at_once(self) -> None:
        try:
            pid, status = os.waitpid(self._child, os.WNOHANG)
        except ChildProcessError:
            return
        if pid:
            self._report(os.waitstatus_to_exitcode(status))

    def _report(self, status: int) -> None:
        if not self._reported:
            self._reported = True
            _send(self._peer, b"=%d\n" % status)


def _reap_one(pid: int) -> None:
    """Reap a child that has ended, unless it is reaped already: another signal may come while one is handled, and does the same.

    An error here would be raised in the midst of `_until_closed`, which would take it for the end of the owner, and everything would be killed.
    """
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


def _send(peer: _socket.socket, words: bytes) -> None:
    try:
        peer.send(words)
    except OSError:  # the owner is gone, which the next `recv` shows too
        pass


def _until_closed(peer: _socket.socket) -> bytes:
    """Wait until the owner is gone or has released the child: its last word."""
    last = b""
    try:
        while word := peer.recv(1):
            last = word
    except OSError:
        pass
    return last


def end_descendants(seconds: float) -> None:
    """Kill every descendant of this process, which must be a subreaper for it to be every one.

    They are stopped first, so that none forks while others are killed. A process without children has no descendants: that is the end.
    """
    deadline = time.monotonic() + seconds
    stopped: set[int] = set()
    while _has_children():
        found = tree.descendants(os.getpid())
        fresh = [pid for pid in found if pid not in stopped]
        for pid in fresh:
            _signal(pid, signal.SIGSTOP)
        stopped.update(fresh)
        if fresh and time.monotonic() < deadline:
            continue
        for pid in found:
            _signal(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            return
        stopped.clear()
        time.sleep(0.002)


def _has_children() -> bool:
    """Reap what has ended: whether anything is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:  # it has ended, or is another user's
        pass


def become_subreaper() -> bool:
    """Have orphans among our descendants become our children: whether the system does that."""
    if sys.platform != "linux":
        return False
    try:
        import _ctypes  # `ctypes` itself takes 20 ms to import, this part of it half a millisecond

        library = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is what is loaded already
        prctl = _ctypes.dlsym(library, "prctl")
        return bool(_ctypes.call_function(prctl, (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0)
    except (ImportError, AttributeError, OSError):
        return _become_subreaper_slowly()


def _become_subreaper_slowly() -> bool:
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, AttributeError, OSError):
        return False


def _disregard(number: int) -> None:
    """Do nothing on a signal. Not `SIG_IGN`, which our children would inherit; one that we inherited stays."""
    if signal.getsignal(number) != signal.SIG_IGN:
        signal.signal(number, lambda number, frame: None)


def _close_others(kept: "set[int]") -> None:
    """Close every descriptor but these: a socket or pipe of our owner that is held here would hide its end."""
    try:
        names = os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")
    except OSError:
        names = [str(number) for number in range(256)]
    for name in names:
        if name.isdigit() and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # the one that listed them
                pass


if __name__ == "__main__":
    main()
