"""One prompt of the user, played by the engines of the route: by one, by several, or by one with another looking over its shoulder.

Rules:

1. An engine that fails does not silence the others: its error is shown, and reported in `_meta.antiphon.failures` of the response.
   If all failed, the prompt fails with the first error.
2. How it ended: `cancelled` if the user cancelled; else the first of the engines' ends that is no `end_turn`; else `end_turn`.
3. Engines that may write work one after the other. They work at the same time only where all of them just look.
4. A budget ends what the user did not ask for: rounds of fixing, going on by itself, a turn that has become too dear.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from antiphon.agent.turn import AgentTurn
from antiphon.aio import NO_WAIT, maybe_await
from antiphon.duet.history.events import COMMAND, UNSIGNED, EndEvent, GivenEvent, now
from antiphon.duet.history.writer import failure_of, told
from antiphon.duet.limits import Budget, Exceeded, HeldNudge, Nudge
from antiphon.duet.review import TreesBefore, changes, fix_prompt, from_calls, no_findings, review_prompt, snapshot
from antiphon.errors import AcpError, Code, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.duet.engine_sessions import InnerSession
    from antiphon.duet.session import JointSession

    Blocks = Sequence[v1.ContentBlock]

__all__ = ["MessageOrder", "RoutedPrompt"]

# --- Two engines at once, one heard at a time: a message is not cut in two by somebody else's words
# Whoever speaks has the floor until its message ends: with something that is no talk, or with its turn. Until then what the others say is
# held back, in their order, and told when the floor is free.

_TALK = (v1.AgentMessageChunk, v1.AgentThoughtChunk, v1.UserMessageChunk)


class MessageOrder:
    """`tell` is given what may be heard now, with the name of who says it."""

    def __init__(self, tell: Callable[[str, v1.Update], Awaitable[None]]) -> None:
        self._tell = tell
        self._held: dict[str, list[v1.Update]] = {}
        self._speaker: str | None = None
        self._done: set[str] = set()

    def say(self, name: str, update: v1.Update) -> Awaitable[None]:
        """Somebody says something."""
        if self._speaker not in (None, name):
            self._held.setdefault(name, []).append(update)
            return NO_WAIT
        told = self._tell(name, update)
        self._speaker = self._goes_on(name, update)
        if self._speaker is None and self._held:
            self._pass_on()
        return told

    def claim(self, name: str) -> None:
        """Somebody has to ask the user something now: what they said before goes first, whoever is speaking."""
        for update in self._held.pop(name, ()):
            _ = self._tell(name, update)

    def done(self, name: str) -> None:
        """Their turn is over: what they say now, or have said, is not waited for."""
        self._done.add(name)
        if self._speaker == name:
            self._speaker = None
        if self._speaker is None:
            self._pass_on()

    def end(self) -> None:
        """Nobody speaks at once any more: whatever is held is told."""
        self._speaker = None
        for name in tuple(self._held):
            self.claim(name)

    def _pass_on(self) -> None:
        while self._held and self._speaker is None:
            name = next(iter(self._held))
            held = self._held.pop(name)
            for update in held:
                _ = self._tell(name, update)
            self._speaker = self._goes_on(name, held[-1])

    def _goes_on(self, name: str, update: v1.Update) -> str | None:
        return name if isinstance(update, _TALK) and name not in self._done else None


_log = logging.getLogger(__name__)

_COUNTED = (
    "total_tokens",
    "input_tokens",
    "output_tokens",
    "thought_tokens",
    "cached_read_tokens",
    "cached_write_tokens",
)


class _Failed:
    """An engine's turn that ended with an error."""

    def __init__(self, error: AcpError) -> None:
        self.error = error


