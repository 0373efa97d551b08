"""What was read: the text without the line numbers that the model sees, pictures, documents and notebooks."""

import posixpath
import re
from typing import Any, Final

from antiphon.engines.claude.translate.blocks import content_of, is_text, readable
from antiphon.engines.claude.translate.fields import items, number, part, text
from antiphon.engines.wording import line_number, shown_text
from antiphon.protocol import v1
from antiphon.text import fenced, size_in_words

__all__ = ["as_content", "start_of"]

_GUTTER: Final = re.compile(r"^ *\d+(?:→|\t)")
_LANGUAGE: Final = re.compile(r"[A-Za-z0-9+#_-]{1,12}")


def as_content(content: Any, structured: Any, path: str | None) -> list[v1.ToolContent]:
    """The file as a person would read it."""
    file = part(structured, "file")
    path = text(file, "filePath") or path
    match structured.get("type") if isinstance(structured, dict) else None:
        case "text" if isinstance(said := file.get("content"), str):
            return _text(said, file, path)
        case "file_unchanged":
            return [shown_text("Unchanged since it was last read.")]
        case "notebook":
            cells = [shown_text(said) for cell in items(file, "cells") if (said := _cell(cell))]
            return [*cells, *_pictures(content)]
        case "pdf" | "parts" as kind:
            return [shown_text(_document(kind, file)), *_pictures(content)]
        case "image" if (data := text(file, "base64")) is not None:
            image = v1.ImageBlock(data=data, mime_type=text(file, "type") or "image/png")
            return [v1.ContentItem(content=image)]
        case _:
            return _unstructured(content, path)


def start_of(structured: Any) -> int | None:
    """The first line that was read."""
    return line_number(number(part(structured, "file"), "startLine"))


def _pictures(content: Any) -> list[v1.ToolContent]:
    """What the model was shown besides text: pages, plots."""
    return [each for each in content_of(content) if not is_text(each)]


def _text(said: str, file: dict[str, Any], path: str | None) -> list[v1.ToolContent]:
    if not said:
        return [shown_text("The file is empty.")]
    shown: list[v1.ToolContent] = [shown_text(fenced(said, _language(path)))]
    if file.get("truncatedByTokenCap") is True:
        shown.append(
            shown_text(f"The first {number(file, 'numLines') or '?'} of {number(file, 'totalLines') or '?'} lines.")
        )
    return shown


def _unstructured(content: Any, path: str | None) -> list[v1.ToolContent]:
    if not isinstance(content, str):
        return [_without_gutter(each, path) for each in content_of(content)]
    said = readable(content)
    return [shown_text(fenced(_plain(said), _language(path)))] if said.strip() else content_of(content)


def _without_gutter(item: v1.ToolContent, path: str | None) -> v1.ToolContent:
    if isinstance(item, v1.ContentItem) and isinstance(item.content, v1.TextBlock):
        return shown_text(fenced(_plain(item.content.text), _language(path)))
    return item


def _plain(said: str) -> str:
    """Without the line numbers, if every line has one."""
    lines = said.split("\n")
    if not all(_GUTTER.match(line) for line in lines if line):
        return said
    return "\n".join(_GUTTER.sub("", line, count=1) for line in lines)


def _cell(cell: Any) -> str:
    source = text(cell, "source") or ""
    if text(cell, "cellType", "cell_type") == "markdown":
        return source
    printed = "\n".join(said for each in items(cell, "outputs") if (said := text(each, "text")))
    parts = [fenced(source, text(cell, "language") or "python")] if source else []
    return "\n".join([*parts, fenced(printed.rstrip("\n"))] if printed.strip() else parts)


def _document(kind: str, file: dict[str, Any]) -> str:
    size, pages = number(file, "originalSize"), number(file, "count")
    told = [size_in_words(size)] if size is not None else []
    if kind == "parts" and pages is not None:
        told.append(f"{pages} page{'' if pages == 1 else 's'} read")
    return f"PDF ({', '.join(told)})" if told else "PDF"


def _language(path: str | None) -> str:
    """What highlights it: an ending is nearly always a language's name, or one that highlighters know."""
    ending = posixpath.splitext(path or "")[1][1:]
    return ending.lower() if _LANGUAGE.fullmatch(ending) else ""
