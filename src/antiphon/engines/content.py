"""A prompt in pieces that any engine can take: the user's text, pictures, and what the text links to as context. Knows no engine.

Rule 1: the order is kept. What was attached is mentioned where it stood, so that `look at`, a link and `please` stay one sentence; its text
is context of its own, which stands before the words.
Rule 2: a prompt that begins with a slash command begins with it, whatever an editor puts before it.
Rule 3: nothing is lost in silence and nothing makes the prompt fail. What cannot be read or shown is named, with type and size.
"""

import asyncio
import binascii
import os
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec

from antiphon.errors import RemoteProtocolError, ResponseError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.text import fenced, size_in_words

if TYPE_CHECKING:
    from antiphon.agent.turn import AgentTurn

__all__ = [
    "LINK_CHARS",
    "LINK_LINES",
    "MEDIA_LIMIT",
    "READ_WAIT",
    "TOTAL_CHARS",
    "BadBlob",
    "Blob",
    "ContextPiece",
    "DocumentPiece",
    "LinkTarget",
    "PicturePiece",
    "Piece",
    "Reader",
    "TextPiece",
    "begins_with_command",
    "link_target",
    "opened",
    "pieces_of",
    "reader_of",
    "text_of",
]

# Base64 data with a declared type, which is not always true.

_DATA_URL: Final = re.compile(r"data:[^,]{0,200};base64,")
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_TRUSTED_BY_BYTES: Final = frozenset({"image/webp", *(mime for _, mime in _BEGINNINGS)})
"""Types that a service checks: data that only claims such a type would make it refuse the whole session."""

_TEXTS: Final = frozenset({
    "application/ecmascript", "application/graphql", "application/javascript", "application/json", "application/jsonl",
    "application/sql", "application/toml", "application/typescript", "application/x-ndjson", "application/x-sh",
    "application/x-yaml", "application/xml", "application/yaml",
})  # fmt: skip


class BadBlob(ValueError):
    """The data is not base64."""


class Blob(msgspec.Struct, frozen=True):
    """Decoded data with its real type, by its first bytes where these determine it."""

    mime_type: str
    bytes: bytes
    data: str
    """The bytes as base64, without anything around it."""
    charset: str = "utf-8"


def opened(data: str, mime_type: str | None) -> Blob:
    """The decoded data.

    Raises:
        BadBlob: it is not base64, or empty.
    """
    if url := _DATA_URL.match(data):  # some clients send the address instead
        data = data[url.end() :]
    try:
        content = binascii.a2b_base64("".join(data.split()), strict_mode=True)
    except (binascii.Error, ValueError) as error:
        raise BadBlob(str(error)) from error
    if not content:
        raise BadBlob("empty")
    declared, _, parameters = (mime_type or "").partition(";")
    found = re.search(r"charset\s*=\s*\"?([\w.:-]+)", parameters, re.IGNORECASE)
    return Blob(
        _real(declared.strip().lower(), content),
        content,
        binascii.b2a_base64(content, newline=False).decode(),
        found[1] if found else "utf-8",
    )


def _real(declared: str, content: bytes) -> str:
    for beginning, mime in _BEGINNINGS:
        if content.startswith(beginning):
            return mime
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return "application/octet-stream" if declared in _TRUSTED_BY_BYTES or declared == "image/jpg" else declared


def text_of(blob: Blob) -> str | None:
    """Return the text of a blob, if its type is a text and it can be decoded."""
    mime = blob.mime_type
    if not (mime.startswith("text/") or mime in _TEXTS or mime.endswith(("+json", "+xml", "+yaml"))):
        return None
    try:
        return blob.bytes.decode(blob.charset).removeprefix("\ufeff")
    except (UnicodeDecodeError, LookupError):
        return None


# The target of a link in a prompt: a file or a directory, perhaps some lines of it, or something elsewhere.
#
# Editors write the lines in many ways: `#L42`, `#L42:50`, `#L42-50`, `#L42-L50`, with columns (`#L42C3-L50C1`), or `?line=42`. Lines are
# counted from 1 and both ends belong to it.

_LINES: Final = re.compile(r"^L?(\d{1,9})(?:C\d+)?(?:(?::|-|\.\.)L?(\d{1,9})(?:C\d+)?)?$")
_WINDOWS: Final = re.compile(r"^/?([A-Za-z]:[\\/].*|\\\\.+)$")
"""A path with a drive or a share: it means something to the client, and nothing here."""


