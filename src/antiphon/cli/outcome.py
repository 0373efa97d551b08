"""What every command runs in: exit statuses, errors with hints, and the standard streams.

A command returns its status or raises. Nothing it raises becomes a traceback, and nothing it wrote is lost in silence.
"""

import io
import os
import select
import sys
from errno import EACCES, EBADF, EIO, ENOSPC, EPERM, EPIPE, EROFS

from antiphon.cli.interrupts import INTERRUPTED
from antiphon.errors import AcpError, sentence_and_hint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TextIO

    from _typeshed import ReadableBuffer

__all__ = [
    "CANCELLED",
    "COLORS",
    "DENIED",
    "DONE",
    "FAILED",
    "HALF_FAILED",
    "KINDS",
    "LIMITED",
    "MISUSED",
    "NOT_SIGNED_IN",
    "OVER_BUDGET",
    "RATE_LIMITED",
    "REFUSED",
    "RUN_STATUSES",
    "STATUSES",
    "TIMED_OUT",
    "WRONG_OUTPUT",
    "Invocation",
    "Misused",
    "OutputLost",
    "coloured",
    "did_you_mean",
    "error_text",
    "fail",
    "invocation",
    "is_retryable",
    "kind_of",
    "leave_closed_terminal",
    "leave_stdout",
    "require_streams",
    "retry_after",
    "run_command",
    "status_of",
]

# --- errors and exit statuses ----------------------------------------------------------------------------------------
# Imported before anything else, so it loads nothing heavy and nothing that only POSIX has.

DONE = 0
FAILED = 1
MISUSED = 2
REFUSED = 3
LIMITED = 4
DENIED = 5
HALF_FAILED = 6
NOT_SIGNED_IN = 7
RATE_LIMITED = 8
OVER_BUDGET = 9
WRONG_OUTPUT = 10
TIMED_OUT = 124
CANCELLED = INTERRUPTED
"""Every exit status there is. `run` and `compare` alone end with those from 3 to 124."""

RUN_STATUSES = {
    DONE: "the turn ended",
    FAILED: "error: the agent did not start or failed; or `--on-ask fail`",
    MISUSED: "wrong arguments, or something that they name does not exist: a file, lines of it, an agent, a mode, a model, a setting",
    REFUSED: "the agent refused",
    LIMITED: "the agent's own token or turn limit was reached",
    DENIED: "something was denied because there was no terminal to ask in",
    HALF_FAILED: "the turn ended, but one of several engines failed",
    NOT_SIGNED_IN: "the agent wants you to sign in",
    RATE_LIMITED: "a rate limit or a usage limit of the agent's service was reached",
    OVER_BUDGET: "`--max-cost`, `--max-tokens` or `--max-turns` was reached",
    WRONG_OUTPUT: "no answer matched `--output-schema`",
    TIMED_OUT: "`--timeout` was reached",
    CANCELLED: "cancelled",
}
"""Exit status of `run` → what it means: the table of docs/run.md, and the end of `antiphon run --help`."""

STATUSES = {
    DONE: "done",
    FAILED: "failed, or found a problem",
    MISUSED: "wrong arguments, or something that they name does not exist",
    INTERRUPTED: "interrupted",
}
"""Exit statuses that mean the same in every command. `run` and `record` have more; their help lists them."""

COLORS = ("auto", "always", "never")

_USAGE = "usage"
KINDS = {
    "Misused": _USAGE,
    "RuleError": _USAGE,
    "Unsettable": _USAGE,
    "ServersError": _USAGE,
    "PolicyFileError": _USAGE,
    "SchemaError": _USAGE,
    "WorktreeError": _USAGE,
    "ComparisonError": _USAGE,
    "BadPrompts": _USAGE,
    "BadCommands": _USAGE,
    "UnknownSession": "unknown_session",
    "SessionNotFound": "unknown_session",
    "NoSuchAgent": "unknown_agent",
    "UnknownAgent": "unknown_agent",
    "UnknownEngine": "unknown_agent",
    "AgentMissing": "agent_missing",
    "SpawnFailed": "spawn_failed",
    "AuthRequired": "auth_required",
    "OverBudget": "over_budget",
    "NoMatch": "wrong_output",
    "PatchError": "patch",
    "RequestTimeout": "timeout",
    "ProcessDied": "agent_died",
    "ConnectionClosed": "connection_closed",
    "RequestError": "refused",
    "RequestRefused": "refused",
    "ProtocolError": "protocol",
    "StoreError": "store",
    "ExtraMissing": "extra_missing",
    "OutputLost": "output",
    "AcpError": "failed",
    "OSError": "system",
}
"""Class of an error → the `kind` of it in JSON; the nearest base class counts. By name, because the classes are loaded late."""

