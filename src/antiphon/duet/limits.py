"""The limits of a joint session: the budget of a prompt, and going on by itself after a limit while tasks are left.

A budget counts turns of engines, tokens and money. Engines report two things. `PromptResult.usage` has all tokens since the engine
session began, so a turn took what it grew by. `UsageUpdate`
has the size of the last request in `used` and what the whole engine session cost so far in `cost`. While a turn runs the sum of the
requests stands for its tokens; when it ends the exact number takes their place, so nothing is counted twice.
"""

import asyncio
import logging
import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.errors import Advice, SpawnFailed
from antiphon.protocol import v1
from antiphon.snapshots.git import program
from antiphon.text import prose

if TYPE_CHECKING:
    from antiphon.local.commands import LocalCommand

__all__ = [
    "LIMIT",
    "LISTED",
    "OUTPUT",
    "Budget",
    "Exceeded",
    "HeldNudge",
    "Nudge",
    "Nudges",
    "OpenTask",
    "Spent",
    "UsageTotals",
    "prompt_text",
    "tasks_of",
]

CURRENCY: Final = "USD"


class UsageTotals(msgspec.Struct):
    """The usage that each engine session last reported. It outlives a prompt: keep it with the joint session."""

    tokens: dict[str, int] = {}
    cost: dict[str, float] = {}

    def begins(self, engine: str) -> None:
        """An engine begins a new session of its own, which has used nothing yet."""
        self.tokens[engine], self.cost[engine] = 0, 0.0

    def unknown(self, engine: str) -> None:
        """An engine opens a session that it had elsewhere: what that used is not known before the engine reports it."""
        self.tokens.pop(engine, None)
        self.cost.pop(engine, None)


class Spent(msgspec.Struct, frozen=True):
    """The usage of a prompt so far."""

    turns: int = 0
    tokens: int = 0
    cost: float = 0.0


class Exceeded(msgspec.Struct, frozen=True):
    """A limit that is reached: what to show the user, and why the turn ends."""

    why: Advice
    stop_reason: v1.StopReason


class Budget:
    """The budget of one prompt. A limit of None is no limit."""

    def __init__(
        self, turns: int | None, tokens: int | None = None, cost: float | None = None, totals: UsageTotals | None = None
    ) -> None:
        self._most = (turns, tokens, cost)
        self._totals = UsageTotals() if totals is None else totals
        self._turns = 0
        self._tokens = 0
        self._cost = 0.0
        self._running: dict[str, int] = {}  # engine at work → what its requests add up to
        self._last_request: dict[str, int] = {}

    @property
    def spent(self) -> Spent:
        """What the prompt has used so far, with the turns that run."""
        return Spent(self._turns, self._tokens + sum(self._running.values()), self._cost)

    def turn_begins(self, engine: str) -> None:
        """An engine begins to work."""
        self._turns += 1
        self._tokens += self._running.pop(engine, 0)
        self._running[engine] = 0

    def turn_ended(self, engine: str, result: "v1.PromptResult | v1.Usage | None" = None) -> None:
        """An engine's turn is over; without a result it failed, or did not report what it used."""
        usage = result.usage if isinstance(result, v1.PromptResult) else result
        if usage is not None:
            before = self._totals.tokens.get(engine)
            total = self._totals.tokens[engine] = usage.total_tokens
            if before is not None:
                # Less than before: the engine counts anew, or reports each turn alone.
                self._running[engine] = total - before if total >= before else total
            else:
                self._running[engine] = min(self._running.get(engine, 0), total)
        self._tokens += self._running.pop(engine, 0)

    def used(self, engine: str, update: v1.UsageUpdate) -> None:
        """Take the report of an engine: how full its context is, and maybe what its session cost so far."""
        only_cost = update.cost is not None and update.used == self._last_request.get(engine)
        if engine in self._running and not only_cost:
            self._running[engine] += update.used
        self._last_request[engine] = update.used
        if update.cost is None or update.cost.currency != CURRENCY:
            return
        before = self._totals.cost.get(engine)
        total = self._totals.cost[engine] = update.cost.amount
        if before is not None:
            self._cost += total - before if total >= before else total

    def exceeded(self) -> Exceeded | None:
        """Ask before another turn begins: the limit that forbids it, if any."""
        most = self._most[0]
        if most is not None and self._turns >= most:
            turns = "1 turn" if most == 1 else f"{most} turns"
            return Exceeded(
                Advice(
                    f"Stopped: this prompt has had {turns}, which is the limit",
                    "send a prompt to go on, or raise `duet.max_turns`",
                ),
                v1.StopReason.MAX_TURN_REQUESTS,
            )
        return self.overrun()

    def overrun(self) -> Exceeded | None:
        """The limit that ends a running turn, if any. A turn is not ended because it is the last one allowed."""
        _, tokens, cost = self._most
        spent = self.spent
        if tokens is not None and spent.tokens >= tokens:
            return Exceeded(
                Advice(
                    f"Stopped: this prompt took {spent.tokens:,} tokens, and {tokens:,} are the limit",
                    "send a prompt to go on, or raise `duet.max_tokens`",
                ),
                v1.StopReason.MAX_TOKENS,
            )
        if cost is not None and spent.cost >= cost:
            return Exceeded(
                Advice(
                    f"Stopped: this prompt cost {_dollars(spent.cost)}, and {_dollars(cost)} is the limit",
                    "send a prompt to go on, or raise `duet.max_cost`",
                ),
                v1.StopReason.MAX_TURN_REQUESTS,
            )
        return None