class LinkTarget(msgspec.Struct, frozen=True):
    """The file or directory on the client's machine that a link points to."""

    path: str
    first: int | None = None
    last: int | None = None
    symbol: str | None = None
    """The symbol in those lines, where the editor sends one."""

    @property
    def is_directory(self) -> bool:
        """Whether the link itself is marked as a directory."""
        return self.path.endswith(("/", "\\"))

    @property
    def count(self) -> int | None:
        """The number of lines; None for all."""
        return None if self.first is None or self.last is None else self.last - self.first + 1

    @property
    def lines(self) -> str:
        """The lines in words; empty for the whole file."""
        if self.first is None:
            return ""
        return f"line {self.first}" if self.last == self.first else f"lines {self.first}-{self.last}"


def link_target(uri: str, cwd: str) -> LinkTarget | None:
    """Return the file or directory that a link points to; None if it points anywhere else."""
    if _WINDOWS.match(uri):  # its drive would read as a scheme
        path, _, fragment = uri.partition("#")
        return _place(path, fragment, {}, cwd)
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    query = parse_qs(parts.query)
    match parts.scheme:
        case "file" if parts.netloc in ("", "localhost"):
            return _place(unquote(parts.path), parts.fragment, query, cwd)
        case "" if not parts.netloc:
            return _place(unquote(parts.path), parts.fragment, query, cwd)
        case "zed" if "path" in query:  # zed:///agent/selection?path=…#L5:15
            return _place(query["path"][0], parts.fragment, query, cwd)
        case _:
            return None


def _place(path: str, fragment: str, query: dict[str, list[str]], cwd: str) -> LinkTarget | None:
    if not path or "\0" in path:
        return None
    first, last = _lines(fragment) or _lines(query.get("line", [""])[0]) or (None, None)
    return LinkTarget(_absolute(path, cwd), first, last, query.get("symbol", [None])[0])


def _lines(words: str) -> tuple[int, int] | None:
    if (found := _LINES.match(words)) is None:
        return None
    first = int(found[1])
    ends = sorted((max(first, 1), max(int(found[2] or first), 1)))
    return ends[0], ends[1]


def _absolute(path: str, cwd: str) -> str:
    if windows := _WINDOWS.match(path):
        return windows[1]
    folder = "/" if path.endswith("/") else ""
    return os.path.normpath(os.path.join(cwd, path)).rstrip("/") + folder or "/"


LINK_LINES: Final = 2000
"""Lines that are read of a linked file: as many as coding agents read of one at once. They can read on by themselves."""

LINK_CHARS: Final = 100_000
"""Characters of one linked file, for those with long lines: some 25,000 tokens."""

LINK_BYTES: Final = 1024 * 1024
"""Bytes from which on a linked file is not even asked for, unless lines of it are named: it would cross the wire whole."""

TOTAL_CHARS: Final = 400_000
"""Characters of all context of a prompt: about half of a usual context window. What follows is mentioned only."""

MEDIA_LIMIT: Final = 20 * 1024 * 1024
"""Bytes of one picture or document. More does not fit into a request to a model, even if the engine shrinks it."""

READ_WAIT: Final = 10.0
"""Seconds that a client may take to read a file before we go on without."""

LONGEST_SUFFIX: Final = 10
"""Letters of a file's suffix that may be the name of a language."""

Reader: TypeAlias = Callable[[str, int | None, int | None], Awaitable[str]]
"""Path, first line and number of lines → the text. Raises `RequestError` where it cannot."""


class TextPiece(msgspec.Struct, frozen=True):
    """Text of the user."""

    text: str


class ContextPiece(msgspec.Struct, frozen=True):
    """The text of a file or attachment that the user's text mentions."""

    text: str


class PicturePiece(msgspec.Struct, frozen=True):
    """A picture of a type that the engine takes, as base64."""

    mime_type: str
    data: str


class DocumentPiece(msgspec.Struct, frozen=True):
    """A document of a type that the engine takes, as base64."""

    mime_type: str
    data: str


Piece: TypeAlias = TextPiece | ContextPiece | PicturePiece | DocumentPiece

_COMMAND: Final = re.compile(r"\s*/[A-Za-z0-9_][\w:.-]*(?:\s|$)")
_OPENS: Final = tuple(" \t\n([{<\"'`")
_CLOSES: Final = tuple(" \t\n)]}>\"'`.,;:!?")
_NO_TEXT: Final = ("image/", "audio/", "video/", "font/", "application/pdf", "application/zip", "application/gzip")


def reader_of(turn: "AgentTurn") -> Reader | None:
    """Return a reader of files as the client sees them, with what is not saved yet; None if the client reads no files."""
    session = turn.session
    if not session.client.reads_files:
        return None

    async def read(path: str, line: int | None, limit: int | None) -> str:
        return (await turn.request(m.READ_TEXT_FILE, v1.ReadTextFile(session.id, path, line, limit))).content

    return read


