"""What a person is shown of things is the same in the terminal, in an export and on the page: these cases are for both languages.

Each file of `tests/presentation_cases` is a list of `{name, input, expected}`; its name is that of a function here and in
`tests/web/js/presentation.test.mjs`, which runs the same cases. `side` names the only language that a case is for.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from antiphon.protocol import v1
from antiphon.protocol.base import decoder
from antiphon.protocol.v1 import methods as m
from antiphon.text import exact, exact_line, one_line, prose, size_in_words, strip_ansi
from antiphon.transcript.forms import Wrong, fields_of
from antiphon.transcript.presentation import (
    call_line,
    changes_of,
    diff_lines,
    plan_line,
    shown_path,
    usage_line,
    written_lines,
)
from antiphon.transcript.transcript import CallEntry, Transcript
from tests.rows import each_row

CASES = Path(__file__).resolve().parent.parent / "presentation_cases"


def _read(kind: Any, value: Any) -> Any:
    return decoder(kind).decode(msgspec.json.encode(value))


def _folded(updates: list[Any]) -> Transcript:
    transcript = Transcript()
    for update in updates:
        params = m.SESSION_UPDATE.read_params(msgspec.json.encode({"sessionId": "", "update": update}))
        transcript.apply(params.value.update)
    return transcript


def _call(given: dict[str, Any]) -> str:
    [entry] = _folded(given["updates"]).entries
    assert isinstance(entry, CallEntry)
    return call_line(entry, given["cwd"])


def _usage(given: dict[str, Any]) -> str | None:
    usage = None if given["usage"] is None else _read(v1.UsageUpdate, given["usage"])
    tokens = None if given["tokens"] is None else _read(v1.Usage, given["tokens"])
    return usage_line(usage, tokens)


def _changes(given: list[Any]) -> Any:
    return [{"path": each.path, "old": each.old, "new": each.new} for each in changes_of(_folded(given))]


def _diff(given: dict[str, Any]) -> list[str]:
    fields = {"type": "diff", **given["diff"], "newText": given["diff"]["newText"] * given.get("times", 1)}
    return [*diff_lines(_read(v1.Diff, fields), given["path"])]


def _form(given: dict[str, Any]) -> Any:
    shown = []
    for field in fields_of(_read(v1.Form, given["form"])):
        read = []
        for line in given["lines"].get(field.key, []):
            try:
                read.append([line, field.read(line)])
            except Wrong as wrong:
                read.append([line, {"wrong": str(wrong)}])
        shown.append({"prompt": field.prompt, "explained": [*field.explained], "read": read})
    return shown


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exact": exact,
    "exact_line": exact_line,
    "prose": lambda given: prose(given["text"], given["before"]),
    "one_line": one_line,
    "strip_ansi": strip_ansi,
    "size_in_words": size_in_words,
    "shown_path": lambda given: shown_path(given["path"], given["cwd"]),
    "call_line": _call,
    "plan_line": lambda given: plan_line(_read(v1.Plan, {"sessionUpdate": "plan", "entries": given}).entries),
    "usage_line": _usage,
    "written_lines": written_lines,
    "changes": _changes,
    "diff_lines": _diff,
    "forms": _form,
    "transcript": lambda given: _folded(given).plain(),
}


def _cases() -> list[tuple[str, Any, Any]]:
    return [
        (f"{path.stem}: {case['name']}", case["input"], case["expected"])
        for path in sorted(CASES.glob("*.json"))
        for case in json.loads(path.read_text(encoding="utf-8"))
        if case.get("side", "python") == "python"
    ]


@each_row(("name", "given", "expected"), _cases())
def test_python_shows_what_the_cases_say(name: str, given: Any, expected: Any) -> None:
    assert FUNCTIONS[name.partition(":")[0]](given) == expected


def test_every_file_of_cases_is_for_a_function_of_both_languages() -> None:
    script = (CASES.parent / "web" / "js" / "presentation.test.mjs").read_text(encoding="utf-8")
    names = {path.stem for path in CASES.glob("*.json")} - {"terminal"}
    assert names == set(FUNCTIONS)
    assert all(f"\n  {name}: " in script for name in {*names, "terminal"})


def test_every_case_has_a_name_of_its_own() -> None:
    names = [name for name, _, _ in _cases()]
    assert len(names) == len(set(names))
