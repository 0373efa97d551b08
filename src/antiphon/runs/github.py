"""A run in GitHub Actions: annotations, the summary of a step, and its outputs. Pure texts; the caller writes them.

What an agent wrote is escaped: it cannot become a workflow command, another output or another annotation.
"""

import os
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from antiphon.text import fenced, one_line

if TYPE_CHECKING:
    from antiphon.runs.events import ResultEvent

__all__ = ["annotations", "facts_of", "outputs", "summary"]

ANNOTATIONS: Final = 10
"""Annotations of one kind that GitHub shows of a step."""

WARNINGS: Final = 3
"""Annotations that are left to warnings of Antiphon; the summary has all of them."""

SUMMARY_TEXT: Final = 200_000
"""Characters of an answer in a summary: GitHub takes 1 MiB of a step."""

Level = Literal["error", "warning", "notice"]


def annotations(result: "ResultEvent", meaning: str, top: str, advice: str = "") -> list[str]:
    """Return the workflow commands that annotate a run. Paths are shown relative to `top`.

    `meaning` is that of its exit status, and `advice` what to do about it.
    """
    error = result.error
    lines: list[str] = []
    if error is not None:
        lines.append(_command("error", "antiphon run", f"{error.message}\n{error.hint}"))
    elif result.exit_code:
        why = advice or f"{meaning} (exit status {result.exit_code})"
        lines.append(_command("error", "antiphon run", why))
    lines += [
        _command("warning", "antiphon run", f"{each.message}\n{each.hint or ''}".strip())
        for each in result.warnings[:WARNINGS]
    ]
    lines += [
        _command("warning", f"{each.engine} failed", f"{each.message}\n{each.hint or ''}".strip())
        for each in result.failures[:ANNOTATIONS]
    ]
    left = ANNOTATIONS - len(result.warnings[:WARNINGS]) - len(result.failures[:ANNOTATIONS])
    lines += [
        _command("warning", f"denied: {one_line(each.subject)}", each.why) for each in result.denials[: max(left, 0)]
    ]
    lines += [
        _command("notice", f"{change} by {result.agent or 'the agent'}", path, file=path)
        for path, change in list(_changes(result, top))[:ANNOTATIONS]
    ]
    return lines


def _changes(result: "ResultEvent", top: str) -> Iterator[tuple[str, str]]:
    for each in result.files_changed:
        path = os.path.relpath(each.path, top) if os.path.isabs(each.path) else each.path
        if not path.startswith(".."):
            yield path, each.change


def _command(level: Level, title: str, message: str, *, file: str | None = None) -> str:
    properties = [*([] if file is None else [f"file={_property(file)}"]), f"title={_property(title)}"]
    return f"::{level} {','.join(properties)}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def facts_of(result: "ResultEvent") -> list[tuple[str, str]]:
    """Return what a person wants to know about a run, as names and values."""
    found = [("agent", result.agent or "none"), ("time", f"{result.seconds:.1f} s")]
    if result.tokens is not None:
        found.append(("tokens", f"{result.tokens.total:,}"))
    if result.usage is not None and result.usage.cost is not None:
        found.append(("cost", f"{result.usage.cost.amount:.4f} {result.usage.cost.currency}"))
    files = result.patch.files if result.patch is not None else [each.path for each in result.files_changed]
    found.append(("files changed", f"{len(files)}"))
    if result.denied:
        found.append(("denied", f"{result.denied}"))
    if result.worktree is not None and result.worktree.kept:
        found.append(("branch", result.worktree.branch))
    if result.session_id is not None:
        found.append(("session", result.session_id))
    return found


def summary(result: "ResultEvent", meaning: str) -> str:
    """Return a run as Markdown for the summary of a step. `meaning` is that of its exit status."""
    mark = "✅" if result.exit_code == 0 else "❌"
    parts = [
        f"### {mark} antiphon run: {meaning}",
        "\n".join(["| | |", "|---|---|", *(f"| {name} | {_cell(value)} |" for name, value in facts_of(result))]),
    ]
    if result.error is not None:
        parts.append(f"> **{one_line(result.error.message)}**\n>\n> {one_line(result.error.hint)}")
    parts += [f"> **{each.engine} failed**: {one_line(each.message)}" for each in result.failures]
    parts += [f"> warning: {one_line(each.message)}" for each in result.warnings]
    if result.output is not None:
        parts.append(fenced(msgspec.json.format(msgspec.json.encode(result.output), indent=2).decode(), "json"))
    elif result.answers:
        parts += [f"#### {each.engine}\n\n{each.text[:SUMMARY_TEXT].strip()}" for each in result.answers]
    elif result.text.strip():
        parts.append(result.text[:SUMMARY_TEXT].strip())
    if result.patch is not None and result.patch.files:
        parts.append("\n".join(["Changed:", "", *(f"- `{one_line(name)}`" for name in result.patch.files[:100])]))
    return "\n\n".join(parts) + "\n"


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def outputs(result: "ResultEvent") -> str:
    """Return the outputs of a step, as the file that GITHUB_OUTPUT names takes them."""
    cost = result.usage.cost if result.usage is not None else None
    found = {
        "exit-code": str(result.exit_code),
        "text": result.text,
        "session-id": result.session_id or "",
        "cost": "" if cost is None else f"{cost.amount:g}",
        "tokens": "" if result.tokens is None else str(result.tokens.total),
        "output": "" if result.output is None else msgspec.json.encode(result.output).decode(),
        "branch": result.worktree.branch if result.worktree is not None and result.worktree.kept else "",
        "patch": "" if result.patch is None else result.patch.path,
        "error-kind": "" if result.error is None else result.error.kind,
    }
    mark = f"antiphon-{secrets.token_hex(16)}"  # an answer cannot contain what it does not know
    return "".join(f"{name}<<{mark}\n{value}\n{mark}\n" for name, value in found.items())
