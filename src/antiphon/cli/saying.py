"""How every command speaks: data on stdout, words on stderr, an error and then a hint, in colour where that is wanted.

Imported before anything else, so it loads nothing heavy and nothing that only POSIX has.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TextIO

__all__ = [
    "CANCELLED", "COLORS", "FAILED", "KINDS", "MISUSED", "STATUSES", "Manner", "Misused", "OutputLost", "coloured", "did_you_mean", "error_text", "fail", "is_retryable", "kind_of",
    "manner", "status_of",
]  # fmt: skip

FAILED = 1
MISUSED = 2
CANCELLED = 130

STATUSES = {
    0: "done",
    FAILED: "it failed, or what was checked is wrong",
    MISUSED: "wrong arguments, or what they name does not exist: a command, option, agent, program, file, directory, session or id",
    CANCELLED: "interrupted",
}
"""Exit statuses that mean the same in every command. `run` and `record` have more; their help lists them."""

COLORS = ("auto", "always", "never")

_USAGE = "usage"
KINDS = {
    "Misused": _USAGE,
    "RuleError": _USAGE,
    "Unsettable": _USAGE,
    "ServersError": _USAGE,
    "BadPrompts": _USAGE,
    "BadCommands": _USAGE,
    "UnknownSession": "unknown_session",
    "NoSuchAgent": "unknown_agent",
    "UnknownAgent": "unknown_agent",
    "UnknownEngine": "unknown_agent",
    "AgentMissing": "agent_missing",
    "SpawnFailed": "spawn_failed",
    "AuthRequired": "auth_required",
    "RequestTimeout": "timeout",
    "ProcessDied": "agent_died",
    "ConnectionClosed": "connection_closed",
    "RequestError": "refused",
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
_PASSING_ENGINE_ERRORS = frozenset({"busy", "connection", "overloaded", "rate_limit", "server_error"})
"""What passes by itself: by the kind of an error, by the meaning of a refused request, by what an engine calls it in `data.kind`."""

_MISUSES = frozenset({_USAGE, "unknown_agent", "unknown_session"})


class Misused(Exception):
    """The arguments make no sense, or name what does not exist."""

    def __init__(self, sentence: str, *, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence, self.hint = sentence, hint


class OutputLost(OSError):
    """Stdout takes no more: its reader is gone, its disk is full, or it was closed from the start."""


class Manner:
    """How this invocation speaks. There is one, because a process runs one command."""

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
        """Forget the invocation before: tests run several in one process."""
        self.json, self.color, self.prog = False, "auto", "antiphon"


manner = Manner()


def fail(sentence: str, hint: str, status: int, kind: str | None = None, *, retryable: bool = False) -> int:
    """Report an error on stderr, with what to do about it; with `--json`, also as an object on stdout. Return the status."""
    sentence, hint = _clean(sentence), _clean(hint)
    if manner.json:
        kind = kind or (_USAGE if status == MISUSED else "failed")
        error = {"kind": kind, "message": sentence, "hint": hint, "retryable": retryable}
        _write_json({"type": "error", "exitCode": status, "error": error})
    try:
        sys.stderr.write(error_text(sentence, hint, color=coloured(sys.stderr)))
        sys.stderr.flush()
    except OSError:  # stderr is full or its reader gone: the status still says it
        pass
    return status


def error_text(sentence: str, hint: str, *, color: bool) -> str:
    """Return an error as every command writes it."""
    error, advice = ("\x1b[1;31merror:\x1b[0m", "\x1b[36mhint:\x1b[0m") if color else ("error:", "hint:")
    return f"{error} {_clean(sentence)}\n{advice} {_clean(hint)}\n"


def _clean(text: str) -> str:
    """Return a text without control characters and without a full stop: it is not always a sentence."""
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
    """Return the error that a plain `AcpError` was raised from, to say more about it: what kind it is did not change."""
    cause = error.__cause__
    wrapped = type(error).__name__ == "AcpError" and any(base.__name__ == "AcpError" for base in type(cause).__mro__)
    return _origin(cause) if wrapped and cause is not None else error


def kind_of(error: BaseException) -> str:
    """Return the kind of an error, as JSON has it."""
    error = _origin(error)
    return next((KINDS[base.__name__] for base in type(error).__mro__ if base.__name__ in KINDS), "fault")


def is_retryable(error: BaseException) -> bool:
    """Whether the same command may succeed if it is given again later, with nothing changed."""
    if kind_of(error) in _PASSING:
        return True
    error = _origin(error)
    data = getattr(error, "data", None)
    engine = data.get("kind") if isinstance(data, dict) else None
    return getattr(error, "meaning", None) in _PASSING_REFUSALS or (
        isinstance(engine, str) and engine in _PASSING_ENGINE_ERRORS
    )


def status_of(error: BaseException) -> int:
    """Return the exit status of an error: the same mistake has the same status in every command."""
    missing = getattr(error, "missing", False)  # a program that was named and does not exist
    return MISUSED if missing or kind_of(error) in _MISUSES else FAILED


def coloured(stream: "TextIO", environment: "Mapping[str, str]" = os.environ) -> bool:
    """Whether to write colours: `--color` decides, then NO_COLOR, then FORCE_COLOR, then whether it is a terminal."""
    if manner.color != "auto":
        return manner.color == "always"
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
