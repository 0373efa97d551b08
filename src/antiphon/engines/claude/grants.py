"""Answers to a permission request that hold for longer, made of the rules that the CLI suggests, and the rules that hold in a project.

Rule 1: a suggestion to switch the mode or to add directories is never taken up: it would allow more than what is asked.
Rule 2: an option names exactly what it allows, or it is not offered.
Rule 3: where the user's own settings ask for a question each time, or a part of the question could not be read, nothing lasting is
offered.
"""

import json
import os
import os.path
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.engines.cli_program import notes_folder, read_notes, write_notes
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject

if TYPE_CHECKING:
    from antiphon.engines.claude import wire

__all__ = ["ALLOW_PROJECT", "ALLOW_SESSION", "Grant", "grants", "keep_rules", "kept_rules", "settings_with"]

ALLOW_SESSION: Final = "allow_session"
ALLOW_PROJECT: Final = "allow_project"

MAX_NAME: Final = 160
"""Longest name of an option, in characters. Rules that do not fit are listed above the options instead."""

_EDITS: Final = {
    "Edit": "file_path", "MultiEdit": "file_path", "NotebookEdit": "notebook_path", "Write": "file_path",
}  # fmt: skip
"""Tools that one rule for edits covers → the field of their input with the path."""

_PATTERN: Final = frozenset("*?[]{}()!\\")
"""Characters that are patterns in a rule. A path with one gets no rule: it would allow other paths too."""


class ClaudeRule(msgspec.Struct, frozen=True):
    """One rule as the CLI writes it."""

    tool: str
    content: str | None = None

    def __str__(self) -> str:
        if self.tool == "Bash" and self.content is not None:
            return f"`{self.content}`"
        return f"`{self.tool}`" if self.content is None else f"`{self.tool}({self.content})`"

    @property
    def written(self) -> str:
        """The rule as settings write it."""
        return self.tool if self.content is None else f"{self.tool}({self.content})"

    @property
    def plain(self) -> bool:
        """Whether a person sees all of the rule. Blank content would be a rule for everything that the tool can do."""
        content = self.content
        return f"{self.tool}{content or ''}".isprintable() and (
            content is None or ("`" not in content and bool(content.strip()))
        )


class Grant(msgspec.Struct, frozen=True):
    """An option that holds for longer, with the response for the CLI and a note for the user."""

    option: v1.PermissionOption
    updates: tuple[JsonObject, ...]
    note: str | None = None
    kept: tuple[str, ...] = ()
    """Rules that hold in the project from now on."""


def grants(request: "wire.CanUseTool", roots: Sequence[str]) -> list[Grant]:
    """Return the options that hold for longer. `roots` are the directories that the session works in."""
    if _asked_on_purpose(request):
        return []
    kept = list(_suggested(request.permission_suggestions))
    if not kept:
        edits = _edits(request, roots)
        return [] if edits is None else [edits]
    rules = [rule for rule, _ in kept]
    if not all(rule.plain for rule in rules):
        return []
    lasting = [rule for rule, for_project in kept if for_project]
    found = [_grant(ALLOW_SESSION, [("in this session", rules)], _add(rules, "session"))]
    if lasting:
        passing = [rule for rule in rules if rule not in lasting]
        places = [("in this project", lasting), *([("in this session", passing)] if passing else [])]
        grant = _grant(ALLOW_PROJECT, places, _add(rules, "session"))
        found.append(msgspec.structs.replace(grant, kept=tuple(rule.written for rule in lasting)))
    return found


def _asked_on_purpose(request: "wire.CanUseTool") -> bool:
    return (
        request.repaired
        or request.suppress_always_allow_rule
        or request.requires_user_interaction
        or request.decision_reason_type == "rule"
        or request.matched_ask_rule is not None
    )


def _suggested(suggestions: Iterable[JsonObject]) -> Iterator[tuple[ClaudeRule, bool]]:
    """Yield every suggested rule, and whether the CLI itself would store it for longer than the session."""
    seen = set[ClaudeRule]()
    for suggestion in suggestions:
        if suggestion.get("type") != "addRules" or suggestion.get("behavior") != "allow":
            continue
        for each in suggestion.get("rules") or ():
            rule = _rule(each)
            if rule is not None and rule not in seen:
                seen.add(rule)
                yield rule, suggestion.get("destination") != "session"


