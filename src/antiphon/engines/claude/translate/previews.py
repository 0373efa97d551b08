"""What a call is going to do, to be read before it does it: the change, the plan, the prompt."""

from typing import Any, Final

import msgspec

from antiphon.engines.claude.translate.diffs import diffs_of
from antiphon.engines.claude.translate.fields import items, number, text
from antiphon.engines.wording import absolute, one_line, sentence, shown_text
from antiphon.protocol import v1
from antiphon.text import exact, fenced

__all__ = [
    "of_anything", "of_cell", "of_command", "of_edit", "of_findings", "of_message", "of_plan", "of_prompt", "of_questions",
    "of_rest",
]  # fmt: skip

_Values = dict[str, Any]
_Shown = list[v1.ToolContent]
_LONGEST: Final = 4000
"""Characters of arguments that nobody has made readable."""

_IN_TITLE: Final = {
    "Glob": ("pattern",), "Grep": ("pattern", "glob"), "Skill": ("skill", "command"), "SlashCommand": ("command",),
    "WebFetch": ("url",), "WebSearch": ("query",),
    **dict.fromkeys(("ReadMcpResource", "ReadMcpResourceDir", "ReadMcpResourceDirTool", "ReadMcpResourceTool"), ("uri",)),
}  # fmt: skip
"""Arguments that the title has, unless they are too long for it."""

_BESIDE_TITLE: Final = {
    "ExitWorktree": ("discard_changes",), "Monitor": ("ws",), "Skill": ("args",), "WebSearch": ("allowed_domains", "blocked_domains"),
    "Workflow": ("script", "scriptPath", "args", "resumeFromRunId"),
}  # fmt: skip
"""Arguments that no title has room for, and that say what the call does."""


def of_command(values: _Values, _: str) -> _Shown:
    """What the command is for, and the command itself where the title has only a part of it."""
    command = text(values, "command") or ""
    shown: _Shown = []
    if about := text(values, "description", "command_description"):
        shown.append(shown_text(about))
    if command and one_line(command) != command:
        shown.append(shown_text(fenced(exact(command), "sh")))
    if values.get("dangerouslyDisableSandbox") is True:
        shown.append(shown_text("It runs outside of the sandbox."))
    return shown


def of_edit(values: _Values, cwd: str) -> _Shown:
    """The change, as far as the input tells it."""
    path = text(values, "file_path", "path")
    if path is None:
        return []
    content = next((values[name] for name in ("content", "file_text", "file_content") if name in values), None)
    return list(diffs_of(absolute(path, cwd), {**values, "content": content} if content is not None else values, None))


def of_cell(values: _Values, _: str) -> _Shown:
    """The new text of a notebook's cell. It is no diff: that would have to be one of the whole file."""
    source = text(values, "new_source")
    return [shown_text(fenced(source, "" if values.get("cell_type") == "markdown" else "python"))] if source else []


def of_plan(values: _Values, _: str) -> _Shown:
    """The plan."""
    plan = text(values, "plan")
    return [shown_text(plan)] if plan else []


def of_prompt(values: _Values, _: str) -> _Shown:
    """What another agent, or this one later, is told."""
    prompt = text(values, "prompt")
    return [shown_text(prompt)] if prompt else []


def of_message(values: _Values, _: str) -> _Shown:
    """What is said to another agent."""
    said = text(values, "message", "content")
    return [shown_text(said)] if said else []


def of_questions(values: _Values, _: str) -> _Shown:
    """The questions with what may be answered."""
    return [shown_text(said) for each in items(values, "questions") if (said := _question(each))]


def of_findings(values: _Values, _: str) -> _Shown:
    """What was found, and where."""
    lines = []
    for each in items(values, "findings"):
        line = number(each, "line")
        where = f"`{text(each, 'file') or '?'}{f':{line}' if line else ''}`"
        lines.append(f"- {where}: {sentence(text(each, 'summary') or '', 500)}")
    return [shown_text("\n".join(lines))] if lines else []


def of_anything(values: _Values) -> _Shown:
    """The arguments as they are: whoever is asked for permission has to see them."""
    if not values:
        return []
    said = exact(msgspec.json.format(msgspec.json.encode(values), indent=2).decode("utf-8", "replace"))
    return [shown_text(fenced(said if len(said) <= _LONGEST else said[:_LONGEST] + "\n…", "json"))]


def of_rest(name: str, values: _Values, title: str) -> _Shown:
    """What belongs to the call and does not stand in its title, or not whole."""
    cut = [each for each in _IN_TITLE.get(name, ()) if (said := text(values, each)) and exact(said) not in title]
    more = [each for each in _BESIDE_TITLE.get(name, ()) if values.get(each)]
    return [shown_text(f"{each}:\n{_as_it_is(values[each])}") for each in (*cut, *more)]


def _as_it_is(value: Any) -> str:
    if isinstance(value, str):
        return fenced(exact(value))
    return fenced(exact(msgspec.json.encode(value).decode("utf-8", "replace")), "json")


def _question(values: Any) -> str:
    asked = text(values, "question")
    if not asked:
        return ""
    choices = []
    for each in items(values, "options"):
        label, about = text(each, "label"), text(each, "description")
        if label:
            choices.append(f"- {sentence(label)}{f': {sentence(about, 300)}' if about else ''}")
    return "\n".join([asked, *choices])
