"""Content of tool results: values out of loose JSON, blocks that a client can show, and diffs of edited files."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from antiphon.engines.bounded import MOST_TOKENS
from antiphon.engines.labels import line_number, one_line, shown_text
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject
from antiphon.text import size_in_words

__all__ = [
    "PatchHunk",
    "apply",
    "content_of",
    "diffs_of",
    "hunks_in",
    "is_text",
    "items",
    "lean",
    "number",
    "part",
    "places",
    "readable",
    "text",
    "text_in",
    "unframed",
]

# Values out of loose JSON, which is what tools take and return: it differs from version to version of the CLI.


def text(values: object, *names: str) -> str | None:
    """Return the first of these fields that is text and not empty."""
    if isinstance(values, dict):
        for name in names:
            value = values.get(name)
            if isinstance(value, str) and value:
                return value
    return None


def number(values: object, *names: str) -> int | None:
    """Return the first of these fields that is a whole number within the range that JSON readers agree on."""
    if isinstance(values, dict):
        for name in names:
            value = values.get(name)
            if isinstance(value, float) and value.is_integer() and abs(value) <= MOST_TOKENS:
                return int(value)
            if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST_TOKENS:
                return value
    return None


def items(values: object, *names: str) -> list[object]:
    """Return the first of these fields that is a list, or an empty one."""
    if isinstance(values, dict):
        for name in names:
            value = values.get(name)
            if isinstance(value, list):
                return value
    return []


def part(values: object, name: str) -> JsonObject:
    """Return this field if it is an object, or an empty one."""
    value = values.get(name) if isinstance(values, dict) else None
    return value if isinstance(value, dict) else {}


_REMINDERS: Final = re.compile(r"\s*<system-reminder>.*?</system-reminder>", re.DOTALL)
_FRAMES: Final = re.compile(
    r"\A(?:<system>authentic event nonces[^\n]*</system>\n|\s*<tools-used-before-summary>[^<]*</tools-used-before-summary>\s*)+"
)
"""What a sub-agent's report begins with. Such a tag in the report itself is escaped by the CLI."""
_HEAVY: Final = 2000
"""Characters of base64 above which it is left out of the raw output."""


def content_of(content: object) -> list[v1.ToolContent]:
    """Return everything in a result, in order: text, pictures, sound, resources and links."""
    if isinstance(content, str):
        value = readable(content)
        return [shown_text(value)] if value else []
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return []
    return [v1.ContentItem(content=parts) for block in content if (parts := _block(block)) is not None]


def is_text(item: v1.ToolContent) -> bool:
    """Whether it is nothing but text."""
    return isinstance(item, v1.ContentItem) and isinstance(item.content, v1.TextBlock)


