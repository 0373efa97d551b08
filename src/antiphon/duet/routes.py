"""One prompt of the user, answered by the engines of a route: by one, by several, or by one whose work another one reviews.

Rules:

1. An engine that fails does not silence the others: its error is shown, and reported in `_meta.antiphon.failures` of the response.
   If all failed, the prompt fails with the first error.
2. How it ended: `cancelled` if the user cancelled; else the first of the engines' ends that is no `end_turn`; else `end_turn`.
3. Engines that may write work one after the other. They work at the same time only where all of them just read.
4. A budget ends what the user did not ask for: rounds of fixing, going on by itself, a turn that costs too much.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from antiphon.agent.questions import end_turn
from antiphon.agent.turn import AgentTurn
from antiphon.aio import NO_WAIT, maybe_await
from antiphon.duet.history.events import COMMAND, UNSIGNED, EndEvent, GivenEvent, now
from antiphon.duet.history.writer import explained, failure_of
from antiphon.duet.limits import Budget, Exceeded, HeldNudge, Nudge
from antiphon.duet.preferences import REVIEW
from antiphon.duet.review import TreesBefore, changes, fix_prompt, from_calls, no_findings, review_prompt, snapshot
from antiphon.errors import AcpError, Code, RequestError, ResponseError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.duet.engine_sessions import InnerSession
    from antiphon.duet.session import JointSession

    Blocks = Sequence[v1.ContentBlock]

__all__ = ["MessageOrder", "RoutedPrompt"]

_TEXT_UPDATES = (v1.AgentMessageChunk, v1.AgentThoughtChunk, v1.UserMessageChunk)


class MessageOrder:
    """The order in which engines that work at once are shown: a message is not cut in two by one of another engine.

    The engine whose message is being shown keeps its turn until the message ends: with an update that is not part of a message, or with
    the engine's turn. Until then the updates of the others are held back, in their order. `send` is called with each update that may be shown
    now, and the name of its engine.
    """

    def __init__(self, send: Callable[[str, v1.Update], Awaitable[None]]) -> None:
        self._send = send
        self._held: dict[str, list[v1.Update]] = {}
        self._current: str | None = None
        self._done: set[str] = set()

    def send(self, name: str, update: v1.Update) -> Awaitable[None]:
        """Show an update, or hold it back."""
        if self._current not in (None, name):
            self._held.setdefault(name, []).append(update)
            return NO_WAIT
        sent = self._send(name, update)
        self._current = self._goes_on(name, update)
        if self._current is None and self._held:
            self._send_held()
        return sent

    def claim(self, name: str) -> None:
        """Show what is held back of an engine: it sends a request now, and its updates before that go first."""
        for update in self._held.pop(name, ()):
            _ = self._send(name, update)

    def done(self, name: str) -> None:
        """Mark the turn of an engine as over: its message is not waited for any more."""
        self._done.add(name)
        if self._current == name:
            self._current = None
        if self._current is None:
            self._send_held()

    def end(self) -> None:
        """Show everything that is held back."""
        self._current = None
        for name in tuple(self._held):
            self.claim(name)

    def _send_held(self) -> None:
        while self._held and self._current is None:
            name = next(iter(self._held))
            held = self._held.pop(name)
            for update in held:
                _ = self._send(name, update)
            self._current = self._goes_on(name, held[-1])

    def _goes_on(self, name: str, update: v1.Update) -> str | None:
        return name if isinstance(update, _TEXT_UPDATES) and name not in self._done else None


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
    """One prompt of the user, answered by the engines of a route."""

    def __init__(self, joint: "JointSession") -> None:
        self._joint = joint
        self._settings = joint.settings
        self._history = joint.history
        self._engine_sessions = joint.engine_sessions
        self._nudges = joint.nudges
        self._summary = joint.summary
        self._outer = joint.outer
        limits = self._settings.preferences
        self.budget = Budget(limits.max_turns, limits.max_tokens, limits.max_cost, joint.usage)
        self._spent: Exceeded | None = None
        self._several = False
        self._failures: list[tuple[str, AcpError]] = []
        """The engines of this prompt that failed while others went on, in the order of their turns."""
        joint.has_answer = False
        joint.budget = self.budget

    async def answer(self, prompt: "Blocks", route: str) -> v1.PromptResult:
        """Give it to the engines, and let them go on by themselves while tasks are left and a limit stopped them."""
        self._nudges.begin_prompt()
        while True:
            engines = self._settings.engines_of(route)
            self._several = len(engines) > 1
            if not self._several:
                result = await self._alone(engines[0], prompt, route)
            elif route == REVIEW:
                result = await self._review(engines[0], engines[1], prompt)
            else:
                result = await self._all(engines, prompt)
            more = None if self._is_spent() else await self._more(result.stop_reason)
            if more is None:
                return self._reported(await self._explained(result))
            prompt = [v1.TextBlock(more)]
            await self._history.as_user(more, by="nudge")

    async def _more(self, stop_reason: v1.StopReason) -> str | None:
        """The prompt that makes the engines continue, if a limit stopped them and tasks are left."""
        nudges = self._nudges
        if not self._settings.nudge or not nudges.at_limit(stop_reason):
            return None
        tasks = await nudges.pending(self._outer.cwd)
        clock = time.monotonic()
        match nudges.decide(stop_reason, clock, tasks):
            case Nudge(text=text):
                nudges.nudged(clock)
                return text
            case HeldNudge(why=why):
                await self._history.notice(why.sentence, why.hint or None)
            case _:
                pass
        return None

    # One engine.

    async def _alone(self, name: str, prompt: "Blocks", route: str) -> v1.PromptResult:
        try:
            return await self._give(name, prompt)
        except AcpError as error:
            if (other := await self._instead_of(name, error, route)) is not None:
                return await self._alone(other, prompt, other)
            self._history.note_failure(self._settings.titles[name], error)
            raise
        except Exception as error:
            _log.exception("%s failed", name)
            raise _bug(self._settings.titles[name], error) from error

    async def _instead_of(self, name: str, error: AcpError, route: str) -> str | None:
        """The engine that answers because this one is not signed in, if the user has not chosen who answers. It does so from now on."""
        settings = self._settings
        if not isinstance(error, ResponseError) or error.code != Code.AUTH_REQUIRED or self._joint.has_answer:
            return None
        if settings.is_route_chosen or route != settings.route:
            return None
        for other, engine in settings.engines.items():
            if other != name and await maybe_await(engine.signed_in()):
                title = f"{settings.titles[name]} is not signed in, so {settings.titles[other]} answers"
                await self._history.notice(title, f"/{name} asks it again once it is.")
                settings.choose_route(other, by_user=False)
                await self._joint.send_settings()
                return other
        return None

    async def _give(self, name: str, prompt: "Blocks", role: str = "") -> v1.PromptResult:
        inner = await self._engine_sessions.get(name)
        if role == REVIEW:
            async with self._engine_sessions.reading_only(inner):
                return await self._given(inner, prompt, role)
        await self._engine_sessions.align(inner)
        if not role and AgentTurn(inner, prompt).command is not None:
            role = COMMAND
        return await self._given(inner, prompt, role)

    async def _given(self, inner: "InnerSession", prompt: "Blocks", role: str) -> v1.PromptResult:
        joint, history, name = self._joint, self._history, inner.name
        turn = AgentTurn(inner, self._with_summary(inner, prompt, role))
        history.note(GivenEvent(now(), name, turn.text, role))
        known = self._settings.of(name)  # from now on its own session exists
        known.session_id, known.source, known.dropped = inner.id, "", []
        await joint.save()
        self.budget.turn_begins(name)
        joint.last = None  # a new turn, a new message
        stop_reason, failure = "", "it failed"
        try:
            result = await self._perform(inner, turn)
            stop_reason, failure = result.stop_reason.value, ""
        except asyncio.CancelledError:
            stop_reason, failure = v1.StopReason.CANCELLED.value, ""
            raise
        except AcpError as error:
            unsigned = isinstance(error, ResponseError) and error.code == Code.AUTH_REQUIRED
            failure = UNSIGNED if unsigned else ": ".join(explained(error))
            raise
        finally:
            history.note(EndEvent(now(), name, stop_reason, failure))
        self.budget.turn_ended(name, result)
        return result

    def _with_summary(self, inner: "InnerSession", prompt: "Blocks", role: str) -> "list[v1.ContentBlock]":
        """The prompt, after a summary of what the engine missed. A command has to stand first, so it goes alone."""
        if role == COMMAND:
            return list(prompt)
        if role:  # the prompts of a review contain all that the engine needs
            inner.knows_nothing = False
            return list(prompt)
        summary = self._summary
        missed = summary.everything() if inner.knows_nothing else summary.since(inner.name)
        inner.knows_nothing = False
        inner.briefed = inner.briefed or bool(missed)
        # An empty line between: engines join the pieces of a prompt.
        return [v1.TextBlock(f"{missed}\n\n"), *prompt] if missed else list(prompt)

    async def _perform(self, inner: "InnerSession", turn: AgentTurn) -> v1.PromptResult:
        """Run the engine's turn. A turn that exceeds the budget is cancelled, and ends with that reason."""
        inner.labels.visible = self._several
        work: asyncio.Future[Outcome] = asyncio.ensure_future(_prompted(inner, turn))
        inner.begins(lambda update: self._spend(inner, update, work))
        try:
            outcome = await work
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._spent is None or (task is not None and task.cancelling()):
                raise
            outcome = self._spent.stop_reason
        finally:
            end_turn(turn)
            inner.ends()
        return outcome if isinstance(outcome, v1.PromptResult) else v1.PromptResult(outcome or v1.StopReason.END_TURN)

    # Several engines.

    async def _all(self, engines: Sequence[str], prompt: "Blocks") -> v1.PromptResult:
        if not self._only_read(engines):
            return _merged([(name, await self._try(name, prompt)) for name in engines if not self._is_spent()])
        order = self._joint.order = MessageOrder(self._joint.send_from_engine)

        async def at_once(name: str) -> v1.PromptResult | _Failed:
            try:
                return await self._try(name, prompt)
            finally:
                order.done(name)

        try:
            ends = await asyncio.gather(*(at_once(name) for name in engines))
        finally:
            self._joint.order = None
            order.end()
        return _merged(list(zip(engines, ends, strict=True)))

    def _only_read(self, engines: Sequence[str]) -> bool:
        """Whether the mode lets none of them change anything."""
        mode = self._settings.mode
        return bool(mode) and all(self._settings.engines[name].read_only == mode for name in engines)

    async def _try(self, name: str, prompt: "Blocks", role: str = "") -> v1.PromptResult | _Failed:
        """Give it to an engine; an error is shown, and the others go on."""
        title = self._settings.titles[name]
        try:
            return await self._give(name, prompt, role)
        except AcpError as error:
            failed = error
        except Exception as error:  # a bug in one engine must not stop the others
            _log.exception("%s failed", name)
            failed = _bug(title, error)
        await self._history.report(title, failed)
        self._failures.append((name, failed))
        return _Failed(failed)

    async def _review(self, worker: str, reviewer: str, prompt: "Blocks") -> v1.PromptResult:
        settings, outer = self._settings, self._outer
        async with await snapshot([outer.cwd, *outer.directories]) as before:
            ends = [(worker, await self._try(worker, prompt))]
            rounds = settings.preferences.review_rounds if settings.review == "fix" else 0
            for round in range(1, rounds + 2):
                if not self._goes_on(ends):
                    break
                words = await self._for_reviewer(worker, _text(prompt), before)
                ends.append((reviewer, await self._try(reviewer, [v1.TextBlock(words)], REVIEW)))
                findings = self._words_of(reviewer)
                if not rounds or not self._goes_on(ends) or no_findings(findings):
                    break
                by = settings.titles[reviewer]
                if round > rounds:
                    await self._history.notice(
                        f"{by} still finds something after {rounds} rounds", "Send a prompt to go on."
                    )
                    break
                await self._history.notice(f"Round {round} of {rounds}: what {by} found is handed back")
                words = fix_prompt(findings, by, round, rounds)
                ends.append((worker, await self._try(worker, [v1.TextBlock(words)], "fix")))
        return _merged(ends)

    def _words_of(self, name: str) -> str:
        inner = self._engine_sessions.opened.get(name)
        return "" if inner is None else "".join(inner.words)

    def _goes_on(self, ends: "Sequence[tuple[str, v1.PromptResult | _Failed]]") -> bool:
        return isinstance(ends[-1][1], v1.PromptResult) and not self._is_spent()

    async def _for_reviewer(self, worker: str, asked: str, before: "TreesBefore") -> str:
        found = await changes(before)
        diff = found.diff if found.complete else from_calls(self._engine_sessions.opened[worker].calls).diff
        done = self._summary.last(worker)
        title = self._settings.titles[worker]
        return review_prompt(asked, title, done, diff, "" if found.complete else found.why)

    # The budget, and the end.

    def _spend(self, inner: "InnerSession", update: v1.UsageUpdate, work: "asyncio.Future[Outcome]") -> None:
        self.budget.used(inner.name, update)
        self._spent = self._spent or self.budget.overrun()
        if self._spent is not None:
            work.cancel()

    def _is_spent(self) -> bool:
        self._spent = self._spent or self.budget.exceeded()
        return self._spent is not None

    async def _explained(self, result: v1.PromptResult) -> v1.PromptResult:
        """Show why the budget ended the prompt, if it did."""
        if self._spent is None:
            return result
        why = self._spent.why
        await self._history.notice(why.sentence, why.hint, v1.NoticeSeverity.WARNING)
        if result.stop_reason == v1.StopReason.END_TURN:
            return msgspec.structs.replace(result, stop_reason=self._spent.stop_reason)
        return result

    def _reported(self, result: v1.PromptResult) -> v1.PromptResult:
        """Add the engines that failed to the response: its stop reason is that of the others."""
        if not self._failures:
            return result
        failures = []
        for name, error in self._failures:
            sentence, hint = failure_of(self._settings.titles[name], error)
            failures.append({"engine": name, "message": sentence} | ({"hint": hint} if hint else {}) | _facts(error))
        meta = dict(result.meta or {})
        return msgspec.structs.replace(result, meta={**meta, "antiphon": {"failures": failures}})


