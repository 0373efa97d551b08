"""Files that are attached to a prompt: `@path` in its text, or named beside it, as the content blocks that an agent takes.

Rule 1: a missing file is an error that names it. An `@word` that does not look like a path stays text; `\\@` is always an `@`.
Rule 2: the text stays as it was written, mentions included; what they stand for follows it.
Rule 3: an agent is sent only what it has advertised. Text that it does not take as a whole is sent as a link, media is refused.

These functions read files: call them in a thread where the loop must not wait. No policy is applied: the user named these files.
"""

import base64
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from antiphon.errors import AcpError
from antiphon.local.files import NotText, TooLarge, read_text
from antiphon.protocol import v1

__all__ = [
    "EMBED_LIMIT",
    "MEDIA_LIMIT",
    "SUFFIXES",
    "TEXT_SUFFIXES",
    "TOTAL_LIMIT",
    "Attachment",
    "AttachmentError",
    "attached",
    "blocks_of",
    "kind_of",
    "mentioned",
    "prompt_blocks",
]

# The type of a file: by its first bytes where they determine it, else by its name. Nothing is opened here.
# Only the types that matter in prompts: images and sounds that agents may take, and text by the usual suffixes.

SUFFIXES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
    ".wav": "audio/wav",
    ".mp3": "audio/mp3",
    ".ogg": "audio/ogg",
    ".oga": "audio/ogg",
    ".flac": "audio/flac",
    ".aac": "audio/aac",
    ".pdf": "application/pdf",
    ".zip": "application/zip",
    ".gz": "application/gzip",
}
"""Images and sounds by their suffixes, with the types of the protocol's guides, and a few types that are linked."""

_PLAIN: Final = (
    "c cc cfg clj cmake conf cpp cs dart dockerfile el env erl ex exs go gradle groovy h hpp hs ini java jl kt kts less lock log lua m "
    "make mk ml nim nix patch php pl properties proto ps1 r rb rs rst sass scala scss sh sol sql svelte swift tcl tex tf toml ts tsx "
    "txt vim vue zig"
)

TEXT_SUFFIXES: Final = {f".{word}": "text/plain" for word in _PLAIN.split()} | {
    ".css": "text/css",
    ".csv": "text/csv",
    ".diff": "text/x-diff",
    ".htm": "text/html",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".jsx": "text/javascript",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".mjs": "text/javascript",
    ".py": "text/x-python",
    ".pyi": "text/x-python",
    ".xml": "application/xml",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
}
"""Text by its suffix. For other suffixes the bytes decide whether it is text."""

_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mp3"),
    (b"%PDF-", "application/pdf"),
)


def kind_of(name: str, head: bytes) -> str:
    """Return the type of a file by its name and its first bytes; empty if neither determines it."""
    for beginning, mime in _BEGINNINGS:
        if head.startswith(beginning):
            return mime
    if head[:4] == b"RIFF" and head[8:12] in (b"WEBP", b"WAVE"):
        return "image/webp" if head[8:12] == b"WEBP" else "audio/wav"
    suffix = os.path.splitext(name)[1].lower()
    return SUFFIXES.get(suffix) or TEXT_SUFFIXES.get(suffix, "")


EMBED_LIMIT: Final = 256 * 1024
"""Bytes of text that are embedded, which is more than most models read at once. A longer file is sent as a link, and the agent
reads what it needs of it; a range of lines may have this many."""

MEDIA_LIMIT: Final = 20 * 1024 * 1024
"""Bytes of one image or sound. The services behind the agents take less."""

TOTAL_LIMIT: Final = 40 * 1024 * 1024
"""Bytes of all that is embedded: base64 makes 53 MiB of it, and the limit of a frame is 64."""

_MENTION: Final = re.compile(r"""(?<![^\s(\["'])(\\?)@(?:"([^"\n]+)"(\#L[\d:L-]+|:\d+(?:-\d+)?)?|([^\s"]+))""")
_RANGE: Final = re.compile(r"(?:#L|:)(\d+)(?:[:-]L?(\d+))?$")
"""Lines behind a path: `:10-20`, `:7`, and `#L10:20` as editors write it."""
_AFTER: Final = ".,;:!?)]}'\""
"""Characters that end a sentence and not a path, unless there is such a file."""