_PASSING = frozenset({"agent_died", "connection_closed", "timeout"})
_PASSING_REFUSALS = frozenset({"connection closed", "request timeout", "session expired"})
_PASSING_ENGINE_ERRORS = frozenset(
    {"busy", "connection", "overloaded", "rate_limit", "rate_limited", "server_error", "usage_limit"}
)
"""Errors that may go away by themselves: by their kind, by the meaning of a refused request, or by `data.kind` of an engine's error."""

_ENGINE_KINDS = {"auth": "auth_required", "rate_limit": "rate_limited", "usage_limit": "rate_limited"}
"""`data.kind` of an engine's error → the kind in JSON, where a program does something of its own about it."""

_MISUSES = frozenset({_USAGE, "unknown_agent", "unknown_session"})


class Misused(Exception):
    """The arguments are wrong, or name something that does not exist."""

    def __init__(self, sentence: str, *, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence, self.hint = sentence, hint


class OutputLost(OSError):
    """Stdout cannot be written: its reader is gone, its disk is full, or it was closed from the start."""


class Invocation:
    """How this command prints. There is one instance, because a process runs one command."""

    json: bool
    """Whether an error is also a JSON object on stdout."""
    color: str
    prog: str
    """The command and subcommand that read the arguments: a hint names its help."""

    closed: "frozenset[int]" = frozenset()
    """The standard streams that were closed when we were started, by their descriptors."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Reset everything. Tests run several commands in one process."""
        self.json, self.color, self.prog = False, "auto", "antiphon"


invocation = Invocation()


def fail(
    sentence: str,
    hint: str,
    status: int,
    kind: str | None = None,
    *,
    retryable: bool = False,
    wait: "float | None" = None,
) -> int:
    """Report an error on stderr, with what to do about it; with `--json`, also as an object on stdout. Return the status."""
    sentence, hint = _clean(sentence), _clean(hint)
    if invocation.json:
        kind = kind or (_USAGE if status == MISUSED else "failed")
        error: dict[str, object] = {"kind": kind, "message": sentence, "hint": hint, "retryable": retryable}
        if wait is not None:
            error["retryAfter"] = wait
        from antiphon.runs.events import VERSION, now

        _write_json({"type": "error", "time": now(), "schemaVersion": VERSION, "exitCode": status, "error": error})
    sys.stderr.write(error_text(sentence, hint, color=coloured(sys.stderr)))
    sys.stderr.flush()
    return status


def error_text(sentence: str, hint: str, *, color: bool) -> str:
    """Return an error as every command writes it."""
    error, advice = ("\x1b[1;31merror:\x1b[0m", "\x1b[36mhint:\x1b[0m") if color else ("error:", "hint:")
    return f"{error} {_clean(sentence)}\n{advice} {_clean(hint)}\n"


def _clean(text: str) -> str:
    """Return a text without control characters and without a full stop at its end."""
    from antiphon.text import prose

    return prose(text.strip()).removesuffix(".")


def _write_json(found: "dict[str, object]") -> None:
    import json

    try:
        sys.stdout.write(f"{json.dumps(found, ensure_ascii=False)}\n")
        sys.stdout.flush()
    except OSError:
        pass


def _origin(error: BaseException) -> BaseException:
    """Return the error that a plain `AcpError` was raised from: it has the kind."""
    cause = error.__cause__
    wrapped = type(error).__name__ == "AcpError" and any(base.__name__ == "AcpError" for base in type(cause).__mro__)
    return _origin(cause) if wrapped and cause is not None else error


def kind_of(error: BaseException) -> str:
    """Return the kind of an error, as JSON has it."""
    error = _origin(error)
    if (engine := _engine_kind(error)) in _ENGINE_KINDS:
        return _ENGINE_KINDS[engine]
    return next((KINDS[base.__name__] for base in type(error).__mro__ if base.__name__ in KINDS), "fault")


def is_retryable(error: BaseException) -> bool:
    """Whether the same command may succeed if it is given again later, with nothing changed."""
    if kind_of(error) in _PASSING:
        return True
    error = _origin(error)
    return getattr(error, "meaning", None) in _PASSING_REFUSALS or _engine_kind(error) in _PASSING_ENGINE_ERRORS


def retry_after(error: BaseException) -> "float | None":
    """Return the seconds to wait before the same command may succeed; None if the agent and its service did not name a time."""
    error = _origin(error)
    waits = getattr(error, "retry_after", 0.0)
    data = getattr(error, "data", None)
    if not waits and isinstance(data, dict) and isinstance(until := data.get("resetsAt"), str):
        from datetime import UTC, datetime

        try:
            waits = (datetime.fromisoformat(until) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError):  # not a time, or one without a zone
            return None
        return round(max(waits, 0.0), 3)
    return waits or None


def _engine_kind(error: BaseException) -> str:
    """Return the kind that an engine has given to its error; empty without one."""
    data = getattr(error, "data", None)
    kind = data.get("kind") if isinstance(data, dict) else None
    return kind if isinstance(kind, str) else ""


def status_of(error: BaseException) -> int:
    """Return the exit status of an error: the same mistake has the same status in every command."""
    missing = getattr(error, "missing", False)  # a program that was named and does not exist
    return MISUSED if missing or kind_of(error) in _MISUSES else FAILED


def coloured(stream: "TextIO", environment: "Mapping[str, str]" = os.environ) -> bool:
    """Whether to write colours: `--color` decides, then NO_COLOR, then FORCE_COLOR, then whether it is a terminal."""
    if invocation.color != "auto":
        return invocation.color == "always"
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and environment.get("TERM", "") not in ("", "dumb")


def did_you_mean(word: str, known: "Iterable[str]") -> str:
    """Return `did you mean …? ` for the nearest of the known words, or nothing."""
    from difflib import get_close_matches

    words = list(known)
    lower = {each.lower(): each for each in reversed(words)}
    near = [each for each in lower if sorted(each) == sorted(word.lower())]  # two letters were swapped
    near = near or get_close_matches(word.lower(), lower, n=1)
    if not near and len(word) > 2:
        near = [each for each in lower if each.startswith(word.lower())][:1]
    return f"did you mean `{lower[near[0]]}`? " if near else ""


def run_command(do: "Callable[[], int]") -> int:
    """Run a command and return its exit status, also if it fails."""
    _prepare_streams()
    _prepare_home()
    try:
        status = _status(do)
        sys.stdout.flush()
    except OutputLost as error:  # raised in `do`, or by the last flush
        status = _lost(error)
    except OSError as error:  # a stdout that is not ours
        status = _lost(OutputLost(error.errno, error.strerror))
    return status


def _status(do: "Callable[[], int]") -> int:
    try:
        return do()
    except SystemExit as end:  # --help
        return int(end.code or 0)
    except KeyboardInterrupt:
        _drop_quietly()
        sys.stderr.write("\n" if sys.stderr.isatty() else "")
        return CANCELLED
    except OutputLost:
        raise
    except Exception as error:
        return _failed(_first(error))


def _drop_quietly() -> None:
    """Say nothing of objects that an interrupt left half made: an event loop without its sockets, a coroutine that never began."""
    import warnings

    sys.unraisablehook = lambda _: None
    warnings.simplefilter("ignore", RuntimeWarning)


def _failed(error: Exception) -> int:
    if isinstance(error, OutputLost):
        raise error
    kind = kind_of(error)
    if isinstance(error, RuntimeError) and "home directory" in str(error):  # of pathlib
        return fail("your home directory is not known", "set HOME", FAILED, "system")
    if kind == "fault":
        return _fault(error)
    if kind == "system" and isinstance(error, OSError):
        return fail(*_words_of(error), FAILED, kind)
    sentence, hint = sentence_and_hint(error)
    hint = hint or f"`{invocation.prog} --help` shows the usage"
    return fail(sentence, hint, status_of(error), kind, retryable=is_retryable(error), wait=retry_after(error))


def _first(error: Exception) -> Exception:
    """Return the first error of a group: tasks that run together raise groups."""
    while isinstance(error, ExceptionGroup):
        error = next((each for each in error.exceptions if isinstance(each, OutputLost)), error.exceptions[0])
    return error


def _fault(error: Exception) -> int:
    """Report a bug in this program. The traceback goes to the log."""
    import logging
    from contextlib import suppress

    from antiphon.cli.logs import log_file, logging_to_file

    more = "report it with the command that you gave"
    with suppress(Exception), logging_to_file(verbose=False):
        logging.getLogger("antiphon.cli").error("a fault of this program", exc_info=error)
        more = f"{log_file()} has more"
    return fail(f"{type(error).__name__}: {error}", f"this is a fault of antiphon; {more}", FAILED, "fault")


def _words_of(error: OSError) -> tuple[str, str]:
    """Return sentence and hint for an error of the system that no command has handled."""
    try:
        os.getcwd()
    except OSError:
        return "the current directory does not exist any more", "change to another directory"
    why = (error.strerror or str(error)).lower()
    hints = {
        ENOSPC: "free some space on that disk",
        EACCES: "check its permissions",
        EPERM: "check its permissions",
        EROFS: "the disk is read-only: ANTIPHON_STATE_DIR and ANTIPHON_CONFIG_DIR name other places",
    }
    where = f"`{os.fsdecode(error.filename)}`: " if isinstance(error.filename, str | bytes) else ""
    return f"{where}{why}", hints.get(error.errno or 0, "check what it is")


# The standard streams.


class _Stdout(io.FileIO):
    """Stdout, with errors of a type of their own."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            while (written := super().write(data)) is None:  # it does not block: wait for its reader
                select.select([], [self.fileno()], [])
        except OSError as error:
            raise OutputLost(error.errno, error.strerror) from error
        return written


class _Stderr(_Stdout):
    """Stderr, which drops what cannot be written: a message that is lost is no reason to leave the work undone, or to call it failed."""

    def write(self, data: "ReadableBuffer", /) -> int:
        try:
            return super().write(data)
        except OutputLost:
            return memoryview(data).nbytes


def _prepare_streams() -> None:
    """Make stdin, stdout and stderr usable: a descriptor that is closed would become that of the next file which is opened."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            # Stdout is opened for reading, so that writing to it is an error and not silently lost.
            opened = os.open(os.devnull, os.O_WRONLY if fd == 2 else os.O_RDONLY)
            if opened != fd:
                os.dup2(opened, fd)
                os.close(opened)
            os.set_inheritable(fd, True)
            invocation.closed |= {fd}
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - it stays open as long as we live
    if _is_ours(sys.stdout, sys.__stdout__, 1):
        sys.stdout = _text_stream(_Stdout(1, "w", closefd=False), sys.stdout, line_buffering=os.isatty(1))
    if _is_ours(sys.stderr, sys.__stderr__, 2):
        sys.stderr = _text_stream(_Stderr(2, "w", closefd=False), sys.stderr, line_buffering=True)


def _is_ours(stream: "TextIO | None", original: "TextIO | None", fd: int) -> bool:
    """Whether a standard stream is what Python made of its descriptor: a test or an embedding program puts others in its place."""
    return stream is None or (stream is original and stream.fileno() == fd)


def _text_stream(raw: io.FileIO, original: "TextIO | None", *, line_buffering: bool) -> io.TextIOWrapper:
    encoding = "utf-8" if original is None else original.encoding
    # A character that cannot be encoded is shown by its number, so that one name does not lose the whole list.
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding=encoding, errors="backslashreplace", line_buffering=line_buffering
    )