def text_in(content: object) -> str:
    """Return only the text of a result."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else [content]
    return "\n".join(value for block in blocks if (value := text(block, "text")))


def readable(value: str) -> str:
    """Return text without the reminders that the CLI adds for the model."""
    return _REMINDERS.sub("", value) if "<system-reminder>" in value else value


def unframed(value: str) -> str:
    """Return the report of a sub-agent without the lines that the CLI puts before it for the model."""
    return _FRAMES.sub("", readable(value))


def lean(structured: object) -> object:
    """Return the raw output without pictures and documents that the content has already: they are as large as all the rest."""
    if isinstance(structured, list):
        return [lean(each) for each in structured]
    if not isinstance(structured, dict):
        return structured
    return {name: _lean_value(name, value) for name, value in structured.items()}


def _lean_value(name: str, value: object) -> object:
    if isinstance(value, str):
        heavy = len(value) > _HEAVY and name in ("base64", "blob", "data", "image_data")
        return f"({size_in_words(len(value) * 3 // 4)} in base64, left out)" if heavy else value
    return lean(value) if isinstance(value, dict | list) else value


def _block(block: object) -> v1.ContentBlock | None:
    if not isinstance(block, dict):
        return v1.TextBlock(text=block) if isinstance(block, str) and block else None
    match block.get("type"):
        case "text":
            value = readable(text(block, "text") or "")
            return v1.TextBlock(text=value) if value else None
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


def _image(block: JsonObject) -> v1.ContentBlock:
    source = part(block, "source")
    data = text(source, "data") or text(block, "data")
    if data is not None:
        return v1.ImageBlock(data=data, mime_type=text(source, "media_type") or text(block, "mimeType") or "image/png")
    return v1.TextBlock(text=f"[image: {text(source, 'url') or 'not sent along'}]")


def _document(block: JsonObject) -> str:
    source = part(block, "source")
    name = text(block, "title")
    data, kind = text(source, "data"), text(source, "media_type") or "document"
    if data is None:
        return f"[{kind}: {name or text(source, 'url') or 'not sent along'}]"
    size = len(data) if source.get("type") == "text" else len(data) * 3 // 4
    return f"[{kind}{f' {one_line(name)}' if name else ''}, {size_in_words(size)}]"


def _resource(resource: JsonObject) -> v1.ContentBlock | None:
    uri, mime_type = text(resource, "uri") or "", text(resource, "mimeType")
    if isinstance(value := resource.get("text"), str):
        return v1.EmbeddedResource(resource=v1.TextResource(uri=uri, text=value, mime_type=mime_type))
    if isinstance(blob := resource.get("blob"), str):
        return v1.EmbeddedResource(resource=v1.BlobResource(uri=uri, blob=blob, mime_type=mime_type))
    if saved := text(resource, "blobSavedTo"):
        return v1.ResourceLink(uri=f"file://{saved}", name=uri or saved, mime_type=mime_type)
    links = [text(each, "uri") for each in items(resource, "contents")]
    return v1.TextBlock(text="\n".join(link for link in links if link)) if links else None


# The whole text of an edited file before and after, from what the CLI reports.
# It reports the text before, and a patch. Two things about the patch are not as they look: tabs at the beginning of its lines
# have become two spaces each, and its lines end only at a line feed. So a patch has where and how many lines changed, the
# text before has its lines as they really were, and the strings of the edit have what was put in; the patch decides.

_TABS: Final = re.compile("(?:\\A|(?<=[\n\r\u2028\u2029]))\t+")  # what begins a line in JavaScript
_PAIRS: Final = re.compile(r"^(?:  )+")
_MOST_PLACES: Final = 20


class PatchHunk(msgspec.Struct, frozen=True, rename="camel"):
    """Neighbouring changes; each line begins with a blank, `-`, `+` or `\\`."""

    old_start: int
    new_start: int
    lines: list[str]


class _Edit(msgspec.Struct, frozen=True):
    old: str
    new: str
    everywhere: bool = False


def hunks_in(structured: object) -> list[PatchHunk]:
    """The hunks of a structured result; none if they are not what we know."""
    try:
        return msgspec.convert(items(structured, "structuredPatch"), list[PatchHunk])
    except msgspec.ValidationError:
        return []


def apply(before: str, hunks: Sequence[PatchHunk], *, guess: bool = True) -> str | None:
    """The text after the patch, or None if the patch is not of this text. With `guess` lost tabs are put where they may have been."""
    old = before.split("\n")
    lines = [f"{line}\n" for line in old[:-1]] + ([old[-1]] if old[-1] else [])
    out: list[str] = []
    at, tabs = 0, False
    for hunk in hunks:
        start = max(hunk.old_start - 1, 0)
        if start < at:
            return None
        out += lines[at:start]
        at, last = start, " "
        for line in hunk.lines:
            sign, value = line[:1] or " ", line[1:]
            if sign == "+":
                out.append(f"{_PAIRS.sub(_as_tabs, value) if tabs and guess else value}\n")
            elif sign == "\\":
                if last == "+":
                    out[-1] = out[-1][:-1]
            else:
                if at >= len(lines) or _flat(lines[at].removesuffix("\n")) != _flat(value):
                    return None
                tabs = tabs or lines[at].removesuffix("\n") != value
                out += lines[at : at + 1] if sign == " " else []
                at += 1
            last = sign
    return "".join(out + lines[at:])


def diffs_of(path: str, tool_input: object, structured: object) -> list[v1.Diff]:
    """What changed in the file: whole if its text before is known, else the hunks, else the strings of the edit."""
    if not isinstance(structured, dict):
        return _diffs_of_input(path, tool_input)
    if isinstance(updated := structured.get("updated_file"), str):  # a notebook
        return [v1.Diff(path=path, old_text=text(structured, "original_file"), new_text=updated)]
    hunks = hunks_in(structured)
    before, after = _before(structured), _after(structured)
    if before is None and after is not None and (structured.get("type") == "create" or not hunks):
        return [v1.Diff(path=path, old_text=None, new_text=after)]
    if before is not None:
        made = _made(before, after, hunks, _edits(structured) or _edits(tool_input))
        if made is not None:
            new_file = before == "" and structured.get("oldString") == ""
            return [v1.Diff(path=path, old_text=None if new_file else before, new_text=made)]
    return (
        [_of_hunk(path, hunk) for hunk in hunks]
        or _diffs_of_input(path, structured)
        or _diffs_of_input(path, tool_input)
    )


def places(path: str, structured: object) -> list[v1.ToolLocation]:
    """The first changed line of each hunk, counted in the new file."""
    found = [v1.ToolLocation(path=path, line=_first_change(hunk)) for hunk in hunks_in(structured)[:_MOST_PLACES]]
    return found or [v1.ToolLocation(path=path)]


def _before(structured: JsonObject) -> str | None:
    for name in ("originalFile", "originalFileContents"):
        if isinstance(found := structured.get(name), str):
            return found
    return None


def _after(structured: JsonObject) -> str | None:
    return found if isinstance(found := structured.get("content"), str) else None


def _made(before: str, after: str | None, hunks: Sequence[PatchHunk], edits: Sequence[_Edit]) -> str | None:
    """The text that agrees with the patch, of all that it may be; the patch's own where none does: the user may have changed it."""
    candidates = [after] if after is not None else _replaced(before, edits)
    patched = apply(before, hunks) if hunks else None
    if patched is None:
        return candidates[0] if candidates else None
    judge = _flat(apply(before, hunks, guess=False) or "")
    return next((made for made in candidates if _flat(made) == judge), patched)