def begins_with_command(blocks: "Sequence[v1.ContentBlock]") -> bool:
    """Whether the user's text begins with a slash command. A path is not a command."""
    first = next((each.text for each in blocks if isinstance(each, v1.TextBlock) and each.text.strip()), "")
    return _COMMAND.match(first) is not None


async def pieces_of(
    blocks: "Sequence[v1.ContentBlock]",
    *,
    read: Reader | None,
    cwd: str,
    pictures: Collection[str],
    documents: Collection[str] = (),
) -> list[Piece]:
    """Return the pieces of a prompt: context first, then text, pictures and documents in their order."""
    if begins_with_command(blocks):
        first = next(each for each in blocks if isinstance(each, v1.TextBlock) and each.text.strip())
        rest = [each for each in blocks if each is not first]
        blocks = [v1.TextBlock(first.text.lstrip()), *rest]
    links = [_Link(block, link_target(block.uri, cwd)) for block in blocks if isinstance(block, v1.ResourceLink)]
    texts = iter(await asyncio.gather(*(link.text(read) for link in links)))
    collected = _Pieces(cwd, pictures, documents)
    for block in blocks:
        match block:
            case v1.TextBlock():
                collected.say(block.text)
            case v1.ResourceLink():
                collected.link(block, next(texts))
            case v1.EmbeddedResource():
                collected.resource(block.resource)
            case v1.ImageBlock() | v1.AudioBlock():
                collected.media(block)
            case _:
                collected.mention(f"[{block.kind}: content of a kind that cannot be shown to the model]")
    return collected.pieces()


class _Link:
    """A link of a prompt."""

    def __init__(self, block: v1.ResourceLink, place: LinkTarget | None) -> None:
        self._block = block
        self._place = place

    async def text(self, read: Reader | None) -> str | None:
        """Read the target as context; None for what cannot be read or is not meant to be."""
        place = self._place
        if read is None or place is None or not self._is_text(place):
            return None
        asked = LINK_LINES if place.count is None else min(place.count, LINK_LINES)
        try:
            async with asyncio.timeout(READ_WAIT):
                # One line more than wanted shows whether there are more.
                text = await read(place.path, place.first, asked + (place.count != asked))
        except (ResponseError, RemoteProtocolError, TimeoutError):
            return None
        return None if "\0" in text else _excerpt(place, text, asked)

    def _is_text(self, place: LinkTarget) -> bool:
        mime, size = self._block.mime_type or "", self._block.size or 0
        if place.is_directory or mime == "inode/directory":
            return False
        if mime.startswith(_NO_TEXT) and mime != "image/svg+xml":
            return False
        return place.first is not None or size <= LINK_BYTES


def _excerpt(place: LinkTarget, text: str, asked: int) -> str:
    """Quote a file with its path and lines, so that it can be cited. A long text is cut at the end of a line, with a note."""
    start, lines = place.first or 1, text.splitlines(keepends=True)
    if (
        place.count is not None and len(lines) > asked + 1
    ):  # a client that gives the whole file, whatever it is asked for
        lines = lines[start - 1 : start - 1 + place.count + 1]
    kept, size = list[str](), 0
    for line in lines[:asked]:
        size += len(line)
        if size > LINK_CHARS:
            break
        kept.append(line)
    where = f"{place.path}, {place.lines}" if place.lines else place.path
    if place.symbol:
        where += f" (`{place.symbol}`)"
    if not lines:
        return f"{where}: there is no text."
    more = len(kept) < len(lines) and len(kept) != place.count
    note = f" (only up to line {start + len(kept) - 1}; the rest was too long to be put here)" if more else ""
    return _quoted(where + note, "".join(kept), place.path)


def _quoted(what: str, text: str, name: str) -> str:
    suffix = name.rpartition("/")[2].rpartition(".")
    is_language = bool(suffix[1]) and suffix[2].isalnum() and len(suffix[2]) <= LONGEST_SUFFIX
    return f"{what}:\n{fenced(text, suffix[2] if is_language else '')}"


