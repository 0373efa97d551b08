"""The first screen: where this is, who answers, whether they are signed in, and what can be tried. Pure, but for the branch of a directory."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.text import Text

from antiphon import __version__
from antiphon.tui.display.theme import style_of_engine
from antiphon.tui.painter import exact, one_line

__all__ = ["TIPS", "ShownEngine", "branch_of", "engines_in", "head_line", "welcome_texts"]

LONGEST_PATH: Final = 45
"""Characters of a directory. Of a longer one the end is shown."""

TIPS: Final = (
    ("fix the failing test", "say what you want"),
    ("/duet, /review", "let both answer, or one review the other"),
    ("@file  !command  /help", "attach a file, run a command, see everything"),
)
TIPS_ALONE: Final = (TIPS[0], ("@file  !command", "attach a file, run a command"), ("/help", "keys and commands"))
"""Tips where there is one engine."""


@dataclass(frozen=True, slots=True)
class ShownEngine:
    """An engine of the agent: its title, and whether it is signed in (None: that is not known)."""

    name: str
    title: str
    signed_in: bool | None = None
    model: str = ""
    answers: bool = False


def engines_in(result: object) -> dict[str, bool]:
    """Return which engines are signed in, from the agent's response to `_antiphon/engines`."""
    found = result.get("engines") if isinstance(result, dict) else None
    return {
        str(each.get("name")): each["signedIn"]
        for each in found or ()
        if isinstance(each, dict) and isinstance(each.get("signedIn"), bool)
    }


def head_line(cwd: str) -> Text:
    """Return the first line: the program, the directory and its branch."""
    branch = branch_of(cwd)
    return Text.assemble(
        ("Antiphon", "bold"),
        (f" {__version__}  ", "dim"),
        exact(_home(cwd)),
        (f" on {one_line(branch)}" if branch else "", "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )


def welcome_texts(engines: Sequence[ShownEngine], mode: str) -> list[Text]:
    """Return who answers, the mode, and what can be tried."""
    width = max((len(engine.title) for engine in engines), default=0)
    rows: list[Text] = []
    for engine in engines:
        words = [("answers", "")] if engine.answers else []
        words += [(engine.model, "")] if engine.model else []
        if engine.signed_in is not None:
            words.append(("signed in", "") if engine.signed_in else ("not signed in: /login", "warning"))
        row = Text.assemble("  ", (f"{engine.title:<{width}}", style_of_engine(engine.name)), "  ")
        row.append_text(Text(" · ").join(Text(*word) for word in words))
        rows.append(row)
    if mode:
        rows.append(Text.assemble(f"  {'mode':<{width}}  ", mode))
    tips = TIPS if len(engines) > 1 else TIPS_ALONE
    longest = max(len(what) for what, _ in tips)
    rows.append(Text())
    rows += [Text.assemble("  ", (f"{what:<{longest}}", "key"), "  ", (why, "dim")) for what, why in tips]
    for row in rows:
        row.no_wrap, row.overflow = True, "ellipsis"
    return rows


def _home(path: str) -> str:
    home = os.path.expanduser("~")
    shown = "~" + path[len(home) :] if path == home or path.startswith(home + os.sep) else path
    return shown if len(shown) <= LONGEST_PATH else "…/" + "/".join(Path(path).parts[-2:])[-LONGEST_PATH:]


def branch_of(cwd: str) -> str:
    """Return the branch of the git repository that a directory is in, or the first letters of a commit; empty if there is none."""
    for folder in (Path(cwd), *Path(cwd).parents):
        found = folder / ".git"
        try:
            if found.is_file():  # a worktree or a submodule
                found = folder / found.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
            head = (found / "HEAD").read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            continue
        return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else head[:8]
    return ""