def _replaced(before: str, edits: Sequence[_Edit]) -> list[str]:
    """What the edits make of the text. Where nothing is put in, the CLI takes the line's end away too."""
    if not edits:
        return []
    found = []
    for whole_lines in (False, True):
        made = before
        for edit in edits:
            old = f"{edit.old}\n" if whole_lines and not edit.new and not edit.old.endswith("\n") else edit.old
            if old == "":
                made = edit.new if made == "" else made
            elif old not in made:
                break
            else:
                made = made.replace(old, edit.new, -1 if edit.everywhere else 1)
        else:
            found.append(made)
    return found


def _edits(values: object) -> list[_Edit]:
    several = items(values, "edits")
    return [edit for each in several or [values] if (edit := _edit(each)) is not None]


def _edit(values: object) -> _Edit | None:
    if not isinstance(values, dict):
        return None
    old = values.get("oldString", values.get("old_string"))
    new = values.get("newString", values.get("new_string"))
    everywhere = values.get("replaceAll", values.get("replace_all")) is True
    return _Edit(old, new, everywhere) if isinstance(old, str) and isinstance(new, str) else None


def _diffs_of_input(path: str, values: object) -> list[v1.Diff]:
    """Diffs of only what was replaced, from the input of the call. An edit of nothing makes a file."""
    if isinstance(content := isinstance(values, dict) and values.get("content"), str):
        return [v1.Diff(path=path, old_text=None, new_text=content)]
    return [v1.Diff(path=path, old_text=edit.old or None, new_text=edit.new) for edit in _edits(values)]


def _of_hunk(path: str, hunk: PatchHunk) -> v1.Diff:
    return v1.Diff(path=path, old_text=_side(hunk, "-"), new_text=_side(hunk, "+"))


def _side(hunk: PatchHunk, sign: str) -> str:
    """One side of a hunk as text."""
    out: list[str] = []
    last = " "
    for line in hunk.lines:
        if line[:1] == "\\":
            if last in (" ", sign) and out:
                out[-1] = out[-1][:-1]
        elif line[:1] in ("", " ", sign):
            out.append(f"{line[1:]}\n")
        last = line[:1] or " "
    return "".join(out)


def _first_change(hunk: PatchHunk) -> int | None:
    unchanged = 0
    for line in hunk.lines:
        if line[:1] not in ("", " "):
            break
        unchanged += 1
    return line_number(hunk.new_start + unchanged)


def _flat(value: str) -> str:
    return _TABS.sub(lambda tabs: "  " * len(tabs[0]), value) if "\t" in value else value


def _as_tabs(pairs: "re.Match[str]") -> str:
    return "\t" * (len(pairs[0]) // 2)
