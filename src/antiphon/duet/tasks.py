"""Going on by itself: when a turn stopped at a limit and tasks are left, the engines are told to go on, seldom enough to be watched.

Which tasks are left is told by a command that prints a JSON list. That it is not there is no news: most people have none.
"""

import asyncio
import logging
import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.duet.programs import program
from antiphon.errors import Advice, SpawnFailed
from antiphon.protocol import v1
from antiphon.text import prose

if TYPE_CHECKING:
    from antiphon.local.commands import Command

__all__ = ["LIMIT", "LISTED", "OUTPUT", "HeldNudge", "Nudge", "Nudges", "OpenTask", "prompt_text", "tasks_of"]

LIMIT: Final = 10.0
"""Seconds for the command. It reads a few files; what takes longer waits for something that will not come."""

OUTPUT: Final = 1024 * 1024
"""Bytes that it may print. A thousand tasks take a tenth of it."""

LISTED: Final = 10
"""Tasks that the prompt names. The engine can ask for the rest itself."""

TITLE: Final = 120
"""Letters of a task that the prompt shows."""

_AT_LIMIT: Final = (v1.StopReason.MAX_TURN_REQUESTS, v1.StopReason.MAX_TOKENS)
_DONE: Final = frozenset({"done", "closed", "completed", "complete", "cancelled", "canceled"})
_log = logging.getLogger(__name__)


class OpenTask(msgspec.Struct, frozen=True):
    """Something that is left to do."""

    title: str
    id: str = ""


class Nudge(msgspec.Struct, frozen=True):
    """Go on: what to say to the engines, shown as the user's words."""

    text: str
    number: int
    """Which one since the user spoke."""


class HeldNudge(msgspec.Struct, frozen=True):
    """Tasks are left and nothing is done about it: why, for the user."""

    why: Advice


class Nudges:
    """Whether one session goes on by itself, and how often it has. The clock is the caller's."""

    def __init__(
        self, command: Sequence[str], *, enabled: bool = True, cooldown: float = 30.0, maximum: int = 5
    ) -> None:
        self.enabled = enabled
        self.command = tuple(command)
        self.cooldown = cooldown
        self.maximum = maximum
        self.count = 0
        """How often since the user spoke."""
        self._last: float | None = None

    def user_spoke(self) -> None:
        """The user is there: it may begin to count anew."""
        self.count, self._last = 0, None

    def nudged(self, now: float) -> None:
        """The engines were told to go on."""
        self.count, self._last = self.count + 1, now

    def at_limit(self, stop_reason: v1.StopReason) -> bool:
        """Whether tasks have to be looked for at all after a turn that ended like this."""
        return self.enabled and stop_reason in _AT_LIMIT

    def decide(
        self, stop_reason: v1.StopReason, now: float, tasks: Sequence[OpenTask] | None
    ) -> Nudge | HeldNudge | None:
        """What to do after a turn. Changes nothing: who does it says `nudged`."""
        if not self.at_limit(stop_reason) or not tasks:
            return None
        left = "1 task is left" if len(tasks) == 1 else f"{len(tasks)} tasks are left"
        if self.count >= self.maximum:
            times = "once" if self.count == 1 else f"{self.count} times"
            return HeldNudge(
                Advice(f"{left}, and the engines went on by themselves {times} already", "say how to go on")
            )
        wait = 0.0 if self._last is None else self._last + self.cooldown - now
        if wait > 0:
            why = f"{left}, and the engines went on by themselves less than {self.cooldown:g} s ago"
            return HeldNudge(Advice(why, f"look at what they do; in {math.ceil(wait)} s it may be told to go on again"))
        return Nudge(prompt_text(tasks), self.count + 1)

    async def pending(self, cwd: str | os.PathLike[str]) -> list[OpenTask] | None:
        """What is left to do in a directory. None: nobody can tell."""
        words = _found(self.command)
        if words is None:
            return None
        from antiphon.local.commands import Command

        try:
            command = await Command.start(words, cwd=cwd, output_limit=OUTPUT, errors=False)
        except SpawnFailed as error:
            _log.debug("no tasks: %s", error)
            return None
        async with command:  # ends it and everything it started, also when we are called off
            return await _told(command)


async def _told(command: "Command") -> list[OpenTask] | None:
    try:
        async with asyncio.timeout(LIMIT):
            end = await command.wait()
    except TimeoutError:
        _log.warning("no tasks: `%s` took more than %g s", command.name, LIMIT)
        return None
    if end.code != 0:
        _log.warning("no tasks: `%s` ended with %s", command.name, end.signal or end.code)
        return None
    if command.truncated:
        _log.warning("no tasks: `%s` printed more than %d KiB", command.name, OUTPUT >> 10)
        return None
    try:
        return tasks_of(msgspec.json.decode(command.output()))
    except (ValueError, RecursionError) as error:
        _log.warning("no tasks: what `%s` printed is no JSON list: %s", command.name, error)
        return None


def tasks_of(told: object) -> list[OpenTask]:
    """The tasks in a JSON list that are not done. An entry is a text, or an object with any of id, title, name, text, status, done.

    Raises:
        ValueError: it is no list.
    """
    if not isinstance(told, list):
        raise ValueError(f"it is {type(told).__name__}")
    found: list[OpenTask] = []
    for entry in told:
        if isinstance(entry, str) and entry.strip():
            found.append(OpenTask(_line(entry)))
        elif isinstance(entry, dict) and not _is_done(entry):
            found.append(_task(entry))
    return found


def prompt_text(tasks: Sequence[OpenTask]) -> str:
    """What the engines are told, and the user is shown."""
    lines = [f"- {task.title}" + (f" ({task.id})" if task.id else "") for task in tasks[:LISTED]]
    if len(tasks) > LISTED:
        lines.append(f"- and {len(tasks) - LISTED} more")
    return "\n".join(["Go on with the open tasks:", *lines])


def _found(command: Sequence[str]) -> list[str] | None:
    """The words with the program's whole path."""
    if not command:
        return None
    if "/" in command[0]:
        return list(command)
    found = program(command[0])
    return None if found is None else [found, *command[1:]]


def _is_done(entry: Mapping[str, Any]) -> bool:
    status = entry.get("status")
    return entry.get("done") is True or (isinstance(status, str) and status.strip().lower() in _DONE)


def _task(entry: Mapping[str, Any]) -> OpenTask:
    id = entry.get("id")
    id = _line(str(id)) if isinstance(id, str | int) and not isinstance(id, bool) else ""
    for key in ("title", "name", "text"):
        if isinstance(value := entry.get(key), str) and value.strip():
            return OpenTask(_line(value), id)
    return OpenTask(id or "a task without a name")


def _line(text: str) -> str:
    """One line that moves no cursor."""
    line = " ".join(prose(text).split())
    return line if len(line) <= TITLE else line[: TITLE - 1].rstrip() + "…"