def _prepare_home() -> None:
    """Set HOME where it is missing or no absolute path, as a shell does at a login: files would go to wherever we are."""
    if not os.environ.get("HOME", "").startswith("/"):
        os.environ.pop("HOME", None)
        import pwd

        try:
            os.environ["HOME"] = pwd.getpwuid(os.getuid()).pw_dir
        except KeyError:
            return  # the system does not know this user


def _lost(error: OutputLost) -> int:
    """Return the exit status after stdout failed: 0 if its reader has gone, else an error."""
    leave_stdout()
    if error.errno == EPIPE:
        return 0
    invocation.json = False
    if error.errno == EBADF:
        return fail("stdout is closed", "give it a place to go: a terminal, a file, or `> /dev/null`", FAILED, "output")
    why = (error.strerror or str(error)).lower()
    hint = "free some space there" if error.errno == ENOSPC else "send it somewhere else"
    return fail(f"stdout cannot be written: {why}", hint, FAILED, "output")


def require_streams() -> None:
    """Raise AcpError if stdin or stdout was closed from the start. For commands that serve ACP on them."""
    names = [name for fd, name in enumerate(("stdin", "stdout")) if fd in invocation.closed]
    if names:
        raise AcpError(
            f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} closed",
            hint="a client starts this with pipes on both",
        )


def leave_closed_terminal() -> bool:
    """Stop writing to a terminal that was closed, and return whether it was."""
    import termios

    try:
        termios.tcgetattr(1)
    except termios.error as error:
        if error.args[0] == EIO:
            _redirect(1)
            _redirect(2)
            return True
    return False


def leave_stdout() -> None:
    """Stop writing to stdout. Otherwise Python writes the rest when it exits, and complains."""
    _redirect(1)


def _redirect(fd: int) -> None:
    try:
        null = os.open(os.devnull, os.O_WRONLY)
    except OSError:
        return  # Python complains about the rest when it exits, and there is nothing else to do
    os.dup2(null, fd)
    os.close(null)
