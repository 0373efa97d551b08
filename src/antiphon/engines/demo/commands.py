"""The slash commands of the demo: functions of its session, the turn, and the text after the name. Those with messages only are here."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from antiphon.errors import Code, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antiphon.agent.agent import Outcome
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.session import DemoSession

    Handler = Callable[["DemoSession", "AgentTurn", str], Awaitable["Outcome"]]

__all__ = ["COMMANDS", "DemoCommand", "all_commands", "command", "number"]


class DemoCommand(NamedTuple):
    """A slash command."""

    name: str
    description: str
    hint: str | None
    run: "Handler"


COMMANDS: Final[dict[str, DemoCommand]] = {}
"""All commands by name. Filled by `all_commands`."""

_MODULES: Final = ("commands", "workspace", "background", "features")


def command(name: str, description: str, hint: str | None = None) -> "Callable[[Handler], Handler]":
    """Make a function a slash command. `hint` is what may follow its name."""

    def register(handler: "Handler") -> "Handler":
        COMMANDS[name] = DemoCommand(name, description, hint, handler)
        return handler

    return register


def all_commands() -> dict[str, DemoCommand]:
    """Return all commands, in the order of `/help` whichever module was imported first."""
    homes = [import_module(f"antiphon.engines.demo.{module}").__name__ for module in _MODULES]
    return {name: command for home in homes for name, command in COMMANDS.items() if command.run.__module__ == home}


# Commands with messages only: text, thoughts, plans, notices, and how a turn can end.

BEAT: Final = 0.1
"""Seconds between two words of `/slow`: long enough to be cancelled in the middle, short enough to watch."""

MOST: Final = 1_000_000
"""The largest number that a command takes."""

WINDOW: Final = 200_000
"""The size of the context window that the demo pretends to have, in tokens."""


def number(text: str, otherwise: int) -> int:
    """Return the number after a command.

    Raises:
        RequestError: it is not a number, or too large.
    """
    if not text.strip():
        return otherwise
    try:
        value = int(text.split()[0])
    except ValueError:
        value = -1
    if not 0 <= value <= MOST:
        wrong = f"`{text.strip()}` is not a number from 0 to {MOST}"
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", wrong)
    return value


@command("help", "What the demo can do")
async def show_help(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """The list of commands, as Markdown."""
    lines = [
        f"- `/{each.name}{' ' + each.hint if each.hint else ''}`: {each.description}"
        for each in all_commands().values()
    ]
    await turn.say("I am the Antiphon demo: no model, no key, no network. Any text gets a small answer, and:\n\n")
    await turn.say("\n".join(lines) + "\n")
    return None


@command("think", "Think aloud before answering", "TEXT")
async def think(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Thoughts in pieces, and a tool call of the kind that thinks."""
    for argument in f"Let me think about {rest or 'this'} for a moment.".split(" "):
        await turn.think(f"{argument} ")
    async with turn.tool("Think it over", v1.ToolKind.THINK, input={"about": rest}) as call:
        await call.show("It comes to the same.", raw={"conclusion": "the same"})
    await turn.say(f"I have thought about {rest or 'this'}.")
    return None