class RoutedPrompt:
    """Of one prompt."""

    def __init__(self, joint: "JointSession") -> None:
        self._joint = joint
        wishes = joint.wishes
        self.budget = Budget(wishes.max_turns, wishes.max_tokens, wishes.max_cost, joint.ledger)
        self._spent: Exceeded | None = None
        self._several = False
        self._failures: list[tuple[str, AcpError]] = []
        """The engines of this prompt that failed while others went on, in the order of their turns."""
        joint.spoken = False
        joint.budget = self.budget

    async def play(self, prompt: "Blocks", route: str) -> v1.PromptResult:
        """Play it, and go on by itself while there are tasks and a limit stopped it."""
        self._joint.nudging.user_spoke()
        while True:
            result = await self._play_once(prompt, route)
            more = None if self._is_spent() else await self._more(result.stop_reason)
            if more is None:
                return self._reported(await self._told(result))
            prompt = [v1.TextBlock(more)]
            await self._joint.saying.as_user(more, by="nudge")

    async def _more(self, stop_reason: v1.StopReason) -> str | None:
        """What to say to the engines to make them go on, if a limit stopped them and tasks are left."""
        joint, nudging = self._joint, self._joint.nudging
        if not nudging.at_limit(stop_reason):
            return None
        tasks = await nudging.pending(joint.outer.cwd)
        clock = time.monotonic()
        match nudging.decide(stop_reason, clock, tasks):
            case Nudge(text=text):
                nudging.nudged(clock)
                return text
            case HeldNudge(why=why):
                await joint.saying.notice(why.sentence, why.hint or None)
            case _:
                pass
        return None

    async def _play_once(self, prompt: "Blocks", route: str) -> v1.PromptResult:
        engines = self._joint.engines_of(route)
        self._several = len(engines) > 1
        if not self._several:
            return await self._alone(engines[0], prompt, route)
        if route == "review":
            return await self._review(engines[0], engines[1], prompt)
        return await self._all(engines, prompt)

    async def _alone(self, name: str, prompt: "Blocks", route: str) -> v1.PromptResult:
        try:
            return await self._give(name, prompt)
        except AcpError as error:
            if (other := await self._instead_of(name, error, route)) is not None:
                return await self._alone(other, prompt, other)
            self._joint.saying.note_failure(self._joint.cast.title(name), error)
            raise
        except Exception as error:
            _log.exception("%s failed", name)
            raise _bug(self._joint.cast.title(name), error) from error

    async def _instead_of(self, name: str, error: AcpError, route: str) -> str | None:
        """The engine that answers because this one is not signed in, if nobody has chosen who is to answer. It does so from now on."""
        joint = self._joint
        if not isinstance(error, RequestError) or error.code != Code.AUTH_REQUIRED or joint.spoken:
            return None
        if joint.state.routed or joint.wishes.route is not None or route != joint.state.route:
            return None
        for other, engine in joint.cast.engines.items():
            if other != name and await maybe_await(engine.signed_in()):
                title = f"{joint.cast.title(name)} is not signed in, so {joint.cast.title(other)} answers"
                await joint.saying.notice(title, f"/{name} asks it again once it is.")
                joint.state.route = other
                await joint.standing.tell()
                return other
        return None

    # Several.

    async def _all(self, engines: Sequence[str], prompt: "Blocks") -> v1.PromptResult:
        if not self._only_look(engines):
            return _merged([(name, await self._try(name, prompt)) for name in engines if not self._is_spent()])
        floor = self._joint.floor = MessageOrder(self._joint.tell_of)
        try:
            ends = await asyncio.gather(*(self._at_once(floor, name, prompt) for name in engines))
        finally:
            self._joint.floor = None
            floor.end()
        return _merged(list(zip(engines, ends, strict=True)))

    async def _at_once(self, floor: MessageOrder, name: str, prompt: "Blocks") -> v1.PromptResult | _Failed:
        try:
            return await self._try(name, prompt)
        finally:
            floor.done(name)

    def _only_look(self, engines: Sequence[str]) -> bool:
        """Whether the mode that holds lets none of them change anything."""
        mode = self._joint.state.mode
        return bool(mode) and all(self._joint.cast.engines[name].read_only == mode for name in engines)

    async def _try(self, name: str, prompt: "Blocks", role: str = "") -> v1.PromptResult | _Failed:
        """Give it to an engine; what goes wrong is shown, and the others go on."""
        title = self._joint.cast.title(name)
        try:
            return await self._give(name, prompt, role)
        except AcpError as error:
            failed = error
        except Exception as error:  # a bug in one engine is no reason to silence the others
            _log.exception("%s failed", name)
            failed = _bug(title, error)
        await self._joint.saying.failed(title, failed)
        self._failures.append((name, failed))
        return _Failed(failed)

    async def _review(self, worker: str, reviewer: str, prompt: "Blocks") -> v1.PromptResult:
        async with await snapshot([self._joint.outer.cwd, *self._joint.outer.directories]) as before:
            ends = [(worker, await self._try(worker, prompt))]
            rounds = self._joint.wishes.review_rounds if self._joint.state.review == "fix" else 0
            for round in range(1, rounds + 2):
                if not self._goes_on(ends):
                    break
                words = await self._for_reviewer(worker, _text(prompt), before)
                ends.append((reviewer, await self._try(reviewer, [v1.TextBlock(words)], "review")))
                findings = self._words_of(reviewer)
                if not rounds or not self._goes_on(ends) or no_findings(findings):
                    break
                by = self._joint.cast.title(reviewer)
                if round > rounds:
                    await self._joint.saying.notice(
                        f"{by} still finds something after {rounds} rounds", "Say how to go on."
                    )
                    break
                await self._joint.saying.notice(f"Round {round} of {rounds}: what {by} found is handed back")
                words = fix_prompt(findings, by, round, rounds)
                ends.append((worker, await self._try(worker, [v1.TextBlock(words)], "fix")))
        return _merged(ends)

    def _words_of(self, name: str) -> str:
        part = self._joint.cast.parts.get(name)
        return "" if part is None else "".join(part.words)

    def _goes_on(self, ends: "Sequence[tuple[str, v1.PromptResult | _Failed]]") -> bool:
        return isinstance(ends[-1][1], v1.PromptResult) and not self._is_spent()

    async def _for_reviewer(self, worker: str, asked: str, before: "TreesBefore") -> str:
        joint = self._joint
        found = await changes(before)
        diff = found.diff if found.complete else from_calls(joint.cast.parts[worker].calls).diff
        told = joint.journal.minutes.last(worker)
        return review_prompt(asked, joint.cast.title(worker), told, diff, "" if found.complete else found.why)

    # One.

    async def _give(self, name: str, prompt: "Blocks", role: str = "") -> v1.PromptResult:
        joint = self._joint
        part = await joint.cast.part(name)
        if role == "review":
            async with joint.cast.looking(part):
                return await self._given(part, prompt, role)
        await joint.cast.align(part)
        if not role and AgentTurn(part, prompt).command is not None:
            role = COMMAND
        return await self._given(part, prompt, role)

    async def _given(self, part: "InnerSession", prompt: "Blocks", role: str) -> v1.PromptResult:
        joint, name = self._joint, part.name
        joint.standing.show()
        given = self._with_context(part, prompt, role)
        joint.journal.note(GivenEvent(now(), name, _text(given), role))
        known = joint.state.of(name)  # from now on its conversation exists
        known.conversation, known.source = part.id, ""
        await joint.save()
        await joint.journal.settled()
        self.budget.turn_begins(name)
        joint.last = None  # a new turn, a new message
        stop_reason, failure = "", "it failed"
        try:
            result = await self._perform(part, AgentTurn(part, given))
            stop_reason, failure = result.stop_reason.value, ""
        except asyncio.CancelledError:
            stop_reason, failure = v1.StopReason.CANCELLED.value, ""
            raise
        except AcpError as error:
            unsigned = isinstance(error, RequestError) and error.code == Code.AUTH_REQUIRED
            failure = UNSIGNED if unsigned else ": ".join(told(error))
            raise
        finally:
            joint.journal.note(EndEvent(now(), name, stop_reason, failure))
        self.budget.turn_ended(name, result)
        return result

    def _with_context(self, part: "InnerSession", prompt: "Blocks", role: str) -> "list[v1.ContentBlock]":
        """The prompt, after what the engine has not heard of. A command has to stand first, so it goes alone."""
        if role == COMMAND:
            return list(prompt)
        if role:  # a review brings all along that it needs, and so does what it found
            part.knows_nothing = False
            return list(prompt)
        minutes = self._joint.journal.minutes
        missed = minutes.everything() if part.knows_nothing else minutes.since(part.name)
        part.knows_nothing = False
        # An empty line between: engines join the pieces of a prompt.
        part.briefed = part.briefed or bool(missed)
        return [v1.TextBlock(f"{missed}\n\n"), *prompt] if missed else list(prompt)

    async def _perform(self, part: "InnerSession", turn: AgentTurn) -> v1.PromptResult:
        """The engine's turn. One that goes over the budget is called off, and that is how it ended."""
        part.labels.visible = self._several
        work: asyncio.Future[Outcome] = asyncio.ensure_future(_prompted(part, turn))
        part.begins(lambda update: self._spend(part, update, work))
        try:
            outcome = await work
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._spent is None or (task is not None and task.cancelling()):
                raise
            outcome = self._spent.stop_reason
        finally:
            turn.end()
            part.ends()
        return outcome if isinstance(outcome, v1.PromptResult) else v1.PromptResult(outcome or v1.StopReason.END_TURN)

    def _spend(self, part: "InnerSession", update: v1.UsageUpdate, work: "asyncio.Future[Outcome]") -> None:
        self.budget.heard(part.name, update)
        self._spent = self._spent or self.budget.overrun()
        if self._spent is not None:
            work.cancel()

    def _is_spent(self) -> bool:
        self._spent = self._spent or self.budget.exceeded()
        return self._spent is not None

    async def _told(self, result: v1.PromptResult) -> v1.PromptResult:
        """The end of it all, and if the budget made it, why."""
        if self._spent is None:
            return result
        why = self._spent.why
        await self._joint.saying.notice(why.sentence, why.hint, v1.NoticeSeverity.WARNING)
        if result.stop_reason == v1.StopReason.END_TURN:
            return msgspec.structs.replace(result, stop_reason=self._spent.stop_reason)
        return result

    def _reported(self, result: v1.PromptResult) -> v1.PromptResult:
        """Add the engines that failed to the response: its stop reason is that of the others."""
        if not self._failures:
            return result
        failures = []
        for name, error in self._failures:
            sentence, hint = failure_of(self._joint.cast.title(name), error)
            failures.append({"engine": name, "message": sentence} | ({"hint": hint} if hint else {}))
        meta = dict(result.meta or {})
        return msgspec.structs.replace(result, meta={**meta, "antiphon": {"failures": failures}})


