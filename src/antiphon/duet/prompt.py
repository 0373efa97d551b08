"""What is done with a prompt: it is stored, and answered by the engines of the route, unless it is a command of ours."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.agent.questions import end_turn
from antiphon.agent.turn import AgentTurn
from antiphon.aio import maybe_await
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
from antiphon.duet.history.writer import explained
from antiphon.duet.opener import continue_session
from antiphon.duet.review import Reference, code_reference, explain_prompt, reference_in
from antiphon.duet.routes import RoutedPrompt
from antiphon.duet.status import about
from antiphon.engines.labels import title_of
from antiphon.errors import AcpError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.duet.session import JointSession

__all__ = ["PromptHandler"]

AROUND: Final = 15
"""Lines before and after those that are to be explained."""

EXPLAINED_LINES: Final = 400
"""Lines that an engine gets to explain."""


class PromptHandler:
    """Handles the prompts of one joint session."""

    def __init__(self, joint: "JointSession") -> None:
        self._joint = joint
        self._history = joint.history
        self._settings = joint.settings
        self._engine_sessions = joint.engine_sessions
        self._guard = joint.guard

    async def prompt(self, turn: AgentTurn) -> "Outcome":
        """Handle a turn of the user."""
        joint, history = self._joint, self._history
        command = None
        if turn.text.lstrip().startswith("/"):
            if turn.command is not None and (missing := self._absent(turn.command[0])) is not None:
                await history.message(missing)
                await history.settled()
                return None
            command = parse(turn.text, list(self._settings.engines))
        history.turn_begins()
        for_engines = command is None or _is_for_engines(command)
        history.note(PromptEvent(now(), list(turn.prompt), history.new_id(), "" if for_engines else "command"))
        if for_engines and history.title is None and (title := title_of(_meant(turn, command))):
            await history.entitle(title)
        outcome: Outcome
        try:
            if command is None:
                outcome = await RoutedPrompt(joint).answer(turn.prompt, self._settings.route)
            else:
                outcome = await self._do(turn, command)
        finally:
            self._guard.turn_over()
            await joint.save()  # the response comes after all updates
        return outcome

    async def steer(self, addition: AgentTurn) -> bool:
        """Add something to the turn that runs: the engines that work get it."""
        taken: list[str] = []
        joint, history = self._joint, self._history
        async with joint.steering:
            working = [each for each in self._engine_sessions.opened.values() if each.working and each.engine.steers]
            for inner in working:
                own = AgentTurn(inner, addition.prompt)
                inner.collected = []  # updates that answer the addition are shown after it
                try:
                    if inner.engine_session is not None and await maybe_await(inner.engine_session.steer(own)):
                        if not taken:
                            prompt = list(addition.prompt)
                            history.note(PromptEvent(now(), prompt, history.new_id(), steering=True))
                        taken.append(inner.name)
                        history.note(GivenEvent(now(), inner.name, addition.text))
                finally:
                    end_turn(own)
                    waits = joint.release(inner)
                for wait in waits:
                    await wait
        return bool(taken)

    def _absent(self, command: str) -> str | None:
        """The answer to a command for an engine that is not here: it is nothing for another engine."""
        name = command.partition(":")[0]
        if name not in self._joint.absent or name in self._settings.engines:
            return None
        why = self._joint.absent[name]
        return f"`{name}` is not here: {why.sentence}." + (f" {why.hint}." if why.hint else "")

    async def _do(self, turn: AgentTurn, command: TypedCommand) -> "Outcome":
        match command.asked:
            case EngineCommand(engine=engine, text=text):
                return await RoutedPrompt(self._joint).answer(_instead(turn.prompt, text), engine)
            case RouteCommand(route=route, prompt=text):
                return await self._route(turn, route, text)
            case ReviewCommand(prompt=text, then=then):
                self._settings.choose(review=then)
                return await self._route(turn, "review", text)
            case ExplainCommand(reference=reference):
                return await self._explain(turn, reference)
            case NudgeCommand() as nudge:
                await self._nudge(nudge)
            case ContinueCommand(id=id):
                await continue_session(self._joint, id)
            case PlainCommand(name=name):
                await self._history.message(await self._plain(name))
        return None

    async def _route(self, turn: AgentTurn, route: str, text: str) -> "Outcome":
        settings = self._settings
        if len(settings.engines) < 2 and route in ("duet", "review"):
            alone = settings.titles[settings.lead]
            await self._history.message(
                f"`/{route}` needs two engines, and there is one: {alone}. `antiphon doctor` shows how to get another."
            )
            return None
        await self._joint.set_route(route)
        if text:
            return await RoutedPrompt(self._joint).answer(_instead(turn.prompt, text), route)
        await self._history.message(self._route_text())
        return None

    def _route_text(self) -> str:
        settings = self._settings
        titles = [settings.titles[name] for name in settings.engines_of(settings.route)]
        match settings.route:
            case "duet":
                return f"From now on {' and '.join(titles)} answer, {titles[0]} first."
            case "review":
                then = f"hands its findings back to {titles[0]}" if settings.review == "fix" else "says what is wrong"
                return f"From now on {titles[0]} works, and {titles[1]} reviews it and {then}."
            case _:
                return f"From now on {titles[0]} answers."

    async def _explain(self, turn: AgentTurn, reference: str) -> "Outcome":
        found = (meant, "") if (meant := code_reference(reference)) is not None else reference_in(turn.prompt[1:])
        if found is None:
            await self._history.message(
                "`/explain` needs to know what: a path, with lines if you like, such as `/explain src/app.py:10-20`, or a mention of a file."
            )
            return None
        place, text = found
        try:
            text = text or await _read(turn, place)
        except AcpError as error:
            await self._history.message(f"`/explain` cannot read `{place}`: {explained(error)[0]}")
            return None
        if not text.strip():
            await self._history.message(f"There is nothing at `{place}`.")
            return None
        return await RoutedPrompt(self._joint).answer([v1.TextBlock(explain_prompt(place, text))], self._settings.lead)

    async def _nudge(self, nudge: NudgeCommand) -> None:
        self._settings.choose(nudge=nudge.on)
        state = "on" if self._settings.nudge else "off"
        odd = f"`{nudge.odd}` is neither on nor off. " if nudge.odd else ""
        await self._history.message(f"{odd}Going on by itself when a limit stops it and tasks are left: {state}.")

    async def _plain(self, name: PlainName) -> str:
        match name:
            case "clear":
                await self._joint.clear()
                return "A fresh start: the engines no longer know the earlier prompts and answers."
            case "trust":
                return await self._trust()
            case _:
                return await about(self._joint, name)

    async def _trust(self) -> str:
        """Trust the files of the project that engines read. Each engine looks again before its next prompt."""
        from antiphon.permission.project_trust import NothingToTrust, trust_project, trusted_text

        outer, store = self._joint.outer, self._joint.store
        try:
            trusted = await trust_project((outer.cwd, *outer.directories), store.database)
        except NothingToTrust as error:
            return explained(error)[0]
        return trusted_text(trusted, outer.cwd)


def _meant(turn: AgentTurn, command: "TypedCommand | None") -> str:
    """The text of the user, without our command before it."""
    match command.asked if command is not None else None:
        case RouteCommand(prompt=text) | ReviewCommand(prompt=text):
            return text
        case _:
            return turn.text


def _is_for_engines(command: TypedCommand) -> bool:
    match command.asked:
        case EngineCommand() | ExplainCommand():
            return True
        case RouteCommand(prompt=text) | ReviewCommand(prompt=text):
            return bool(text)
        case _:
            return False


async def _read(turn: AgentTurn, place: Reference) -> str:
    """The lines that are meant with some around them; of a whole file its beginning. Through the client, which has what is not saved yet."""
    if place.first is None:
        return await turn.read(place.path, limit=EXPLAINED_LINES)
    first = max(1, place.first - AROUND)
    last = (place.last or place.first) + AROUND
    text = await turn.read(place.path, line=first, limit=min(last - first + 1, EXPLAINED_LINES))
    lines = [f"{number:>5}  {line}" for number, line in enumerate(text.splitlines(), first)]
    return "\n".join(lines) if len(lines) > place.first - first else ""


def _instead(prompt: Sequence[v1.ContentBlock], text: str) -> list[v1.ContentBlock]:
    """The prompt with its first text replaced: the command in front of it was for us."""
    blocks: list[v1.ContentBlock] = []
    sent = False
    for block in prompt:
        if isinstance(block, v1.TextBlock):
            if not sent:
                blocks.append(msgspec.structs.replace(block, text=text))
                sent = True
        else:
            blocks.append(block)
    return blocks
