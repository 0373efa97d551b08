"""Blocks of a result as the model reads it, turned into content that a client can show."""

import re
from typing import Any, Final

from antiphon.engines.claude.translate.fields import items, number, part, text
from antiphon.engines.wording import one_line, shown_text
from antiphon.protocol import v1
from antiphon.text import size_in_words

__all__ = ["content_of", "is_text", "lean", "readable", "text_in", "unframed"]

_REMINDERS: Final = re.compile(r"\s*<system-reminder>.*?</system-reminder>", re.DOTALL)
_FRAMES: Final = re.compile(
    r"\A(?:<system>authentic event nonces[^\n]*</system>\n|\s*<tools-used-before-summary>[^<]*</tools-used-before-summary>\s*)+"
)
"""What a sub-agent's report begins with. Such a tag in the report itself is escaped by the CLI."""
_HEAVY: Final = 2000
"""Characters of base64 above which it is not said a second time in the raw output."""


def content_of(content: Any) -> list[v1.ToolContent]:
    """Everything in a result, in order: text, pictures, sound, resources and pointers to them."""
    if isinstance(content, str):
        said = readable(content)
        return [shown_text(said)] if said else []
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return []
    return [v1.ContentItem(content=shown) for block in content if (shown := _block(block)) is not None]


def is_text(item: v1.ToolContent) -> bool:
    """Whether it is nothing but text."""
    return isinstance(item, v1.ContentItem) and isinstance(item.content, v1.TextBlock)


def text_in(content: Any) -> str:
    """Only the text of a result."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(said for block in blocks if (said := text(block, "text")))


def readable(said: str) -> str:
    """Text without what the CLI whispers to the model."""
    return _REMINDERS.sub("", said) if "<system-reminder>" in said else said


def unframed(said: str) -> str:
    """The report of a sub-agent without the lines that the CLI puts before it for the model."""
    return _FRAMES.sub("", readable(said))


def lean(structured: Any) -> Any:
    """The raw output without pictures and documents that the content has already: they are as heavy as all the rest."""
    if isinstance(structured, list):
        return [lean(each) for each in structured]
    if not isinstance(structured, dict):
        return structured
    return {name: _lean_value(name, value) for name, value in structured.items()}


def _lean_value(name: str, value: Any) -> Any:
    if isinstance(value, str):
        heavy = len(value) > _HEAVY and name in ("base64", "blob", "data", "image_data")
        return f"({size_in_words(len(value) * 3 // 4)} in base64, left out)" if heavy else value
    return lean(value) if isinstance(value, dict | list) else value


def _block(block: Any) -> v1.ContentBlock | None:
    if not isinstance(block, dict):
        return v1.TextBlock(text=block) if isinstance(block, str) and block else None
    match block.get("type"):
        case "text":
            said = readable(text(block, "text") or "")
            return v1.TextBlock(text=said) if said else None
        case "image":
            return _image(block)
        case "audio" if (data := text(block, "data")) is not None:
            return v1.AudioBlock(data=data, mime_type=text(block, "mimeType", "mime_type") or "audio/wav")
        case "document":
            return v1.TextBlock(text=_document(block))
        case "resource":
            return _resource(part(block, "resource"))
        case "resource_link" if (uri := text(block, "uri")) is not None:
            return v1.ResourceLink(
                uri=uri, name=text(block, "name") or uri, title=text(block, "title"), size=number(block, "size"),
                description=text(block, "description"), mime_type=text(block, "mimeType"),
            )  # fmt: skip
        case "tool_reference":
            return v1.TextBlock(text=f"Tool: {text(block, 'tool_name') or '?'}")
        case "web_search_result":
            return v1.TextBlock(text=f"[{one_line(text(block, 'title') or '?')}]({text(block, 'url') or ''})")
        case kind:
            other = text(block, "text", "content", "stdout", "error_message", "error_code")
            return v1.TextBlock(text=other or f"[{kind or 'unknown'}]")


def _image(block: dict[str, Any]) -> v1.ContentBlock:
    source = part(block, "source")
    data = text(source, "data") or text(block, "data")
    if data is not None:
        return v1.ImageBlock(data=data, mime_type=text(source, "media_type") or text(block, "mimeType") or "image/png")
    return v1.TextBlock(text=f"[image: {text(source, 'url') or 'not sent along'}]")


def _document(block: dict[str, Any]) -> str:
    source = part(block, "source")
    name = text(block, "title")
    data, sort = text(source, "data"), text(source, "media_type") or "document"
    if data is None:
        return f"[{sort}: {name or text(source, 'url') or 'not sent along'}]"
    size = len(data) if source.get("type") == "text" else len(data) * 3 // 4
    return f"[{sort}{f' {one_line(name)}' if name else ''}, {size_in_words(size)}]"


def _resource(resource: dict[str, Any]) -> v1.ContentBlock | None:
    uri, mime_type = text(resource, "uri") or "", text(resource, "mimeType")
    if isinstance(said := resource.get("text"), str):
        return v1.EmbeddedResource(resource=v1.TextResource(uri=uri, text=said, mime_type=mime_type))
    if isinstance(blob := resource.get("blob"), str):
        return v1.EmbeddedResource(resource=v1.BlobResource(uri=uri, blob=blob, mime_type=mime_type))
    if saved := text(resource, "blobSavedTo"):
        return v1.ResourceLink(uri=f"file://{saved}", name=uri or saved, mime_type=mime_type)
    links = [text(each, "uri") for each in items(resource, "contents")]
    return v1.TextBlock(text="\n".join(link for link in links if link)) if links else None
