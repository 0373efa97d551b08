"""Write docs/api.md: every public name of `antiphon`, with the first sentence of its docstring and of its public methods.

`python tools/api_page.py` writes the page; a test compares it with the docstrings.
"""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import antiphon
from antiphon import testing

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "api.md"

GROUPS: Final = {
    "For agents": ("Agent", "AgentSession", "AgentTurn", "LiveCall", "Permission", "RunningCommand", "FinishedCommand", "ConnectedClient"),
    "For clients": (
        "connect", "sync", "ConnectedAgent", "ClientSession", "ClientTurn", "Files", "Terminals", "Elicitation", "Retry", "allow_once",
        "allow_always", "reject", "PermissionGate", "Transcript", "fold", "WorkState", "OpenWork",
    ),
    "For both": ("v1", "Connection", "Router", "memory_pair", "open_stdio", "spawn", "answer_initialize"),
}  # fmt: skip
"""The names by subject; the others are errors."""

UNFOLDED: Final = ("Hooks", "UserQuestions")
"""Base classes that are not public names: their methods are listed with the class that has them."""

HEAD: Final = """# Public names

Everything that `antiphon` promises: the names of `antiphon.__all__` and of `antiphon.testing`. Anything else may change in any version.
[names.md](names.md) has the names of the specification and of the official Python SDK beside ours. This page is made from the docstrings
by `python tools/api_page.py`.
"""


def page() -> str:
    """Return the page."""
    grouped = {name for names in GROUPS.values() for name in names}
    errors = tuple(name for name in antiphon.__all__ if name not in grouped and name != "__version__")
    parts = [HEAD]
    for title, names in {**GROUPS, "Errors": errors}.items():
        parts.append(f"## {title}\n")
        parts += [_entry(name, getattr(antiphon, name)) for name in names]
    parts.append("## `antiphon.testing`\n")
    parts += [_entry(name, getattr(testing, name)) for name in testing.__all__]
    return "\n".join(parts).rstrip() + "\n"


def _entry(name: str, value: object) -> str:
    lines = [f"**`{name}`**: {_first(value)}\n"]
    if inspect.isclass(value):
        methods = [f"- `{method}`: {_first(found)}" for method, found in _methods(value)]
        if methods:
            lines += [*methods, ""]
    return "\n".join(lines)


def _methods(kind: type) -> Iterator[tuple[str, object]]:
    own = vars(kind)
    bases = {
        name: value for base in kind.__bases__ if base.__qualname__ in UNFOLDED for name, value in vars(base).items()
    }
    for name, value in {**own, **{name: value for name, value in bases.items() if name not in own}}.items():
        if name.startswith("_"):
            continue
        function = getattr(value, "__func__", value)
        if (inspect.isfunction(function) or isinstance(value, property)) and inspect.getdoc(function):
            yield name, function


def _first(value: object) -> str:
    """The first paragraph of a docstring, on one line."""
    documented = inspect.getdoc(value) or ""
    return " ".join(documented.split("\n\n")[0].split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