class AttachmentError(AcpError):
    """A file cannot be attached: it does not exist, is too large, or of a type that the agent does not take."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file or a directory, or some lines of a file (from 1, both included)."""

    path: Path
    written: str
    """The path as the user wrote it, for errors."""
    first: int | None = None
    last: int | None = None

    @property
    def uri(self) -> str:
        """The URI of the file, with the lines."""
        if self.first is None:
            return self.path.as_uri()
        lines = f"{self.first}" if self.last == self.first else f"{self.first}:{self.last}"
        return f"{self.path.as_uri()}#L{lines}"


def attached(word: str, cwd: str | os.PathLike[str]) -> Attachment:
    """Return the attachment for a path, with `:10-20` or `#L10:20` behind it or without, relative to `cwd`.

    Raises:
        AttachmentError: there is no such file, or the line numbers are wrong.
    """
    if (found := _find(word, Path(cwd))) is None:
        raise AttachmentError(
            f"there is no file `{_RANGE.sub('', word)}` to attach", hint=f"check the path; it is relative to `{cwd}`"
        )
    return found


def mentioned(text: str, cwd: str | os.PathLike[str]) -> tuple[str, list[Attachment]]:
    """Return the text with `\\@` read as `@`, and the attachments that it mentions, each once and in order.

    Raises:
        AttachmentError: there is no file for a mention that looks like a path.
    """
    found: dict[str, Attachment] = {}
    for escaped, quoted, lines, bare in _MENTION.findall(text):
        if not escaped and (attachment := _mention(quoted, lines, bare, Path(cwd))) is not None:
            found.setdefault(attachment.uri, attachment)
    return _MENTION.sub(lambda match: match[0][1:] if match[1] else match[0], text), list(found.values())


def prompt_blocks(
    text: str,
    *,
    cwd: str | os.PathLike[str],
    takes: v1.PromptCapabilities,
    agent: str = "the agent",
    attach: Sequence[str] = (),
) -> list[v1.ContentBlock]:
    """Make the blocks of a prompt: the text, then what it mentions, then what is attached besides."""
    text, mentions = mentioned(text, cwd)
    wanted = [*mentions, *(attached(word, cwd) for word in attach)]
    return [v1.TextBlock(text), *blocks_of(wanted, takes, agent)]


def blocks_of(
    attachments: Sequence[Attachment], takes: v1.PromptCapabilities, agent: str = "the agent"
) -> list[v1.ContentBlock]:
    """Make the blocks of attachments, by what the agent takes.

    Raises:
        AttachmentError: the agent does not take such a file, or it is too large, or all together are.
    """
    blocks, total = list[v1.ContentBlock](), 0
    for attachment in {each.uri: each for each in attachments}.values():
        block, size = _block(attachment, takes, agent)
        total += size
        if total > TOTAL_LIMIT:
            raise AttachmentError(
                f"the attachments are more than {_shown(TOTAL_LIMIT)} together, from `{attachment.written}` on",
                hint="attach fewer at once",
            )
        blocks.append(block)
    return blocks


# How a path is found.


def _mention(quoted: str, lines: str, bare: str, cwd: Path) -> Attachment | None:
    if quoted:
        return attached(quoted + lines, cwd)
    word = bare
    while word:
        if (found := _find(word, cwd)) is not None:
            return found
        if word[-1] not in _AFTER:
            break
        word = word[:-1]
    if _looks_like_path(word):
        raise AttachmentError(
            f"there is no file `{_RANGE.sub('', word)}`, which `@{word}` means",
            hint=f"check the path, which is relative to `{cwd}`, or write `\\@{word}` if it is none",
        )
    return None


def _looks_like_path(word: str) -> bool:
    """Whether `@word` must mean a file. `@types/node`, `@app.route` and `@Ada` may be anything."""
    if word.startswith(("./", "../", "/", "~/")) or ("#L" in word and _RANGE.search(word)):
        return True
    suffix = os.path.splitext(_RANGE.sub("", word))[1].lower()
    return suffix in SUFFIXES or suffix in TEXT_SUFFIXES


def _find(word: str, cwd: Path) -> Attachment | None:
    if (path := _existing(word, cwd)) is not None:  # a file may have `#L1` in its name
        return Attachment(path, word)
    if (lines := _RANGE.search(word)) is None or (path := _existing(word[: lines.start()], cwd)) is None:
        return None
    first, last = int(lines[1]), int(lines[2] or lines[1])
    if not 1 <= first <= last:
        raise AttachmentError(
            f"`{word}` has wrong line numbers: they are counted from 1, and the first comes first",
            hint="write `:10-20`",
        )
    return Attachment(path, word, first, last)


