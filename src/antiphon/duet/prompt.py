"""What the user types: kept, and played by the route, unless it is a command of ours, which is done here."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.agent.turn import AgentTurn
from antiphon.duet.commands import (
    ContinueCommand,
    EngineCommand,
    ExplainCommand,
    NudgeCommand,
    PlainCommand,
    PlainName,
    ReviewCommand,
    RouteCommand,
    TypedCommand,
    parse,
)
from antiphon.duet.history.events import GivenEvent, PromptEvent, now
from antiphon.duet.history.writer import told
from antiphon.duet.opener import continue_session
from antiphon.duet.review import Reference, code_reference, explain_prompt, reference_in
from antiphon.duet.routes import RoutedPrompt
from antiphon.duet.settings import clear, set_route
from antiphon.duet.status import about
from antiphon.engines.labels import title_of
from antiphon.errors import AcpError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.duet.session import JointSession

__all__ = ["prompt", "steer"]

AROUND: Final = 15
"""Lines before and after those that are to be explained."""

EXPLAINED_LINES: Final = 400
"""Lines that are shown to whoever explains them."""


async def prompt(joint: "JointSession", turn: AgentTurn) -> "Outcome":
    """A turn of the user."""
    if (missing := _absent(joint, turn)) is not None:
        await joint.saying.say(missing)
        await joint.journal.settled()
        return None
    joint.journal.turn_begins()
    asked = parse(turn.text, list(joint.cast.engines))
    playing = _is_for_engines(asked)
    joint.journal.note(PromptEvent(now(), list(turn.prompt), joint.saying.new_id(), "" if playing else "command"))
    if playing and joint.saying.title is None and (title := title_of(_meant(turn, asked))):
        await joint.saying.entitle(title)
    outcome: Outcome
    try:
        outcome = await _do(joint, turn, asked)
    finally:
        joint.guard.turn_over()
        await joint.save()
        await joint.journal.settled()  # the answer comes after all that was said
    return outcome


async def steer(joint: "JointSession", addition: AgentTurn) -> bool:
    """The user adds something to the turn that runs: the engines that work get it."""
    from antiphon.aio import maybe_await

    taken: list[str] = []
    async with joint.steering:
        for part in [part for part in joint.cast.parts.values() if part.working and part.engine.steers]:
            own = AgentTurn(part, addition.prompt)
            part.collected = []  # updates that answer the addition are shown after it
            try:
                if part.playing is not None and await maybe_await(part.playing.steer(own)):
                    if not taken:
                        joint.journal.note(
                            PromptEvent(now(), list(addition.prompt), joint.saying.new_id(), steering=True)
                        )
                    taken.append(part.name)
                    joint.journal.note(GivenEvent(now(), part.name, addition.text))
            finally:
                own.end()
                waits = joint.release(part)
            for wait in waits:
                await wait
    return bool(taken)


def _absent(joint: "JointSession", turn: AgentTurn) -> str | None:
    """What to say to somebody who calls an engine that is not here: it is nothing to bother another engine with."""
    name = turn.command[0].partition(":")[0] if turn.command is not None else ""
    if name not in joint.absent or name in joint.cast.engines:
        return None
    why = joint.absent[name]
    return f"`{name}` is not here: {why.sentence}." + (f" {why.hint}." if why.hint else "")


def _meant(turn: AgentTurn, command: "TypedCommand | None") -> str:
    """What the user says, without the command of ours before it."""
    match command.asked if command is not None else None:
        case RouteCommand(prompt=text) | ReviewCommand(prompt=text):
            return text
        case _:
            return turn.text


def _is_for_engines(command: "TypedCommand | None") -> bool:
    match command.asked if command is not None else None:
        case None | EngineCommand() | ExplainCommand():
            return True
        case RouteCommand(prompt=text) | ReviewCommand(prompt=text):
            return bool(text)
        case _:
            return False


async def _do(joint: "JointSession", turn: AgentTurn, command: "TypedCommand | None") -> "Outcome":
    match command.asked if command is not None else None:
        case None:
            return await RoutedPrompt(joint).play(turn.prompt, joint.state.route)
        case EngineCommand(engine=engine, text=text):
            return await RoutedPrompt(joint).play(_instead(turn.prompt, text), engine)
        case RouteCommand(route=route, prompt=text):
            return await _route(joint, turn, route, text)
        case ReviewCommand(prompt=text, then=then):
            if then is not None:
                joint.state.review = then
            return await _route(joint, turn, "review", text)
        case ExplainCommand(reference=reference):
            return await _explain(joint, turn, reference)
        case NudgeCommand() as nudge:
            await _nudge(joint, nudge)
        case ContinueCommand(id=id):
            await continue_session(joint, id)
        case PlainCommand(name=name):
            await _plain(joint, name)
    return None


async def _route(joint: "JointSession", turn: AgentTurn, route: str, text: str) -> "Outcome":
    if len(joint.cast.engines) < 2 and route in ("duet", "review"):
        await joint.saying.say(
            f"`/{route}` needs two engines, and there is one: {joint.cast.title(joint.lead)}. `antiphon doctor` shows how to get another."
        )
        return None
    await set_route(joint, route)
    if text:
        return await RoutedPrompt(joint).play(_instead(turn.prompt, text), route)
    await joint.saying.say(_route_text(joint))
    return None


def _route_text(joint: "JointSession") -> str:
    titles = [joint.cast.title(name) for name in joint.engines_of(joint.state.route)]
    match joint.state.route:
        case "duet":
            return f"From now on {' and '.join(titles)} answer, {titles[0]} first."
        case "review":
            then = f"hands its findings back to {titles[0]}" if joint.state.review == "fix" else "says what is wrong"
            return f"From now on {titles[0]} works, and {titles[1]} reviews it and {then}."
        case _:
            return f"From now on {titles[0]} answers."


async def _explain(joint: "JointSession", turn: AgentTurn, reference: str) -> "Outcome":
    found = (meant, "") if (meant := code_reference(reference)) is not None else reference_in(turn.prompt[1:])
    if found is None:
        await joint.saying.say(
            "`/explain` needs to know what: a path, with lines if you like, such as `/explain src/app.py:10-20`, or a mention of a file."
        )
        return None
    place, text = found
    try:
        text = text or await _read(turn, place)
    except AcpError as error:
        await joint.saying.say(f"`/explain` cannot read `{place}`: {told(error)[0]}")
        return None
    if not text.strip():
        await joint.saying.say(f"There is nothing at `{place}`.")
        return None
    return await RoutedPrompt(joint).play([v1.TextBlock(explain_prompt(place, text))], joint.lead)


async def _read(turn: AgentTurn, place: Reference) -> str:
    """The lines that are meant with some around them; of a whole file its beginning. Through the client, which has what is not saved yet."""
    if place.first is None:
        return await turn.read(place.path, limit=EXPLAINED_LINES)
    first = max(1, place.first - AROUND)
    last = (place.last or place.first) + AROUND
    text = await turn.read(place.path, line=first, limit=min(last - first + 1, EXPLAINED_LINES))
    lines = [f"{number:>5}  {line}" for number, line in enumerate(text.splitlines(), first)]
    return "\n".join(lines) if len(lines) > place.first - first else ""


async def _nudge(joint: "JointSession", nudge: NudgeCommand) -> None:
    if nudge.on is not None:
        joint.nudging.enabled = joint.state.nudge = nudge.on
    state = "on" if joint.nudging.enabled else "off"
    odd = f"`{nudge.odd}` is neither on nor off. " if nudge.odd else ""
    await joint.saying.say(f"{odd}Going on by itself when a limit stops it and tasks are left: {state}.")


async def _plain(joint: "JointSession", name: PlainName) -> None:
    match name:
        case "clear":
            await clear(joint)
            await joint.saying.say("A fresh start: nothing of what was said is known to the engines any more.")
        case "trust":
            await joint.saying.say(await _trust(joint))
        case _:
            await joint.saying.say(await about(joint, name))


async def _trust(joint: "JointSession") -> str:
    """Trust what the project gives to the engines. Each of them looks again before its next prompt."""
    from antiphon.permission.project_trust import NothingToTrust, trust_project, trusted_text

    outer = joint.outer
    try:
        trusted = await trust_project((outer.cwd, *outer.directories), joint.store.database)
    except NothingToTrust as error:
        return told(error)[0]
    return trusted_text(trusted, outer.cwd)


def _instead(prompt: Sequence[v1.ContentBlock], text: str) -> list[v1.ContentBlock]:
    """The prompt with other words where its first text stands: a command in front was for us."""
    blocks: list[v1.ContentBlock] = []
    said = False
    for block in prompt:
        if isinstance(block, v1.TextBlock):
            if not said:
                blocks.append(msgspec.structs.replace(block, text=text))
                said = True
        else:
            blocks.append(block)
    return blocks