def _dollars(amount: float) -> str:
    return f"${amount:.2f}" if amount >= 0.01 else f"${amount:.5f}"


# Going on by itself: when a turn stopped at a limit and tasks are left, the engines get a prompt to go on, seldom enough to be watched.
# A command prints the tasks that are left as a JSON list. That there is no such command is not an error: most people have none.

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
    """A task that is left to do."""

    title: str
    id: str = ""


class Nudge(msgspec.Struct, frozen=True):
    """A prompt to continue, shown as one of the user."""

    text: str
    number: int
    """The number of the continuation since the last prompt of the user."""


class HeldNudge(msgspec.Struct, frozen=True):
    """Why nothing is done though tasks are left, for the user."""

    why: Advice


class Nudges:
    """Counts the prompts that make one session continue automatically. The caller gives the time."""

    def __init__(
        self, command: Sequence[str], *, enabled: bool = True, cooldown: float = 30.0, maximum: int = 5
    ) -> None:
        self.enabled = enabled
        self.command = tuple(command)
        self.cooldown = cooldown
        self.maximum = maximum
        self.count = 0
        """How many since the last prompt of the user."""
        self._last: float | None = None

    def begin_prompt(self) -> None:
        """A prompt of the user begins: count anew."""
        self.count, self._last = 0, None

    def nudged(self, now: float) -> None:
        """Count a prompt to continue that the engines received."""
        self.count, self._last = self.count + 1, now

    def at_limit(self, stop_reason: v1.StopReason) -> bool:
        """Whether tasks have to be looked for at all after a turn that ended like this."""
        return self.enabled and stop_reason in _AT_LIMIT

    def decide(
        self, stop_reason: v1.StopReason, now: float, tasks: Sequence[OpenTask] | None
    ) -> Nudge | HeldNudge | None:
        """What to do after a turn. Changes nothing: call `nudged` when it is done."""
        if not self.at_limit(stop_reason) or not tasks:
            return None
        left = "1 task is left" if len(tasks) == 1 else f"{len(tasks)} tasks are left"
        if self.count >= self.maximum:
            times = "once" if self.count == 1 else f"{self.count} times"
            return HeldNudge(
                Advice(f"{left}, and the engines went on by themselves {times} already", "send a prompt to go on")
            )
        wait = 0.0 if self._last is None else self._last + self.cooldown - now
        if wait > 0:
            why = f"{left}, and the engines went on by themselves less than {self.cooldown:g} s ago"
            return HeldNudge(Advice(why, f"look at what they do; in {math.ceil(wait)} s they may go on again"))
        return Nudge(prompt_text(tasks), self.count + 1)

    async def pending(self, cwd: str | os.PathLike[str]) -> list[OpenTask] | None:
        """The tasks that are left in a directory; None: unknown."""
        words = _found(self.command)
        if words is None:
            return None
        from antiphon.local.commands import LocalCommand

        try:
            command = await LocalCommand.start(words, cwd=cwd, output_limit=OUTPUT, errors=False)
        except SpawnFailed as error:
            _log.debug("no tasks: %s", error)
            return None
        async with command:  # ends it and everything it started, also when we are cancelled
            return await _tasks_printed_by(command)


async def _tasks_printed_by(command: "LocalCommand") -> list[OpenTask] | None:
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
        _log.warning("no tasks: what `%s` printed is not a JSON list: %s", command.name, error)
        return None


def tasks_of(listed: object) -> list[OpenTask]:
    """The tasks in a JSON list that are not done. An entry is a text, or an object with any of id, title, name, text, status, done.

    Raises:
        ValueError: it is not a list.
    """
    if not isinstance(listed, list):
        raise ValueError(f"it is {type(listed).__name__}")
    found: list[OpenTask] = []
    for entry in listed:
        if isinstance(entry, str) and entry.strip():
            found.append(OpenTask(_line(entry)))
        elif isinstance(entry, dict) and not _is_done(entry):
            found.append(_task(entry))
    return found


def prompt_text(tasks: Sequence[OpenTask]) -> str:
    """The prompt to continue, as the engines receive it and the user sees it."""
    lines = [f"- {task.title}" + (f" ({task.id})" if task.id else "") for task in tasks[:LISTED]]
    if len(tasks) > LISTED:
        lines.append(f"- and {len(tasks) - LISTED} more")
    return "\n".join(["Go on with the open tasks:", *lines])


def _found(command: Sequence[str]) -> list[str] | None:
    """The command with the whole path of its program."""
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
    """A text as one line without control characters."""
    line = " ".join(prose(text).split())
    return line if len(line) <= TITLE else line[: TITLE - 1].rstrip() + "…"