async def _prompted(part: "InnerSession", turn: AgentTurn) -> "Outcome":
    """In the task that plays it: a task that is cancelled before it begins would leave a coroutine that nothing awaits."""
    assert part.playing is not None  # noqa: S101 - it has been opened
    return await maybe_await(part.playing.prompt(turn))


def _bug(title: str, error: Exception) -> RequestError:
    why = f"{title} failed unexpectedly ({type(error).__name__}); the log has more"
    return RequestError(Code.INTERNAL_ERROR, "Internal error", why)


def _merged(ends: Sequence[tuple[str, v1.PromptResult | _Failed]]) -> v1.PromptResult:
    """How several turns ended, as one. Raises the first error if there is nothing else."""
    results = {name: end for name, end in ends if isinstance(end, v1.PromptResult)}
    if not results:
        raise next(end.error for _, end in ends if isinstance(end, _Failed))
    reasons = [end.stop_reason for _, end in ends if isinstance(end, v1.PromptResult)]
    notable = [reason for reason in reasons if reason != v1.StopReason.END_TURN]
    return v1.PromptResult(notable[0] if notable else v1.StopReason.END_TURN, _usage([*results.values()]))


def _usage(results: Sequence[v1.PromptResult]) -> v1.Usage | None:
    """What the engines used, together. Each tells what its whole session has, so the last word of each counts."""
    used = [result.usage for result in results if result.usage is not None]
    if len(used) < 2:
        return used[0] if used else None
    return v1.Usage(*(sum(getattr(each, name) or 0 for each in used) for name in _COUNTED))


def _text(prompt: "Blocks") -> str:
    return "".join(block.text for block in prompt if isinstance(block, v1.TextBlock))
