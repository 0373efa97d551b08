"""The log file of the commands: what was started, what went wrong, what was unusual. No prompts, and no secrets.

One file in the state directory, for its owner alone, set aside when it has grown. A command that cannot write it works without.
"""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from antiphon.config.directories import make_private_directory, state_dir
from antiphon.redaction import Redactor
from antiphon.text import prose

__all__ = ["LOG_LIMIT", "log_file", "logging_to_file"]

LOG_LIMIT: Final = 4 * 1024 * 1024
"""Bytes after which the file is set aside as `antiphon.log.1`: some thousand runs."""

LINE_LIMIT: Final = 2000
"""Characters of one entry: a line of an agent's output may be megabytes."""

_LIBRARIES: Final = ("hypercorn", "uvicorn", "websockets")
"""Loggers of servers that are ours to show. Only their warnings: the other entries have whole addresses, with what is in their queries."""

_log = logging.getLogger(__name__)


class RedactedLines(logging.Formatter):
    """Formats an entry without secrets, its further lines indented."""

    def __init__(self, form: str) -> None:
        super().__init__(form)
        self._redact = Redactor()

    def format(self, record: logging.LogRecord) -> str:
        """Return the entry as it is written."""
        return prose(self._redact(super().format(record)[: 2 * LINE_LIMIT])).replace("\n", "\n    ")[:LINE_LIMIT]


class RedactedJson(RedactedLines):
    """Formats an entry as one JSON object on a line, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the entry as it is written."""
        from json import dumps

        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "process": record.process,
            "message": super().format(record),
        }
        return dumps(entry, ensure_ascii=False)


class _LogFile(logging.FileHandler):
    """The log file. It is rotated when it is full, by any process that writes to it.

    One that cannot be written, as on a full disk, is not a reason to disturb the user.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        _make(path)
        super().__init__(path, encoding="utf-8", errors="backslashreplace")

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(OSError):
            self._look()
        super().emit(record)

    def _look(self) -> None:
        """Open a new file if this one is full or was rotated by another process."""
        if self.stream is None:
            return
        ours = os.fstat(self.stream.fileno())
        if ours.st_size <= LOG_LIMIT:
            return
        with suppress(FileNotFoundError):
            if os.path.samestat(ours, self._path.stat()):
                self._path.replace(self._path.with_suffix(".log.1"))
        self.stream.close()
        _make(self._path)
        self.stream = self._open()

    def handleError(self, record: logging.LogRecord) -> None:
        """Drop an entry that cannot be written."""

    def close(self) -> None:
        with suppress(OSError):
            super().close()


def log_file(directory: Path | None = None) -> Path:
    """Return the path of the log."""
    return (state_dir() if directory is None else directory) / "logs" / "antiphon.log"


@contextmanager
def logging_to_file(*, verbose: bool, stderr: str | None = None) -> Iterator[None]:
    """Write a log in this block; with `verbose` also to stderr, with all details; with `stderr`, there as `text` or `json`."""
    handlers: list[logging.Handler] = []
    with suppress(OSError):
        handlers.append(_file_handler(log_file()))
    if verbose:
        loud = logging.StreamHandler(sys.stderr)
        loud.setFormatter(RedactedLines("%(levelname)s %(name)s: %(message)s"))
        handlers.append(loud)
    elif stderr is not None:
        plain = logging.StreamHandler(sys.stderr)
        line = "%(asctime)s %(levelname)s %(name)s: %(message)s"
        plain.setFormatter(RedactedJson("%(message)s") if stderr == "json" else RedactedLines(line))
        handlers.append(plain)
    if not handlers:
        handlers.append(logging.NullHandler())  # else what goes wrong would be printed into the answer's screen
    levels = {"antiphon": logging.DEBUG if verbose else logging.INFO} | dict.fromkeys(_LIBRARIES, logging.WARNING)
    before = [(logger, logger.level, logger.propagate) for logger in map(logging.getLogger, levels)]
    for logger, _, _ in before:
        logger.setLevel(levels[logger.name])
        logger.propagate = False
        for handler in handlers:
            logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, level, propagates in before:
            for handler in handlers:
                logger.removeHandler(handler)
            logger.setLevel(level)
            logger.propagate = propagates
        for handler in handlers:
            handler.close()


def _make(path: Path) -> None:
    """Create the file for its owner alone, if it does not exist."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))


def _file_handler(path: Path) -> logging.Handler:
    make_private_directory(path.parent)
    handler = _LogFile(path)
    handler.setFormatter(RedactedLines("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    return handler
