"""What kind of file this is: by its first bytes where they say so, else by its name. Opens nothing.

Only what prompts care about: the pictures and sounds that agents may take, and text by the names that people give it.
"""

import os
from typing import Final

__all__ = ["SUFFIXES", "TEXT_SUFFIXES", "kind_of"]

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
"""Pictures and sounds by their names, with the words that the protocol's guides use, and a few that are linked."""

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
"""Text by its name. A name that is not here says nothing: the bytes decide whether it is text."""

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
    """The type of a file by its name and its first bytes, or nothing if neither says."""
    for beginning, mime in _BEGINNINGS:
        if head.startswith(beginning):
            return mime
    if head[:4] == b"RIFF" and head[8:12] in (b"WEBP", b"WAVE"):
        return "image/webp" if head[8:12] == b"WEBP" else "audio/wav"
    suffix = os.path.splitext(name)[1].lower()
    return SUFFIXES.get(suffix) or TEXT_SUFFIXES.get(suffix, "")
