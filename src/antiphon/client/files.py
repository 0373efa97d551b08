"""The client's handlers of `fs/read_text_file` and `fs/write_text_file`: unsaved buffers first, then the disk, inside the roots."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from antiphon.aio import maybe_await
from antiphon.errors import Code, RequestError
from antiphon.local.files import FileProblem, NotThere, Roots, lines_of, read_text, write_text
from antiphon.local.problems import code_of, message_of
from antiphon.protocol import v1

__all__ = ["SMALL", "Files", "Saved", "Unsaved", "refusal"]

Unsaved = Callable[[Path], "str | None | Awaitable[str | None]"]
Saved = Callable[[Path, str], "bool | Awaitable[bool]"]

SMALL: Final = 64 * 1024
"""Bytes up to which a file is read on the loop: that takes about as long as to wake a thread and be woken by it (0.1 ms). A longer
one, of which perhaps only lines far down are wanted, goes to a thread; so does every write, because it waits for the disk (fsync)."""


class Files:
    """The files that the agent may read, and write if `write` is set, inside the session's roots.

    Buffers of an editor come first. `unsaved(path)` gives the text of a buffer that is not saved, or None; `saved(path, text)` takes a
    write into a buffer and returns True, or False to have it written to disk. Both may be `def` or `async def`. They are called
    with the path as the agent wrote it and, if they do not know that and the real path is another, with the real path.
    """

    def __init__(self, *, write: bool = False, unsaved: Unsaved | None = None, saved: Saved | None = None) -> None:
        self.can_write = write
        self._unsaved = unsaved
        self._saved = saved

    async def read(self, roots: Roots | Iterable[str], request: v1.ReadTextFile) -> v1.ReadTextFileResult:
        """Read the text of a file, or a part of it.

        Raises:
            RequestError: it does not exist, is not text, or the agent may not read it.
        """
        with _refusing(request.path):
            roots = Roots.of(roots)
            real = roots.resolve(request.path)
            for name in _names(request.path, real):
                if self._unsaved is not None and (text := await maybe_await(self._unsaved(name))) is not None:
                    return v1.ReadTextFileResult(lines_of(text, request.line, request.limit))
            return v1.ReadTextFileResult(await _from_disk(roots, real, request))

    async def write(self, roots: Roots | Iterable[str], request: v1.WriteTextFile) -> v1.WriteTextFileResult:
        """Write a whole file.

        Raises:
            RequestError: it cannot be written, or the agent may not.
        """
        if not self.can_write:
            raise RequestError(
                Code.METHOD_NOT_FOUND, f"cannot write `{request.path}`: this client did not offer to write files"
            )
        with _refusing(request.path):
            roots = Roots.of(roots)
            real = roots.resolve(request.path)
            for name in _names(request.path, real):
                if self._saved is not None and await maybe_await(self._saved(name, request.content)):
                    return v1.WriteTextFileResult()
            await asyncio.to_thread(write_text, request.path, request.content, roots=roots)
            return v1.WriteTextFileResult()


async def _from_disk(roots: Roots, real: Path, request: v1.ReadTextFile) -> str:
    try:
        small = os.stat(real).st_size <= SMALL
    except OSError:
        small = True  # the error comes when it is read
    if small:
        return read_text(request.path, request.line, request.limit, roots=roots)
    return await asyncio.to_thread(read_text, request.path, request.line, request.limit, roots=roots)


def _names(asked: str, real: Path) -> list[Path]:
    path = Path(asked)
    return [path] if path == real else [path, real]


def refusal(error: FileProblem, path: str) -> RequestError:
    """Make the error that the agent receives."""
    data = {"uri": path} if isinstance(error, NotThere) else None
    return RequestError(code_of(error), message_of(error), data, hint=error.hint)


@contextmanager
def _refusing(path: str) -> Iterator[None]:
    try:
        yield
    except FileProblem as error:
        raise refusal(error, path) from error
