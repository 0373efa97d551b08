"""The parts of messages and calls that every export format shows. Pure."""

import re
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from antiphon.protocol import v1
from antiphon.transcript.entries import JoinedContent
from antiphon.transcript.presentation import diff_lines, shown_path
from antiphon.transcript.transcript import CallEntry

__all__ = ["ContentPart", "pieces_of", "pieces_of_call", "size"]

WHOLE_DIFF: Final = 5000
"""Lines of one change: a page holds all of what people change by hand, and not a generated file."""

_FENCE: Final = re.compile(r"`{3,}|~{3,}")


class ContentPart(msgspec.Struct, frozen=True):
    """A part of a message or a call."""

    kind: Literal["prose", "output", "diff", "note", "picture"]
    text: str
    """For a picture: the text shown where the picture cannot be."""
    data: str = ""
    """For a picture: its bytes in base64."""
    mime_type: str = ""


def pieces_of(content: JoinedContent, text: str) -> Iterator[ContentPart]:
    """Yield the parts of a message: its text, then other content."""
    blocks = content.blocks
    if all(isinstance(block, v1.TextBlock) for block in blocks):
        yield ContentPart("prose", text)
        return
    first = True
    for block in blocks:
        if isinstance(block, v1.TextBlock):
            # What is left out of the words stands at their beginning, and so in the first block that has any.
            cut = len(content.text) - len(text) if first else 0
            first = False
            yield ContentPart("prose", block.text[cut:])
        else:
            yield _other(block)


def pieces_of_call(call: CallEntry, cwd: str) -> Iterator[ContentPart]:
    """Yield the parts of a call."""
    for item in call.content:
        match item:
            case v1.ContentItem(content=v1.TextBlock(text=text)):
                yield ContentPart("output", _unfenced(text))
            case v1.ContentItem(content=block):
                yield _other(block)
            case v1.Diff():
                yield ContentPart("diff", "\n".join(diff_lines(item, shown_path(item.path, cwd), WHOLE_DIFF)))
            case v1.TerminalItem():
                yield ContentPart("note", "a terminal")
            case _:
                yield ContentPart("note", "something that this version does not know")


def _unfenced(text: str) -> str:
    """Return the output of a call without a fence around all of it."""
    lines = text.strip().split("\n")
    fence = _FENCE.match(lines[0])
    whole = fence is not None and len(lines) > 1 and lines[-1].strip() == fence.group()
    return "\n".join(lines[1:-1]) if whole else text.strip("\n").rstrip()


def _other(block: v1.ContentBlock) -> ContentPart:
    match block:
        case v1.ImageBlock():
            note = f"picture: {block.mime_type}, {size(len(block.data) * 3 // 4)}"
            return ContentPart("picture", note, block.data, block.mime_type)
        case v1.AudioBlock():
            return ContentPart("note", f"sound: {block.mime_type}, {size(len(block.data) * 3 // 4)}")
        case v1.ResourceLink():
            return ContentPart("note", f"link: {block.title or block.name} ({block.uri})")
        case v1.EmbeddedResource(resource=v1.TextResource() as resource):
            return ContentPart("note", f"file: {resource.uri}, {size(len(resource.text.encode('utf-8', 'replace')))}")
        case v1.EmbeddedResource(resource=v1.BlobResource() as resource):
            return ContentPart("note", f"file: {resource.uri}, {size(len(resource.blob) * 3 // 4)}")
        case v1.TextBlock():
            return ContentPart("prose", block.text)
        case _:
            return ContentPart("note", "something that this version does not know")


def size(number: int) -> str:
    """Return a number of bytes as text: `3 KiB`."""
    if number < 1024:
        return f"{number} bytes"
    return f"{number / 1024:.0f} KiB" if number < 1024 * 1024 else f"{number / 1024 / 1024:.1f} MiB"