def _facts(error: AcpError) -> "dict[str, object]":
    """Return what programs read of an engine's error: its kind, and when a limit is lifted."""
    data = getattr(error, "data", None)
    found = {key: data[key] for key in ("kind", "resetsAt") if key in data} if isinstance(data, dict) else {}
    return found if "kind" in found or not getattr(error, "wants_sign_in", False) else {**found, "kind": "auth"}


async def _prompted(inner: "InnerSession", turn: AgentTurn) -> "Outcome":
    """Called in the task of the turn: a task that is cancelled before it begins would leave a coroutine that nothing awaits."""
    assert inner.engine_session is not None  # noqa: S101 - it has been opened
    return await maybe_await(inner.engine_session.prompt(turn))


def _bug(title: str, error: Exception) -> RequestError:
    why = f"{title} failed unexpectedly ({type(error).__name__}); the log has more"
    return RequestError(Code.INTERNAL_ERROR, "Internal error", why)


def _merged(ends: Sequence[tuple[str, v1.PromptResult | _Failed]]) -> v1.PromptResult:
    """The outcome of several turns as one. Raises the first error if there is nothing else."""
    results = {name: end for name, end in ends if isinstance(end, v1.PromptResult)}
    if not results:
        raise next(end.error for _, end in ends if isinstance(end, _Failed))
    reasons = [end.stop_reason for _, end in ends if isinstance(end, v1.PromptResult)]
    notable = [reason for reason in reasons if reason != v1.StopReason.END_TURN]
    return v1.PromptResult(notable[0] if notable else v1.StopReason.END_TURN, _usage([*results.values()]))


def _usage(results: Sequence[v1.PromptResult]) -> v1.Usage | None:
    """What the engines used, together. Each reports the total of its whole session, so the last report of each counts."""
    used = [result.usage for result in results if result.usage is not None]
    if len(used) < 2:
        return used[0] if used else None
    return v1.Usage(*(sum(getattr(each, name) or 0 for each in used) for name in _COUNTED))


def _text(prompt: "Blocks") -> str:
    return "".join(block.text for block in prompt if isinstance(block, v1.TextBlock))
