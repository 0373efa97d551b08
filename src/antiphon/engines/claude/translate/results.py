"""What came of a tool call, from the result as the model reads it and its structured twin."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from antiphon.engines.claude.translate import output, reads
from antiphon.engines.claude.translate.blocks import content_of, is_text, lean, readable, text_in, unframed
from antiphon.engines.claude.translate.diffs import diffs_of, places
from antiphon.engines.claude.translate.failures import failure_in
from antiphon.engines.claude.translate.fields import items, part, text
from antiphon.engines.claude.translate.tools import path_of
from antiphon.engines.claude.wire import ToolResultBlock
from antiphon.engines.wording import absolute, as_object, one_line, shown_text
from antiphon.protocol import v1
from antiphon.text import fenced

__all__ = ["Told", "result_of"]


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """How a call is shown with its result. No `locations` leaves them as they were.

    `output` and `exit_code` are there for commands: the first is what a terminal would show, the words of the CLI included.
    """

    content: list[v1.ToolContent] = msgspec.field(default_factory=list)
    locations: list[v1.ToolLocation] = msgspec.field(default_factory=list)
    raw_output: Any = None
    failed: bool = False
    output: str | None = None
    exit_code: int | None = None


_COMMANDS: Final = frozenset({"Bash", "BashOutput", "PowerShell"})
_DELEGATES: Final = frozenset({"Agent", "Skill", "Task"})
"""Tools that may give the work to a sub-agent."""

_EDITS: Final = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})


def result_of(name: str, tool_input: Any, block: ToolResultBlock, structured: Any, cwd: str) -> Told:
    """How the call ended, and what there is to see."""
    failed = block.is_error is True
    raw = as_object(lean(block.content if structured is None else structured), "error" if failed else "output")
    if name in _COMMANDS and not _has_pictures(block.content):
        return _command(block.content, structured, raw, failed=failed)
    if failed:
        return Told(content=_failure(block.content), raw_output=raw, failed=True)
    if name in _EDITS:
        return _edit(tool_input, block.content, structured, raw, cwd)
    if name in ("NotebookRead", "Read"):
        return _read(tool_input, block.content, structured, raw, cwd)
    known = _SHOWN.get(name)
    shown = known(structured) if known is not None else None
    content = content_of(block.content) if shown is None else shown
    return Told(content=_unframed(content) if name in _DELEGATES else content, raw_output=raw)


def _unframed(content: list[v1.ToolContent]) -> list[v1.ToolContent]:
    """The content without the lines before a report. They may be a block of their own."""
    match content:
        case [v1.ContentItem(content=v1.TextBlock(text=text)), *rest]:
            said = unframed(text)
            return [shown_text(said), *rest] if said else rest
        case _:
            return content


def _command(content: Any, structured: Any, raw: Any, *, failed: bool) -> Told:
    ran = output.printed(content, structured, failed=failed)
    return Told(
        content=output.as_content(ran),
        raw_output=raw,
        failed=failed or ran.interrupted,
        output=ran.shown,
        exit_code=ran.exit_code,
    )


def _has_pictures(content: Any) -> bool:
    return isinstance(content, list) and any(isinstance(each, dict) and each.get("type") == "image" for each in content)


def _failure(content: Any) -> list[v1.ToolContent]:
    said = failure_in(text_in(content))
    others = [] if isinstance(content, str) else [each for each in content_of(content) if not is_text(each)]
    return ([shown_text(fenced(said))] if said else []) + others


def _edit(tool_input: Any, content: Any, structured: Any, raw: Any, cwd: str) -> Told:
    named = text(structured, "filePath", "notebook_path")
    path = absolute(named, cwd) if named else path_of(tool_input, cwd)
    if path is None:
        return Told(content=content_of(content), raw_output=raw)
    if trouble := text(structured, "error"):
        return Told(content=[shown_text(fenced(trouble))], raw_output=raw, failed=True)
    changes = diffs_of(path, tool_input, structured)
    same = bool(changes) and all(change.old_text == change.new_text for change in changes)
    shown: list[v1.ToolContent] = [shown_text("No change.")] if same else [*changes]
    return Told(content=shown, locations=places(path, structured), raw_output=raw)


def _read(tool_input: Any, content: Any, structured: Any, raw: Any, cwd: str) -> Told:
    path = path_of(tool_input, cwd)
    line = reads.start_of(structured)
    there = [v1.ToolLocation(path=path, line=line)] if path is not None and line is not None else []
    return Told(content=reads.as_content(content, structured, path), locations=there, raw_output=raw)


def _agent(structured: Any) -> list[v1.ToolContent] | None:
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


def _web_search(structured: Any) -> list[v1.ToolContent] | None:
    """What was found, as links; and what was said about it."""
    parts: list[str] = []
    for result in items(structured, "results"):
        if isinstance(result, str):
            parts += [result.strip()] if result.strip() else []
            continue
        links = [link for hit in items(result, "content") if (link := _link(hit))]
        parts += ["\n".join(links)] if links else []
    return [shown_text(part) for part in parts] or None


def _link(hit: Any) -> str | None:
    url, name, about = text(hit, "url"), text(hit, "title"), text(hit, "snippet")
    if url is None:
        return None
    label = one_line(name or url).replace("[", "\\[").replace("]", "\\]")
    target = url.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
    return f"- [{label}]({target}){f': {one_line(about, 300)}' if about else ''}"


def _fetched(structured: Any) -> list[v1.ToolContent] | None:
    said = text(structured, "result")
    return [shown_text(readable(said))] if said else None


def _found_files(structured: Any) -> list[v1.ToolContent] | None:
    """Matching lines, or the names of the files."""
    said = text(structured, "content")
    names = [name for name in items(structured, "filenames") if isinstance(name, str)]
    if said is None and not isinstance(structured, dict):
        return None
    lines = said.rstrip("\n") if said else "\n".join(names)
    more = (
        [shown_text("There are more.")] if isinstance(structured, dict) and structured.get("truncated") is True else []
    )
    return [shown_text(fenced(lines)), *more] if lines else [shown_text("Nothing found.")]


def _found_tools(structured: Any) -> list[v1.ToolContent] | None:
    names = [name for name in items(structured, "matches") if isinstance(name, str)]
    return [shown_text(f"Found: {', '.join(names)}")] if names else None


def _plan(structured: Any) -> list[v1.ToolContent] | None:
    """The plan that was approved stays on view."""
    plan = text(structured, "plan")
    return [shown_text(plan)] if plan else None


def _answers(structured: Any) -> list[v1.ToolContent] | None:
    answers = part(structured, "answers")
    lines = [f"- {one_line(question)} **{one_line(str(answer))}**" for question, answer in answers.items()]
    own = text(structured, "response")
    return [shown_text("\n".join(lines + ([own] if own else [])))] if lines or own else None


def _message(structured: Any) -> list[v1.ToolContent] | None:
    said = text(structured, "message")
    return [shown_text(said)] if said else None


def _nothing(structured: Any) -> list[v1.ToolContent] | None:
    return [] if isinstance(structured, dict) else None


_SHOWN: Final[Mapping[str, Callable[[Any], list[v1.ToolContent] | None]]] = {
    **dict.fromkeys(("Agent", "Task"), _agent),
    "WebSearch": _web_search, "WebFetch": _fetched, "ToolSearch": _found_tools, "ExitPlanMode": _plan, "AskUserQuestion": _answers,
    **dict.fromkeys(("Glob", "Grep"), _found_files),
    **dict.fromkeys(("EnterWorktree", "ExitWorktree", "TaskStop"), _message),
    **dict.fromkeys(("EnterPlanMode", "TodoWrite"), _nothing),
}  # fmt: skip