def _rule(value: object) -> ClaudeRule | None:
    if not isinstance(value, dict):
        return None
    tool, content = value.get("toolName"), value.get("ruleContent")
    if not isinstance(tool, str) or not tool or not isinstance(content, str | None):
        return None
    return ClaudeRule(tool, content)


def _edits(request: "wire.CanUseTool", roots: Sequence[str]) -> Grant | None:
    """Return the option for edits. The CLI suggests a mode; a rule for the files at hand does as much and no more, and its name shows it."""
    modes = [each for each in request.permission_suggestions if each.get("type") == "setMode"]
    path = request.input.get(_EDITS.get(request.tool_name, ""))
    if not any(mode.get("mode") == "acceptEdits" for mode in modes) or not isinstance(path, str):
        return None
    path = os.path.normpath(path)
    root = next((root for root in map(os.path.normpath, roots) if path.startswith(f"{root}/")), None)
    match request.decision_reason_type:
        case None if root is not None:
            rule, what = ClaudeRule("Edit", f"/{root}/**"), f"edits in `{root}`"
        case "workingDir" if root is None and os.path.isabs(path):
            rule, what = ClaudeRule("Edit", f"/{path}"), f"edits to `{path}`"
        case _:  # sensitive files, plan mode: no rule stands above that
            return None
    named = root or path
    if not rule.plain or _PATTERN.intersection(named) or named == "/":
        return None
    name = f"Always allow {what} in this session"
    option = v1.PermissionOption(ALLOW_SESSION, name, v1.PermissionOptionKind.ALLOW_ALWAYS)
    return Grant(option, (_add([rule], "session"),))


def _grant(id: str, places: Sequence[tuple[str, Sequence[ClaudeRule]]], *updates: JsonObject) -> Grant:
    phrase = ", and ".join(f"{_listed(rules)} {where}" for where, rules in places)
    note = None
    if len(phrase) > MAX_NAME:
        where = places[0][0]
        note = f"Allowed {where}:\n" + "\n".join(f"- {rule}" for _, rules in places for rule in rules)
        phrase = f"what is listed above {where}"
    option = v1.PermissionOption(id, f"Always allow {phrase}", v1.PermissionOptionKind.ALLOW_ALWAYS)
    return Grant(option, updates, note)


def _listed(rules: Sequence[ClaudeRule]) -> str:
    *most, last = map(str, rules)
    return f"{', '.join(most)} and {last}" if most else last


def _add(rules: Iterable[ClaudeRule], destination: str) -> JsonObject:
    written = [
        {"toolName": each.tool, **({} if each.content is None else {"ruleContent": each.content})} for each in rules
    ]
    return {"type": "addRules", "rules": written, "behavior": "allow", "destination": destination}


# Rules that the user allowed for a project in a session of this engine alone.
#
# They are kept with our own files and given to the CLI when it starts. In the project, where the CLI itself would keep them, they would be
# one more file that others can write, and that has to be trusted before it counts.


def _path() -> Path:
    return notes_folder() / "claude-rules.json"


def kept_rules(cwd: str) -> list[str]:
    """Return the rules that are allowed in a directory, as the CLI writes them."""
    found = (read_notes(_path()) or {}).get(os.path.realpath(cwd))
    return [rule for rule in found if isinstance(rule, str)] if isinstance(found, list) else []


def keep_rules(cwd: str, rules: Iterable[str]) -> bool:
    """Allow rules in a directory from now on. False: they could not be written."""
    notes = read_notes(_path()) or {}
    notes[os.path.realpath(cwd)] = list(dict.fromkeys([*kept_rules(cwd), *rules]))
    return write_notes(_path(), notes)


def settings_with(cwd: str) -> str | None:
    """Return settings for the CLI that allow the stored rules; None without stored rules."""
    rules = kept_rules(cwd)
    return json.dumps({"permissions": {"allow": rules}}, ensure_ascii=False) if rules else None