def _existing(word: str, cwd: Path) -> Path | None:
    try:
        path = Path(os.path.abspath(cwd / Path(word).expanduser()))
        return path if word and path.exists() else None
    except (OSError, ValueError, RuntimeError):  # too long, a null, or the home of an unknown user
        return None


# How a block is made.


def _block(attachment: Attachment, takes: v1.PromptCapabilities, agent: str) -> tuple[v1.ContentBlock, int]:
    path, name = attachment.path, attachment.written
    if path.is_dir():
        if attachment.first is not None:
            raise AttachmentError(f"`{name}` has no lines: it is a directory", hint="attach a file of it")
        return v1.ResourceLink(path.name or "/", path.as_uri().rstrip("/") + "/", mime_type="inode/directory"), 0
    if not path.is_file():
        raise AttachmentError(
            f"cannot attach `{name}`: it is a pipe, a socket or a device", hint="give the path of a file"
        )
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            mime = kind_of(path.name, file.read(64))
        if mime.startswith(("image/", "audio/")):
            return _media(attachment, mime, size, takes, agent)
        return _text_or_link(attachment, mime, size, takes)
    except OSError as error:
        raise AttachmentError(
            f"cannot read `{name}`: {(error.strerror or str(error)).lower()}", hint="check its permissions"
        ) from error


def _media(
    attachment: Attachment, mime: str, size: int, takes: v1.PromptCapabilities, agent: str
) -> tuple[v1.ContentBlock, int]:
    name, is_image = attachment.written, mime.startswith("image/")
    if attachment.first is not None:
        raise AttachmentError(f"`{name}` has no lines: it is {mime}", hint="leave out the lines")
    if not (takes.image if is_image else takes.audio):
        what, word = ("images", "image") if is_image else ("sound", "audio")
        raise AttachmentError(
            f"`{name}` is {mime}, and {agent} takes no {what}: it did not advertise `promptCapabilities.{word}`",
            hint="choose an agent or a model that does, or leave it out",
        )
    if size > MEDIA_LIMIT:
        raise AttachmentError(
            f"`{name}` has {_shown(size)}, more than the {_shown(MEDIA_LIMIT)} of one image or sound",
            hint="make it smaller",
        )
    data = base64.b64encode(attachment.path.read_bytes()).decode()
    if is_image:
        return v1.ImageBlock(data, mime, uri=attachment.uri), size
    return v1.AudioBlock(data, mime), size


def _text_or_link(
    attachment: Attachment, mime: str, size: int, takes: v1.PromptCapabilities
) -> tuple[v1.ContentBlock, int]:
    path, first = attachment.path, attachment.first
    text = _text(attachment) if first is not None or size <= EMBED_LIMIT else None
    if text is None or not takes.embedded_context:
        return v1.ResourceLink(path.name, attachment.uri, mime_type=mime or None, size=size), 0
    length = len(text.encode())
    if length > EMBED_LIMIT:
        raise AttachmentError(
            f"`{attachment.written}` is more than {_shown(EMBED_LIMIT)} of text", hint="attach fewer lines"
        )
    return v1.EmbeddedResource(v1.TextResource(text, attachment.uri, mime or "text/plain")), length


def _text(attachment: Attachment) -> str | None:
    """The text, or None if it is none."""
    first, last = attachment.first, attachment.last
    try:
        if first is None or last is None:
            return read_text(attachment.path)
        text = read_text(attachment.path, first, last - first + 1)
    except NotText:
        if first is None:
            return None
        wrong = f"`{attachment.written}` has no lines: it is not text in UTF-8"
        raise AttachmentError(wrong, hint="leave out the lines") from None
    except TooLarge as error:
        raise AttachmentError(error.sentence, hint=error.hint) from error
    if not text:
        raise AttachmentError(f"`{attachment.path.name}` has no line {first}", hint="it is shorter than that")
    return text


def _shown(size: int) -> str:
    return f"{size / (1 << 20):.3g} MiB" if size >= 1 << 20 else f"{size / 1024:.3g} KiB"
