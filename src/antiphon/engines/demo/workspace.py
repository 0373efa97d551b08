"""The answer to plain text: a look at the workspace, and at what came with the prompt."""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from antiphon.errors import RequestRefused
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.session import DemoSession

__all__ = ["counted", "describe", "text_files"]

MOST_FILES: Final = 2000
"""Files that are counted or searched: a look around, not a survey of a home directory."""

MOST_BYTES: Final = 256 * 1024
"""Files above this are not searched."""

_NOT_OURS: Final = frozenset({"node_modules", "__pycache__", "target", "dist", "build", "venv"})


def files(root: str) -> Iterator[str]:
    """The files below a directory, in a fixed order, without hidden and generated ones."""
    seen = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOT_OURS)
        for name in sorted(names):
            if name.startswith("."):
                continue
            seen += 1
            if seen > MOST_FILES:
                return
            yield os.path.join(folder, name)


def text_files(root: str) -> Iterator[tuple[str, str]]:
    """The text files among them, with their text."""
    for path in files(root):
        try:
            if os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) <= MOST_BYTES:
                with open(path, encoding="utf-8") as file:
                    yield path, file.read()
        except (OSError, UnicodeDecodeError):
            continue


def _count(root: str) -> tuple[int, list[tuple[str, int]]]:
    kinds = Counter(os.path.splitext(path)[1] or "no extension" for path in files(root))
    return kinds.total(), sorted(kinds.items(), key=lambda each: (-each[1], each[0]))[:4]


def counted(number: int, what: str) -> str:
    """A number and what it counts, as people say it."""
    return f"{number} {what}{'' if number == 1 else 's'}"


async def describe(demo: "DemoSession", turn: "AgentTurn") -> "Outcome":
    """Say what can be seen from here."""
    if demo.setting("greeting"):
        await turn.say("Hello! ")
    if demo.setting("thinking") == "on":
        await turn.think("I have no model, so I look around instead.")
    voices = 2 if demo.setting("model") == "canon" else 1
    for _ in range(voices):
        await _look(demo, turn)
    return None


async def _look(demo: "DemoSession", turn: "AgentTurn") -> None:
    total, kinds = await asyncio.to_thread(_count, turn.session.cwd)
    name = os.path.basename(turn.session.cwd) or turn.session.cwd
    listed = ", ".join(f"{count} {kind}" for kind, count in kinds)
    more = "at least " if total == MOST_FILES else ""
    await turn.say(
        f"You are in `{name}`, which has {more}{counted(total, 'file')}" + (f" ({listed}).\n" if listed else ".\n")
    )
    if demo.setting("length") == "short":
        return
    if (first := await _first_line(turn)) is not None:
        await turn.say(f"Its README begins: {first}\n")
    for block in turn.prompt:
        if (seen := _seen(block)) is not None:
            await turn.say(f"With your words came {seen}.\n")
    await turn.say("I am a demo without a model: `/help` lists what I can show.\n")


async def _first_line(turn: "AgentTurn") -> str | None:
    try:
        text = await turn.read("README.md", limit=20)
    except RequestRefused:
        return None
    return next((line.strip("# ").strip() for line in text.splitlines() if line.strip()), None)


def _seen(block: "v1.ContentBlock") -> str | None:
    match block:
        case v1.TextBlock():
            return None
        case v1.ImageBlock(mime_type=mime) | v1.AudioBlock(mime_type=mime):
            return f"{len(block.data) * 3 // 4} bytes of `{mime}`"
        case v1.ResourceLink(name=name):
            return f"a link to `{name}`"
        case v1.EmbeddedResource(resource=resource):
            return f"`{resource.uri}`"
        case _:
            return f"something called `{block.kind}`"