@command("echo", "Repeat it, as a message of the user")
async def echo(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """The update for a message of the user, as in a replayed history."""
    await turn.update(v1.UserMessageChunk(v1.TextBlock(rest or "echo")))
    await turn.say(rest or "echo")
    return None


@command("plan", "Make a plan and follow it")
async def plan(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A plan whose entries go through every state, with every priority."""
    texts = ("Look around", "Do the work", "Check the work")
    priorities = (v1.PlanPriority.LOW, v1.PlanPriority.HIGH, v1.PlanPriority.MEDIUM)
    states = (v1.PlanStatus.COMPLETED, v1.PlanStatus.IN_PROGRESS, v1.PlanStatus.PENDING)
    for done in range(len(texts) + 1):
        entries = [
            v1.PlanEntry(text, priority, states[0 if place < done else 1 if place == done else 2])
            for place, (text, priority) in enumerate(zip(texts, priorities, strict=True))
        ]
        await turn.plan(*entries)
    await turn.say("The plan is done.")
    return None


@command("slow", "Count slowly; cancel it to see what happens", "N")
async def slow(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Send one number in each beat."""
    for count in range(1, number(rest, 10) + 1):
        await turn.say(f"{count} ")
        await asyncio.sleep(BEAT)
    await turn.say("done")
    return None


@command("many", "Send many small pieces as fast as possible", "N")
async def many(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Many updates, for measurements."""
    for count in range(number(rest, 1000)):
        await turn.say(f"{count} ")
    return None


@command("big", "Send one piece of that many KiB", "N")
async def big(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Send one large update, for clients with a small buffer."""
    await turn.say("antiphon" * (128 * number(rest, 64)))
    return None


@command("usage", "Report tokens and cost")
async def usage(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """How full the window is, and the tokens of the session with the answer. A token of the demo is a prompt."""
    used = 100 * demo.state.prompts
    await turn.usage(used, WINDOW, cost=used / 1_000_000)
    await turn.say(f"{used} of {WINDOW} tokens used.")
    tokens = v1.Usage(used, used // 2, used - used // 2, thought_tokens=0, cached_read_tokens=0, cached_write_tokens=0)
    return v1.PromptResult(v1.StopReason.END_TURN, usage=tokens)


@command("title", "Give the session a title", "TEXT")
async def title(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A title, which is stored with the session."""
    await demo.entitle(rest or "A session with the demo")
    await turn.say(f"This session is called “{demo.state.title}” now.")
    return None


@command("notice", "Show notices of every severity")
async def notice(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Send a notice, or text if the client shows no notices."""
    for severity in v1.NoticeSeverity:
        await turn.session.notice(f"A notice: {severity}", "It is only a demonstration.", severity)
    return None


@command("compact", "Pretend to compact the context", "[fail|cancel]")
async def compact(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A compaction with its summary, completed, or with the status in the argument."""
    status = v1.CompactionStatus
    if not turn.session.client.shows_compaction:
        await turn.say("Your client does not show compactions, so none was made.")
        return None
    id = turn.next_id("compaction")
    await turn.update(v1.CompactionUpdate(id, status.IN_PROGRESS))
    if rest.strip() == "fail":
        await turn.update(v1.CompactionUpdate(id, status.FAILED, error="as you asked"))
    elif rest.strip() == "cancel":
        await turn.update(v1.CompactionUpdate(id, status.CANCELLED))
    else:
        await turn.update(v1.CompactionSummaryChunk(id, v1.TextBlock(f"{demo.state.prompts} prompts so far.")))
        await turn.update(v1.CompactionUpdate(id, status.COMPLETED))
    return None


@command("stop", "End the turn for a reason", "end_turn|max_tokens|max_turn_requests|refusal")
async def stop(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Every stop reason that is not `cancelled`, which only cancelling gives."""
    reason = rest.strip() or "end_turn"
    reasons = [each.value for each in v1.StopReason if each is not v1.StopReason.CANCELLED]
    if reason not in reasons:
        wrong = f"there is no reason `{reason}`: choose one of {', '.join(reasons)}, or cancel the turn"
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", wrong)
    await turn.say(f"I stop: {reason}.")
    return v1.StopReason(reason)


@command("fail", "Fail: a tool call first, then the turn", "[CODE]")
async def fail(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A failed tool call and an error as the answer."""
    code = -number(rest.strip().lstrip("-"), -Code.INTERNAL_ERROR)
    async with turn.tool("A tool that always fails", input={"code": code}) as call:
        await call.show("It began well.")
        raise RequestError(code or Code.INTERNAL_ERROR, "The demo failed", "as you asked: the session goes on")
