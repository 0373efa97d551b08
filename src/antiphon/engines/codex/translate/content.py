"""Pieces of content as Codex and MCP servers write them, in the protocol's own shape."""

import re
from typing import Any, Final

import msgspec

from antiphon.engines.codex.translate.wording import file_uri
from antiphon.engines.codex.wire import (
    AudioInput,
    ImageInput,
    LocalAudio,
    LocalImage,
    Mention,
    SkillInput,
    TextInput,
    UserInput,
)
from antiphon.engines.labels import shown_text
from antiphon.protocol import v1
from antiphon.protocol.base import BAD_INPUT
from antiphon.protocol.salvage import salvage
from antiphon.text import fenced

__all__ = ["block_of_input", "content_of_mcp", "content_of_output", "json_text"]

_DATA: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[^,;]*)*?;base64,", re.IGNORECASE)


class _Wrapped(msgspec.Struct):
    content: v1.ContentBlock


def json_text(value: Any) -> str:
    """Anything, as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def block_of_input(piece: UserInput) -> v1.ContentBlock | None:
    """A piece of what the user said; None where nothing of it can be shown."""
    match piece:
        case TextInput(text=text):
            return v1.TextBlock(text=text) if text else None
        case ImageInput(url=url, file_id=file_id):
            return _picture(url) if url else v1.TextBlock(text=f"[image {file_id}]")
        case AudioInput(url=url):
            data = _DATA.match(url)
            if data is not None:
                return v1.AudioBlock(data=url[data.end() :], mime_type=data[1] or "audio/wav")
            return v1.ResourceLink(name="audio", uri=url)
        case LocalImage(path=path) | LocalAudio(path=path):
            return v1.ResourceLink(name=path.rpartition("/")[2] or path, uri=file_uri(path))
        case SkillInput(name=name, path=path) | Mention(name=name, path=path):
            return v1.ResourceLink(name=name, uri=file_uri(path))
        case _:
            return None


def content_of_mcp(blocks: list[Any]) -> list[v1.ToolContent]:
    """What an MCP server's tool returned: the shapes are the protocol's own, and what is none is shown as it is written."""
    return [_mcp(block) for block in blocks]


def content_of_output(output: Any) -> list[v1.ToolContent]:
    """What other tools returned: text, or pieces in the shape of a model's input."""
    if isinstance(output, str):
        return [shown_text(output)] if output else []
    return [_piece(piece) for piece in output] if isinstance(output, list) else []


def _mcp(block: Any) -> v1.ToolContent:
    wire = msgspec.json.encode({"content": block})
    try:
        return v1.ContentItem(content=salvage(wire, _Wrapped).content)
    except BAD_INPUT:
        return shown_text(fenced(json_text(block), "json"))


def _piece(piece: Any) -> v1.ToolContent:
    if isinstance(piece, dict):
        text = piece.get("text")
        if isinstance(text, str):
            return shown_text(text)
        for name in ("imageUrl", "image_url"):
            if isinstance(piece.get(name), str):
                return v1.ContentItem(content=_picture(piece[name]))
    return shown_text(fenced(json_text(piece), "json"))


def _picture(url: str) -> v1.ContentBlock:
    data = _DATA.match(url)
    if data is not None:
        return v1.ImageBlock(data=url[data.end() :], mime_type=data[1] or "image/png")
    return v1.ResourceLink(name="image", uri=url)
