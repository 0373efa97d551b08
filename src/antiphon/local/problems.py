"""What can be wrong with a file, one error type each, so that callers need not read the text.

FileProblem
├── OutsideRoots      the path leads out of the directories that may be used
├── NotThere          no such file; also a FileNotFoundError
├── NotPermitted      the system refuses; also a PermissionError
├── NotAFile          a directory, a pipe, a device, or not a path at all
├── NotText           binary, or in another encoding than UTF-8
└── TooLarge          more than fits into one answer
"""

import errno
from collections.abc import Iterable

from antiphon.errors import AcpError, Code

__all__ = [
    "FileProblem",
    "NotAFile",
    "NotPermitted",
    "NotText",
    "NotThere",
    "OutsideRoots",
    "TooLarge",
    "code_of",
    "message_of",
    "problem",
]


class FileProblem(AcpError):
    """A file could not be read or written; the sentence has its path and the reason."""


class OutsideRoots(FileProblem):
    """The path leads out of the directories that may be used."""

    def __init__(self, path: str, target: str, roots: Iterable[str]) -> None:
        self.path, self.target, self.roots = path, target, tuple(roots)
        where = f"`{path}` is" if target == path else f"`{path}` leads to `{target}`, which is"
        folders = ", ".join(f"`{root}`" for root in self.roots) or "none at all"
        super().__init__(
            f"{where} outside the directories that may be used: {folders}",
            hint="stay inside them, or add its directory to them",
        )


class NotThere(FileProblem, FileNotFoundError):
    """There is no such file."""


class NotPermitted(FileProblem, PermissionError):
    """The system denies access."""


class NotAFile(FileProblem):
    """A directory, a pipe, a device, or no usable path."""


class NotText(FileProblem):
    """Binary, or text in another encoding than UTF-8."""


class TooLarge(FileProblem):
    """More than fits into one answer."""


_CALLERS_FAULT = (OutsideRoots, NotPermitted, NotAFile, NotText, TooLarge)


def code_of(error: FileProblem) -> int:
    """Return the error code for a peer."""
    if isinstance(error, NotThere):
        return Code.RESOURCE_NOT_FOUND
    return Code.INVALID_PARAMS if isinstance(error, _CALLERS_FAULT) else Code.INTERNAL_ERROR


def message_of(error: FileProblem) -> str:
    """The message to send to a peer.

    That of a missing file begins with the words of the official SDKs, because some agents look for them instead of the code
    (Gemini CLI: `Resource not found`, `ENOENT`, `does not exist`, `No such file`).
    """
    return f"Resource not found: {error.sentence}" if isinstance(error, NotThere) else error.sentence


_NO_FILE = (errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENXIO)


def problem(verb: str, path: str, error: OSError) -> FileProblem:
    """Return the error type for an error of the system. `verb` is what was tried: `read` or `write`."""
    why = (error.strerror or str(error)).lower()
    if isinstance(error, FileNotFoundError) or (verb == "read" and error.errno == errno.ENOTDIR):
        return NotThere(f"cannot {verb} `{path}`: there is no such file", hint="check the path")
    if isinstance(error, PermissionError) or error.errno == errno.EROFS:
        return NotPermitted(
            f"cannot {verb} `{path}`: {why}", hint="check the permissions of the file and of its directory"
        )
    if error.errno in _NO_FILE:
        return NotAFile(f"cannot {verb} `{path}`: {why}", hint="give the path of a file")
    return FileProblem(f"cannot {verb} `{path}`: {why}", hint="check the disk it is on")
