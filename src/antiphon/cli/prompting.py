"""Where the prompt of `antiphon run` comes from: arguments, a file, stdin. Read before anything is started.

Rule 1: what the user writes as a prompt may mention files (`@path`). What comes on stdin beside it is only data, and an `@` in it
only an @: it may be anybody's text.
Rule 2: nobody waits for ever. Beside a prompt, a stdin on which nothing comes is left alone after a moment; `-` waits for it.
"""

import os
import select
import stat
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from antiphon.cli.arguments import Misused, Options

if TYPE_CHECKING:
    from antiphon.client.attachments import Attachment
    from antiphon.protocol import v1

__all__ = ["STDIN_PATIENCE", "Prompt", "read_prompt"]

STDIN_PATIENCE: Final = 3.0
"""Seconds that the first byte on stdin may take when there is a prompt already. Many schedulers leave a pipe open on which nothing
ever comes."""

MAX_INPUT: Final = 10 * 1024 * 1024
"""Bytes of a prompt: more than any model reads."""

NOTHING_SAID: Final = "there is no prompt"


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is to be said."""

    text: str
    data: str | None = None
    """What came on stdin beside the prompt."""
    attachments: "list[Attachment]" = field(default_factory=list)

    def blocks(self, takes: "v1.PromptCapabilities", agent: str) -> "list[v1.ContentBlock]":
        """As it is sent to an agent that takes this."""
        from antiphon.client.attachments import blocks_of
        from antiphon.protocol import v1

        data = [v1.TextBlock(self.data)] if self.data else []
        return [v1.TextBlock(self.text), *data, *blocks_of(self.attachments, takes, agent)]


def read_prompt(options: Options, cwd: str) -> Prompt:
    """What the user wants to say.

    Raises:
        Misused: nothing, or too much.
        AttachmentError: a file that goes along is not there, or has no such lines.
    """
    from antiphon.client.attachments import attached, mentioned

    text, data = _words(options)
    if not text.strip():
        raise Misused(NOTHING_SAID)
    text, mentions = mentioned(text, cwd)
    attachments = [*mentions, *(attached(path, cwd) for path in options.attach)]
    _check_lines(attachments)
    return Prompt(text, data, attachments)


def _check_lines(attachments: "list[Attachment]") -> None:
    """Lines that are not there are found before an agent is started; what it takes of the rest is its own affair."""
    wanted = [each for each in attachments if each.first is not None]
    if wanted:
        from antiphon.client.attachments import blocks_of
        from antiphon.protocol import v1

        blocks_of(wanted, v1.PromptCapabilities(image=True, audio=True, embedded_context=True))


def _words(options: Options) -> tuple[str, str | None]:
    words = [word for word in options.prompt if word != "-"]
    wanted = len(words) < len(options.prompt)
    if options.file is not None:
        words.append(_file(options.file))
    written = " ".join(words) if options.file is None else "\n\n".join(filter(None, (" ".join(words[:-1]), words[-1])))
    if not words:
        if not wanted and sys.stdin.isatty():
            raise Misused(NOTHING_SAID)
        return _decoded(_everything(0, "stdin"), "stdin").strip("\n"), None
    return written, (_decoded(_everything(0, "stdin"), "stdin") if wanted or _something_comes() else None) or None


def _file(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _decoded(_everything(fd, path), path)
        finally:
            os.close(fd)
    except OSError as error:
        raise Misused(f"cannot read `{path}`: {(error.strerror or str(error)).lower()}") from error


def _everything(fd: int, name: str) -> bytes:
    data = bytearray()
    while chunk := os.read(fd, 1 << 16):
        data += chunk
        if len(data) > MAX_INPUT:
            raise Misused(f"`{name}` has more than {MAX_INPUT >> 20} MiB: attach it instead")
    return bytes(data)


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Misused(f"`{name}` is not text in UTF-8: attach it instead") from error


def _something_comes() -> bool:
    """Whether somebody has given us a stdin on purpose: a pipe or a file. A terminal is for questions, and /dev/null is nothing."""
    try:
        kind = os.fstat(0).st_mode
    except OSError:  # closed
        return False
    if stat.S_ISREG(kind):
        return True
    if not stat.S_ISFIFO(kind) and not stat.S_ISSOCK(kind):
        return False
    if select.select([0], [], [], STDIN_PATIENCE)[0]:
        return True
    sys.stderr.write(f"warning: nothing came on stdin for {STDIN_PATIENCE:g} s, so it is left out (`-` waits for it)\n")
    return False
