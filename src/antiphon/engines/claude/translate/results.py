"""Results of tool calls, from the text that the model reads and the structured result beside it."""

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from antiphon.engines.claude.translate.content import (
    content_of,
    diffs_of,
    is_text,
    items,
    lean,
    number,
    part,
    places,
    readable,
    text,
    text_in,
    unframed,
)
from antiphon.engines.claude.translate.descriptions import path_of
from antiphon.engines.claude.wire import ToolResultBlock
from antiphon.engines.labels import absolute_path, as_object, line_number, one_line, shown_text
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject
from antiphon.text import fenced, size_in_words, strip_ansi

__all__ = [
    "CallResult",
    "CommandOutput",
    "failure_in",
    "file_content",
    "output_content",
    "printed",
    "result_of",
    "start_of",
]


class CallResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a call is shown with its result. No `locations` leaves them as they were.

    `output` and `exit_code` are there for commands: the first is what a terminal would show, notes of the CLI included.
    """

    content: list[v1.ToolContent] = msgspec.field(default_factory=list)
    locations: list[v1.ToolLocation] = msgspec.field(default_factory=list)
    raw_output: object = None
    failed: bool = False
    denied: bool = False
    """Whether it failed because it was not allowed."""
    output: str | None = None
    exit_code: int | None = None


_COMMANDS: Final = frozenset({"Bash", "BashOutput", "PowerShell"})
_DELEGATES: Final = frozenset({"Agent", "Skill", "Task"})
"""Tools that may give the work to a sub-agent."""

_EDITS: Final = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})


def result_of(name: str, tool_input: object, block: ToolResultBlock, structured: object, cwd: str) -> CallResult:
    """How the call ended, and what there is to see."""
    result = _result_of(name, tool_input, block, structured, cwd)
    denied = result.failed and _is_denial(text_in(block.content))
    return msgspec.structs.replace(result, denied=True) if denied else result


def _is_denial(value: str) -> bool:
    """Whether the model got the message that a call was not allowed: by the CLI, or in our words."""
    value = _ERROR.sub("", _TAGS.sub("", value).strip())
    return value.startswith(_DENIALS) and "stopped while running" not in value


def _result_of(name: str, tool_input: object, block: ToolResultBlock, structured: object, cwd: str) -> CallResult:
    failed = block.is_error is True
    raw = as_object(lean(block.content if structured is None else structured), "error" if failed else "output")
    if name in _COMMANDS and not _has_pictures(block.content):
        return _command(block.content, structured, raw, failed=failed)
    if failed:
        return CallResult(content=_failure(block.content), raw_output=raw, failed=True)
    if name in _EDITS:
        return _edit(tool_input, block.content, structured, raw, cwd)
    if name in ("NotebookRead", "Read"):
        return _read(tool_input, block.content, structured, raw, cwd)
    known = _CONTENT_OF_TOOL.get(name)
    parts = known(structured) if known is not None else None
    content = content_of(block.content) if parts is None else parts
    return CallResult(content=_unframed(content) if name in _DELEGATES else content, raw_output=raw)


def _unframed(content: list[v1.ToolContent]) -> list[v1.ToolContent]:
    """The content without the lines before a report. They may be a block of their own."""
    match content:
        case [v1.ContentItem(content=v1.TextBlock(text=text)), *rest]:
            value = unframed(text)
            return [shown_text(value), *rest] if value else rest
        case _:
            return content


def _command(content: object, structured: object, raw: object, *, failed: bool) -> CallResult:
    ran = printed(content, structured, failed=failed)
    return CallResult(
        content=output_content(ran),
        raw_output=raw,
        failed=failed or ran.interrupted,
        output=ran.terminal_text,
        exit_code=ran.exit_code,
    )


def _has_pictures(content: object) -> bool:
    return isinstance(content, list) and any(isinstance(each, dict) and each.get("type") == "image" for each in content)


def _failure(content: object) -> list[v1.ToolContent]:
    value = failure_in(text_in(content))
    others = [] if isinstance(content, str) else [each for each in content_of(content) if not is_text(each)]
    return ([shown_text(fenced(value))] if value else []) + others


def _edit(tool_input: object, content: object, structured: object, raw: object, cwd: str) -> CallResult:
    named = text(structured, "filePath", "notebook_path")
    path = absolute_path(named, cwd) if named else path_of(tool_input, cwd)
    if path is None:
        return CallResult(content=content_of(content), raw_output=raw)
    if problem := text(structured, "error"):
        return CallResult(content=[shown_text(fenced(problem))], raw_output=raw, failed=True)
    changes = diffs_of(path, tool_input, structured)
    same = bool(changes) and all(change.old_text == change.new_text for change in changes)
    parts: list[v1.ToolContent] = [shown_text("No change.")] if same else [*changes]
    return CallResult(content=parts, locations=places(path, structured), raw_output=raw)


def _read(tool_input: object, content: object, structured: object, raw: object, cwd: str) -> CallResult:
    path = path_of(tool_input, cwd)
    line = start_of(structured)
    there = [v1.ToolLocation(path=path, line=line)] if path is not None and line is not None else []
    return CallResult(content=file_content(content, structured, path), locations=there, raw_output=raw)


def _agent(structured: object) -> list[v1.ToolContent] | None:
    """What the sub-agent reports. The text for the model has a frame around it that is no business of the user."""
    match text(structured, "status"):
        case "completed":
            return content_of(items(structured, "content"))
        case "async_launched":
            return [shown_text("Works in the background.")]
        case "remote_launched":
            return [shown_text(f"Works in the cloud: {text(structured, 'sessionUrl') or ''}")]
        case _:
            return None


def _web_search(structured: object) -> list[v1.ToolContent] | None:
    """Return what was found, as links, and the text about it."""
    parts: list[str] = []
    for result in items(structured, "results"):
        if isinstance(result, str):
            parts += [result.strip()] if result.strip() else []
            continue
        links = [link for hit in items(result, "content") if (link := _link(hit))]
        parts += ["\n".join(links)] if links else []
    return [shown_text(part) for part in parts] or None


def _link(hit: object) -> str | None:
    url, name, about = text(hit, "url"), text(hit, "title"), text(hit, "snippet")
    if url is None:
        return None
    label = one_line(name or url).replace("[", "\\[").replace("]", "\\]")
    target = url.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    return f"- [{label}]({target}){f': {one_line(about, 300)}' if about else ''}"


def _fetched(structured: object) -> list[v1.ToolContent] | None:
    value = text(structured, "result")
    return [shown_text(readable(value))] if value else None


def _found_files(structured: object) -> list[v1.ToolContent] | None:
    """Matching lines, or the names of the files."""
    value = text(structured, "content")
    names = [name for name in items(structured, "filenames") if isinstance(name, str)]
    if value is None and not isinstance(structured, dict):
        return None
    lines = value.rstrip("\n") if value else "\n".join(names)
    more = (
        [shown_text("There are more.")] if isinstance(structured, dict) and structured.get("truncated") is True else []
    )
    return [shown_text(fenced(lines)), *more] if lines else [shown_text("Nothing found.")]


def _found_tools(structured: object) -> list[v1.ToolContent] | None:
    names = [name for name in items(structured, "matches") if isinstance(name, str)]
    return [shown_text(f"Found: {', '.join(names)}")] if names else None


def _plan(structured: object) -> list[v1.ToolContent] | None:
    """The plan that was approved stays on view."""
    plan = text(structured, "plan")
    return [shown_text(plan)] if plan else None


def _answers(structured: object) -> list[v1.ToolContent] | None:
    answers = part(structured, "answers")
    lines = [f"- {one_line(question)} **{one_line(str(answer))}**" for question, answer in answers.items()]
    if len(answers) == 1:  # the question is the title
        lines = [one_line(str(answer)) for answer in answers.values()]
    own = text(structured, "response")
    return [shown_text("\n".join(lines + ([own] if own else [])))] if lines or own else None


def _message(structured: object) -> list[v1.ToolContent] | None:
    value = text(structured, "message")
    return [shown_text(value)] if value else None


def _nothing(structured: object) -> list[v1.ToolContent] | None:
    return [] if isinstance(structured, dict) else None


_CONTENT_OF_TOOL: Final[Mapping[str, Callable[[Any], list[v1.ToolContent] | None]]] = {
    **dict.fromkeys(("Agent", "Task"), _agent),
    "WebSearch": _web_search, "WebFetch": _fetched, "ToolSearch": _found_tools, "ExitPlanMode": _plan, "AskUserQuestion": _answers,
    **dict.fromkeys(("Glob", "Grep"), _found_files),
    **dict.fromkeys(("EnterWorktree", "ExitWorktree", "TaskStop"), _message),
    **dict.fromkeys(("EnterPlanMode", "TodoWrite"), _nothing),
}  # fmt: skip


# What a command printed and how it ended.

_EXIT: Final = re.compile(r"^Exit code (\d{1,10})(?:\n|$)")
_NOTHING: Final = re.compile(r"^\(\w+ completed with no output\)$")
_SAVED: Final = re.compile(r"^<persisted-output>\s*(.*?)\s*(?:</persisted-output>)?\s*$", re.DOTALL)


class CommandOutput(msgspec.Struct, frozen=True, kw_only=True):
    """`output` as a terminal would show it; `exit_code` where it is known; `notes` are the CLI's, not the command's."""

    output: str = ""
    exit_code: int | None = None
    interrupted: bool = False
    notes: tuple[str, ...] = ()
    error: str | None = None
    """Why it did not run."""

    @property
    def terminal_text(self) -> str:
        """Everything, for a place that has only text."""
        return "\n".join(value for value in (self.output, self.error, *(f"[{note}]" for note in self.notes)) if value)


def printed(content: object, structured: object, *, failed: bool) -> CommandOutput:
    """Read the structured result, which has the output of the command and nothing else; for a failure there is only the text."""
    if isinstance(structured, dict) and isinstance(structured.get("stdout"), str):
        return _of_structured(structured, failed=failed)
    value = text_in(content)
    if failed:
        value = failure_in(value)
        found = _EXIT.match(value)
        return (
            CommandOutput(output=value[found.end() :], exit_code=int(found[1])) if found else CommandOutput(error=value)
        )
    if _NOTHING.match(value):
        return CommandOutput(exit_code=0)
    if saved := _SAVED.match(value):
        return CommandOutput(output=saved[1], exit_code=0)
    return CommandOutput(output=value, exit_code=0)


def output_content(result: CommandOutput) -> list[v1.ToolContent]:
    """Return the output in a fence, then the notes on it."""
    content: list[v1.ToolContent] = []
    if result.output.strip():
        content.append(shown_text(fenced(strip_ansi(result.output).rstrip("\n"), "console")))
    if result.error:
        content.append(shown_text(fenced(result.error)))
    notes = list(result.notes)
    if result.exit_code:
        notes.append(f"Exit code {result.exit_code}")
    return content + [shown_text(note) for note in notes]


def _of_structured(structured: JsonObject, *, failed: bool) -> CommandOutput:
    parts = (text(structured, "stdout"), (text(structured, "stderr") or "").strip("\n"))
    interrupted = structured.get("interrupted") is True
    running = text(structured, "backgroundTaskId")
    meaning = text(structured, "returnCodeInterpretation")
    code = number(structured, "exitCode", "code")
    if code is None and not (interrupted or running or meaning or failed):
        code = 0
    notes = []
    if interrupted:
        notes.append("Stopped before it had ended")
    if path := text(structured, "persistedOutputPath"):
        size = number(structured, "persistedOutputSize")
        notes.append(f"Only the beginning{f' of {size_in_words(size)}' if size else ''}: all of it is in {path}")
    if running:
        late = number(structured, "timedOutAfterMs")
        took_long = f" after {late / 1000:g} s" if late else ""
        notes.append(f"Goes on in the background{took_long} as {running}")
    if meaning:
        notes.append(meaning)
    return CommandOutput(
        output="\n".join(value for value in parts if value), exit_code=code, interrupted=interrupted, notes=tuple(notes)
    )


# What was read: the text without the line numbers that the model sees, pictures, documents and notebooks.

_GUTTER: Final = re.compile(r"^ *\d+(?:→|\t)")
_LANGUAGE: Final = re.compile(r"[A-Za-z0-9+#_-]{1,12}")


def file_content(content: object, structured: object, path: str | None) -> list[v1.ToolContent]:
    """The file as a person would read it."""
    file = part(structured, "file")
    path = text(file, "filePath") or path
    match structured.get("type") if isinstance(structured, dict) else None:
        case "text" if isinstance(value := file.get("content"), str):
            return _text(value, file, path)
        case "file_unchanged":
            return [shown_text("Unchanged since it was last read.")]
        case "notebook":
            cells = [shown_text(value) for cell in items(file, "cells") if (value := _cell(cell))]
            return [*cells, *_pictures(content)]
        case "pdf" | "parts" as kind:
            return [shown_text(_document(kind, file)), *_pictures(content)]
        case "image" if (data := text(file, "base64")) is not None:
            image = v1.ImageBlock(data=data, mime_type=text(file, "type") or "image/png")
            return [v1.ContentItem(content=image)]
        case _:
            return _unstructured(content, path)


def start_of(structured: object) -> int | None:
    """The first line that was read."""
    return line_number(number(part(structured, "file"), "startLine"))


def _pictures(content: object) -> list[v1.ToolContent]:
    """What the model was shown besides text: pages, plots."""
    return [each for each in content_of(content) if not is_text(each)]


def _text(value: str, file: JsonObject, path: str | None) -> list[v1.ToolContent]:
    if not value:
        return [shown_text("The file is empty.")]
    content: list[v1.ToolContent] = [shown_text(fenced(value, _language(path)))]
    if file.get("truncatedByTokenCap") is True:
        content.append(
            shown_text(f"The first {number(file, 'numLines') or '?'} of {number(file, 'totalLines') or '?'} lines.")
        )
    return content


def _unstructured(content: object, path: str | None) -> list[v1.ToolContent]:
    if not isinstance(content, str):
        return [_without_gutter(each, path) for each in content_of(content)]
    value = readable(content)
    return [shown_text(fenced(_plain(value), _language(path)))] if value.strip() else content_of(content)


def _without_gutter(item: v1.ToolContent, path: str | None) -> v1.ToolContent:
    if isinstance(item, v1.ContentItem) and isinstance(item.content, v1.TextBlock):
        return shown_text(fenced(_plain(item.content.text), _language(path)))
    return item


def _plain(value: str) -> str:
    """Without the line numbers, if every line has one."""
    lines = value.split("\n")
    if not all(_GUTTER.match(line) for line in lines if line):
        return value
    return "\n".join(_GUTTER.sub("", line, count=1) for line in lines)


def _cell(cell: object) -> str:
    source = text(cell, "source") or ""
    if text(cell, "cellType", "cell_type") == "markdown":
        return source
    printed = "\n".join(value for each in items(cell, "outputs") if (value := text(each, "text")))
    parts = [fenced(source, text(cell, "language") or "python")] if source else []
    return "\n".join([*parts, fenced(printed.rstrip("\n"))] if printed.strip() else parts)


def _document(kind: str, file: JsonObject) -> str:
    size, pages = number(file, "originalSize"), number(file, "count")
    details = [size_in_words(size)] if size is not None else []
    if kind == "parts" and pages is not None:
        details.append(f"{pages} page{'' if pages == 1 else 's'} read")
    return f"PDF ({', '.join(details)})" if details else "PDF"


def _language(path: str | None) -> str:
    """What highlights it: an ending is nearly always a language's name, or one that highlighters know."""
    ending = posixpath.splitext(path or "")[1][1:]
    return ending.lower() if _LANGUAGE.fullmatch(ending) else ""


# Why a call failed, for the user: the text for the model is longer and is about what the model may do next.

_TAGS: Final = re.compile(r"</?tool_use_error>")
_ERROR: Final = re.compile(r"^(?:Error:\s*)+(?=\S)")
_REFUSED: Final = "The user doesn't want to proceed with this tool use."
_DENIALS: Final = (_REFUSED, "The user rejected this tool call", "The user did not allow this tool call")
_USER_REASON: Final = re.compile(
    r"(?:the user said:|user provided the following reason for the rejection:)\s*(.+)", re.DOTALL | re.IGNORECASE
)
_TO_THE_MODEL: Final = re.compile(r"\s*IMPORTANT: You \*may\*.*", re.DOTALL)


def failure_in(value: str) -> str:
    """The reason, on its own."""
    value = _ERROR.sub("", _TAGS.sub("", readable(value)).strip())
    if value.startswith(_REFUSED):
        return _refusal(value)
    return _TO_THE_MODEL.sub("", value)


def _refusal(value: str) -> str:
    if "stopped while running" in value:
        return "Stopped while it was running. It may have done some of its work."
    theirs = _USER_REASON.search(value)
    return f"Not run, because you said: {theirs[1].strip()}" if theirs else "Not run, because it was declined."
