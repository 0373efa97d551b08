"""The words that make our agents do what each purpose wants: the models behind them play the script that stands in the prompt."""

import json
from typing import Any, Final

from antiphon.conformance.prompts import Prompts

__all__ = ["CLAUDE", "CODEX", "JOINT", "marked"]

Script = list[list[list[Any]]]
"""What a model says: an answer for each time it is asked in a turn, of steps as `python -m tests.engines.codex.model` knows them."""

DONE: Final = ["text", "Done."]

SPOKEN: Final[dict[str, Script]] = {
    "say": [[["text", "Hello."]]],
    "long": [[["text", "One, two, three, and so on"], ["hold"]]],
    "many": [[["deltas", 60]]],
    "think": [[["think", "Seven times thirteen."], ["text", "No."]]],
}
"""What every model can do by itself."""

QUESTION: Final = {
    "question": "Which voice?",
    "header": "Voice",
    "options": [{"label": "Alto", "description": "low"}, {"label": "Soprano", "description": "high"}],
}


def _calls(*calls: list[Any]) -> Script:
    return [*([call] for call in calls), [DONE]]


def _claude() -> dict[str, Script]:
    written = _calls(["call", "Write", {"file_path": "{file}", "content": "{text}"}])

    def ran(line: str) -> Script:
        return _calls(["call", "Bash", {"command": line, "description": "Run it"}])

    plan = [["call", "TaskCreate", {"subject": each, "description": each}] for each in ("Hum it", "Sing it")]
    return SPOKEN | {
        "read": _calls(["call", "Read", {"file_path": "{file}"}]),
        "write": written,
        "ask": written,
        "run": ran("{command}"),
        "long_run": ran("sh -c '{command}'"),  # what it takes for harmless it would not ask about
        "plan": _calls(*plan, ["call", "TaskUpdate", {"taskId": "1", "status": "completed"}]),
        "form": _calls(["call", "AskUserQuestion", {"questions": [{**QUESTION, "multiSelect": False}]}]),
    }


def _codex() -> dict[str, Script]:
    written = _calls(["patch", "*** Begin Patch\n*** Add File: {file}\n+{text}\n*** End Patch\n"])
    outside = {"sandbox_permissions": "require_escalated", "justification": "May I?"}
    long = {"cmd": "{command}", "yield_time_ms": 30_000, **outside}
    steps = [[("Hum it", status), ("Sing it", "pending")] for status in ("in_progress", "completed")]
    plans = [{"plan": [{"step": step, "status": status} for step, status in each]} for each in steps]
    return SPOKEN | {
        "read": _calls(["call", "exec_command", {"cmd": "cat {file}"}]),
        "write": written,
        "ask": written,
        "run": _calls(["call", "exec_command", {"cmd": "{command}"}]),
        "long_run": _calls(["call", "exec_command", long]),
        "plan": _calls(*(["call", "update_plan", plan] for plan in plans)),
    }


def marked(who: str) -> str:
    """The words behind which a script of theirs stands."""
    return f"{who} plays: "


def _prompts(**scripts: dict[str, Script]) -> Prompts:
    """From who plays → purpose → script."""
    found: dict[str, list[str]] = {}
    for who, each in scripts.items():
        for purpose, script in each.items():
            found.setdefault(purpose, []).append(marked(who) + json.dumps(script))
    return Prompts({purpose: "\n".join(lines) for purpose, lines in found.items()})


CLAUDE: Final = _prompts(claude=_claude())
CODEX: Final = _prompts(codex=_codex())
JOINT: Final = _prompts(claude=_claude(), codex=_codex())
