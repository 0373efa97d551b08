"""Bytes that came as base64 with a word about what they are, which is not always true. Pure."""

import binascii
import re
from typing import Final

import msgspec

__all__ = ["BadBlob", "Blob", "opened", "text_of"]

_DATA_URL: Final = re.compile(r"data:[^,]{0,200};base64,")
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)
_TRUSTED_BY_BYTES: Final = frozenset({"image/webp", *(mime for _, mime in _BEGINNINGS)})
"""Types that a service checks: what says so and is not would make it refuse the whole conversation."""

_TEXTS: Final = frozenset({
    "application/ecmascript", "application/graphql", "application/javascript", "application/json", "application/jsonl",
    "application/sql", "application/toml", "application/typescript", "application/x-ndjson", "application/x-sh",
    "application/x-yaml", "application/xml", "application/yaml",
})  # fmt: skip


class BadBlob(ValueError):
    """It is not base64."""


class Blob(msgspec.Struct, frozen=True):
    """What it really is, by its bytes where they tell."""

    mime_type: str
    bytes: bytes
    data: str
    """The same as base64, without anything around it."""
    charset: str = "utf-8"


def opened(data: str, mime_type: str | None) -> Blob:
    """Decode it.

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
    said, _, parameters = (mime_type or "").partition(";")
    found = re.search(r"charset\s*=\s*\"?([\w.:-]+)", parameters, re.IGNORECASE)
    return Blob(
        _real(said.strip().lower(), content),
        content,
        binascii.b2a_base64(content, newline=False).decode(),
        found[1] if found else "utf-8",
    )


def _real(said: str, content: bytes) -> str:
    for beginning, mime in _BEGINNINGS:
        if content.startswith(beginning):
            return mime
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return "application/octet-stream" if said in _TRUSTED_BY_BYTES or said == "image/jpg" else said


def text_of(blob: Blob) -> str | None:
    """The text, if it is said to be one and is."""
    mime = blob.mime_type
    if not (mime.startswith("text/") or mime in _TEXTS or mime.endswith(("+json", "+xml", "+yaml"))):
        return None
    try:
        return blob.bytes.decode(blob.charset).removeprefix("\ufeff")
    except (UnicodeDecodeError, LookupError):
        return None
