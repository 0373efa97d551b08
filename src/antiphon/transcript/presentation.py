"""What a person is shown of things: paths, calls, actions, plans, usage, errors. One line each; nothing is written here."""

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from antiphon.protocol import v1
from antiphon.text import strip_ansi
from antiphon.transcript.entries import CallEntry

if TYPE_CHECKING:
    from antiphon.policy import Action
    from antiphon.transcript.entries import CallEntry
    from antiphon.transcript.transcript import Transcript

__all__ = [
    "DIFF_LINES",
    "ChangedFile",
    "antiphon_meta",
    "call_line",
    "changes_of",
    "describe_action",
    "diff_lines",
    "diffs_in",
    "engine_of",
    "is_label",
    "plan_line",
    "shown_path",
    "usage_line",
    "written_lines",
]

# --- changes of files -------------------------------------------------------------------------------------------------

DIFF_LINES: Final = 60
"""Lines of one change that are shown: a screen or two. The file has all of it."""

MAX_COMPARED: Final = 20_000
"""Lines that are compared. Comparing longer files takes longer than a reader would look at the result."""


def diffs_in(content: "Sequence[v1.ToolContent] | object") -> "list[v1.Diff]":
    """The changes among what a call shows."""
    return [item for item in content if isinstance(item, v1.Diff)] if isinstance(content, Sequence) else []


def diff_lines(diff: "v1.Diff", shown_path: str, limit: int = DIFF_LINES) -> Iterator[str]:
    """The lines to show: a head, then `+`, `-` and ` ` lines, then how many more there are."""
    old, new = (diff.old_text or "").splitlines(), diff.new_text.splitlines()
    if len(old) + len(new) > MAX_COMPARED:
        yield f"{shown_path}: {len(old)} → {len(new)} lines"
        return
    lines = list(_unified(old, new))
    added = sum(line.startswith("+") for line in lines)
    removed = sum(line.startswith("-") for line in lines)
    yield f"{shown_path}{' (new)' if diff.old_text is None else ''}  +{added} -{removed}"
    yield from lines[:limit]
    if len(lines) > limit:
        yield f"… {len(lines) - limit} more lines"


def _unified(old: list[str], new: list[str]) -> Iterator[str]:
    import difflib

    for number, line in enumerate(difflib.unified_diff(old, new, lineterm="", n=2)):
        if number >= 2:  # the first two name files that have no names here
            yield line


MARKS: Final = {
    v1.ToolStatus.PENDING: "·",
    v1.ToolStatus.IN_PROGRESS: "▸",
    v1.ToolStatus.COMPLETED: "✓",
    v1.ToolStatus.FAILED: "✗",
}


def shown_path(path: str, cwd: str) -> str:
    """The shortest form of a path, seen from the given directory."""
    inside = os.path.relpath(path, cwd) if os.path.isabs(path) and cwd else path
    return path if inside.startswith("..") else inside


def call_line(call: "CallEntry", cwd: str, failed: str = "failed") -> str:
    """A tool call on one line. A failed call is marked by a word too; the caller may know a better one than the agent."""
    status = call.status.meaning
    end = f" ({'denied' if call.denied else failed})" if status is v1.ToolStatus.FAILED else ""
    places = [shown_path(place.path, cwd) for place in call.locations[:3]]
    title = call.label
    where = ", ".join(place for place in places if place not in title)
    more = f" +{len(call.locations) - 3}" if len(call.locations) > 3 else ""
    return f"{MARKS[status]} {title}{f'  {where}{more}' if where else ''}{end}"


def plan_line(steps: Sequence[v1.PlanEntry]) -> str:
    """A plan on one line: how far it is, and what is being done."""
    done = sum(step.status == v1.PlanStatus.COMPLETED for step in steps)
    now = next((step.content for step in steps if step.status == v1.PlanStatus.IN_PROGRESS), None)
    now = now or next((step.content for step in steps if step.status == v1.PlanStatus.PENDING), None)
    return f"☰ plan {done}/{len(steps)}{f': {now}' if now else ': done'}"


def usage_line(usage: v1.UsageUpdate | None, tokens: v1.Usage | None) -> str | None:
    """Tokens and money on one line; empty if the agent reported neither."""
    parts = []
    if tokens is not None:
        parts.append(f"{tokens.total_tokens:,} tokens ({tokens.input_tokens:,} in, {tokens.output_tokens:,} out)")
    if usage is not None:
        share = f" ({usage.used / usage.size:.0%})" if usage.size else ""
        parts.append(f"context {usage.used:,} of {usage.size:,}{share}")
        if usage.cost is not None:
            amount = usage.cost.amount
            parts.append(f"{f'{amount:.4g}' if amount < 1000 else f'{amount:,.2f}'} {usage.cost.currency}")
    return " · ".join(parts) or None


def written_lines(output: str) -> list[str]:
    """Return what a command wrote as a terminal shows it in the end: without colours and without overwritten text."""
    whole = strip_ansi(output.replace("\r\n", "\n")).strip("\n")
    return [line.rstrip("\r").rpartition("\r")[2] for line in whole.split("\n")] if whole.strip() else []


def describe_action(action: "Action") -> str:
    """What an agent wants to do, exactly: the command, the paths or the address."""
    if action.command is not None:
        return action.command
    if action.words is not None:
        return shlex.join(action.words)
    if action.url is not None:
        return action.url
    if action.paths:
        return ", ".join(action.paths)
    return action.name or action.kind


# --- engines of our own agent ------------------------------------------------------------------------------------------


def engine_of(update: object) -> str | None:
    """Return the engine that an update, a call or a question comes from, where several answer; None if the agent does not report it."""
    engine = antiphon_meta(getattr(update, "meta", None)).get("engine")
    return engine if isinstance(engine, str) and engine else None


def is_label(update: v1.Update) -> bool:
    """Whether a piece of a message is only the engine's name before its words."""
    return antiphon_meta(getattr(update, "meta", None)).get("label") is True


def antiphon_meta(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what our own agent adds to a message in `_meta`."""
    found = (meta or {}).get("antiphon")
    return found if isinstance(found, dict) else {}


# --- changes of a whole session --------------------------------------------------------------------------------------


@dataclass(slots=True)
class ChangedFile:
    """The change of one file, or of one part of it."""

    path: str
    old: str | None
    new: str


def changes_of(transcript: "Transcript") -> list[ChangedFile]:
    """Return every change of a session, file by file. Changes that follow on each other become one.

    Some agents send whole files and some only the lines they changed; so changes that do not fit together stay apart.
    """
    from antiphon.transcript.entries import CallEntry

    by_path: dict[str, list[ChangedFile]] = {}
    for entry in transcript.entries:
        if not isinstance(entry, CallEntry) or entry.status.meaning != v1.ToolStatus.COMPLETED:
            continue
        for item in entry.content:
            if isinstance(item, v1.Diff):
                known = by_path.setdefault(item.path, [])
                if known and known[-1].new == item.old_text:
                    known[-1].new = item.new_text
                elif not known or known[-1].new != item.new_text or known[-1].old != item.old_text:
                    known.append(ChangedFile(item.path, item.old_text, item.new_text))
    return [change for changes in by_path.values() for change in changes if change.old != change.new]