class _Pieces:
    """Collects the pieces of a prompt."""

    def __init__(self, cwd: str, pictures: Collection[str], documents: Collection[str]) -> None:
        self._cwd = cwd
        self._pictures = pictures
        self._documents = documents
        self._context: list[Piece] = []
        self._left = TOTAL_CHARS
        self._parts: list[Piece] = []
        self._mentioned = False
        """Whether the words so far end with a mention."""

    def pieces(self) -> list[Piece]:
        blank = [
            part for part in self._parts if isinstance(part, TextPiece) and not part.text.strip()
        ]  # models refuse those
        return [*self._context, *(part for part in self._parts if part not in blank)]

    # Text, and what is mentioned in it.

    def say(self, text: str) -> None:
        if not text:
            return
        if self._mentioned:
            between = "" if text.startswith(_CLOSES) else " "
        else:
            between = "" if text.startswith("\n") or self._words().endswith("\n") else "\n\n"
        self._add(text, between)
        self._mentioned = False

    def mention(self, text: str) -> None:
        self._add(text, "" if self._words().endswith(_OPENS) and not self._mentioned else " ")
        self._mentioned = True

    def _words(self) -> str:
        last = self._parts[-1] if self._parts else None
        return last.text if isinstance(last, TextPiece) else ""

    def _add(self, text: str, between: str) -> None:
        if words := self._words():
            self._parts[-1] = TextPiece(words + between + text)
        else:
            self._parts.append(TextPiece(text))

    # Attachments.

    def link(self, block: v1.ResourceLink, text: str | None) -> None:
        mention = _mention(block.uri, link_target(block.uri, self._cwd), block.title or block.name)
        if text is not None and self._fits(text):
            self.mention(mention)
            self._context.append(ContextPiece(text))
            return
        about = (block.description, block.mime_type, size_in_words(block.size) if block.size else "")
        facts = ", ".join(each for each in about if each)
        self.mention(f"{mention} ({facts})" if facts else mention)

    def resource(self, resource: v1.ResourceContents) -> None:
        if isinstance(resource, v1.TextResource):
            self._text(resource.text, resource.uri, "text", [])
        else:
            self._blob(resource.blob, resource.mime_type, resource.uri, "attachment")

    def media(self, block: v1.ImageBlock | v1.AudioBlock) -> None:
        uri = block.uri or "" if isinstance(block, v1.ImageBlock) else ""
        what = "image" if isinstance(block, v1.ImageBlock) else "audio"
        if not block.data and uri:
            self._name(uri, what, [])
        else:
            self._blob(block.data, block.mime_type, uri, what)

    def _blob(self, data: str, mime: str | None, uri: str, what: str) -> None:
        try:
            blob = opened(data, mime)
        except BadBlob:
            self._name(uri, what, [mime or "", "its base64 is broken, so it was left out"])
            return
        facts = [blob.mime_type or "unknown type", size_in_words(len(blob.bytes))]
        if blob.mime_type in self._pictures or blob.mime_type in self._documents:
            self._show(blob, uri, what, facts)
        elif (text := text_of(blob)) is not None:
            self._text(text, uri, what, facts)
        else:
            self._name(uri, what, [*facts, "which the model cannot be shown"])

    def _text(self, text: str, uri: str, what: str, facts: list[str]) -> None:
        if not self._fits(text):
            size = size_in_words(len(text.encode(errors="replace")))
            self._name(uri, what, [f"{size} of text: too long to be put here"])
            return
        self._name(uri, what, facts)
        place = link_target(uri, self._cwd)
        where = uri or f"The {what}"
        if place is not None:
            where = f"{place.path}, {place.lines}" if place.lines else place.path
        self._context.append(ContextPiece(_quoted(where, text, "" if place is None else place.path)))

    def _show(self, blob: Blob, uri: str, what: str, facts: list[str]) -> None:
        if len(blob.bytes) > MEDIA_LIMIT:
            self._name(uri, what, [*facts, "too large to be shown to the model"])
            return
        if link_target(uri, self._cwd) is not None:
            self._name(uri, what, [])
        kind = PicturePiece if blob.mime_type in self._pictures else DocumentPiece
        self._parts.append(kind(blob.mime_type, blob.data))
        self._mentioned = False

    def _name(self, uri: str, what: str, facts: list[str]) -> None:
        """Mention an attachment with what is known of it."""
        known = ", ".join(fact for fact in facts if fact)
        if uri:
            mention = _mention(uri, link_target(uri, self._cwd), "")
            self.mention(f"{mention} ({known})" if known else mention)
        else:
            self.mention(f"[{what}: {known}]" if known else f"[{what}]")

    def _fits(self, text: str) -> bool:
        if len(text) > self._left:
            return False
        self._left -= len(text)
        return True


def _mention(uri: str, place: LinkTarget | None, title: str) -> str:
    """Return a link in Markdown, with the lines in its name."""
    if place is None:
        return f"[{_escaped(title)}]({_address(uri)})" if title and title != uri else uri
    name = place.path.rstrip("/\\").replace("\\", "/").rpartition("/")[2] or place.path
    lines = f" {place.lines}" if place.lines else ""
    return f"[@{_escaped(name)}{'/' if place.is_directory else ''}{lines}]({_address(uri)})"


def _escaped(name: str) -> str:
    return re.sub(r"([\[\]\\])", r"\\\1", " ".join(name.split()))


def _address(uri: str) -> str:
    return f"<{uri}>" if re.search(r"[\s()]", uri) else uri
