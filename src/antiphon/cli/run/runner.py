"""One run: starts the agent, sends the prompt, prints the updates and the result.

However it is stopped (Ctrl-C, a timeout, a reader that goes away), the turn is cancelled first and the agent ended with all it started.
"""

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.catalogue.known import DEMO
from antiphon.cli.arguments import Misused, shown_time
from antiphon.cli.logs import log_file
from antiphon.cli.outcome import (
    CANCELLED,
    DENIED,
    DONE,
    FAILED,
    HALF_FAILED,
    MISUSED,
    NOT_SIGNED_IN,
    OVER_BUDGET,
    RATE_LIMITED,
    TIMED_OUT,
    WRONG_OUTPUT,
    OutputLost,
    status_of,
)
from antiphon.cli.run.command import StopSignal
from antiphon.cli.run.person import Person
from antiphon.cli.run.printers import (
    JsonPrinter,
    Printer,
    QuietPrinter,
    ResultPrinter,
    TailOf,
    TextPrinter,
    WordOf,
    tokens_event,
    usage_event,
)
from antiphon.cli.run.reports import WorkflowCommands, answer_of, write_answer, write_junit, write_workflow
from antiphon.cli.run.result import (
    MORE,
    AnswerText,
    NotedFiles,
    NotedWarnings,
    advice_for,
    changed_files,
    denied_line,
    failure_of,
    failures_in,
    status_of_turn,
)
from antiphon.cli.run.session import OpenedSession, open_session
from antiphon.cli.terminal import Screen, terminal_of
from antiphon.client.handlers import Elicitation, Elicited
from antiphon.client.launch import Frontend, RunningAgent, engine_asking, launch
from antiphon.config.shapes import RUN
from antiphon.errors import AcpError, sentence_and_hint
from antiphon.protocol import v1
from antiphon.runs import events
from antiphon.transcript.presentation import engine_of
from antiphon.tui.terminals import WatchedTerminals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.cli.arguments import Options
    from antiphon.cli.run.command import RunPrompt
    from antiphon.client.session import ClientSession
    from antiphon.client.turn import ClientTurn
    from antiphon.runs.answer_schema import AnswerSchema
    from antiphon.runs.budget import RunBudget
    from antiphon.runs.patches import PatchBase
    from antiphon.runs.worktrees import Worktree
    from antiphon.store.decisions import AuditEntry

__all__ = ["Runner"]

LINGER: Final = 0.1
"""Seconds that we read on after the turn's response: some agents send the end of their message after it."""

STATUS_DELAY: Final = 1.0
"""Seconds before we show what we wait for."""

_STATUSES: Final = {
    "auth_required": NOT_SIGNED_IN,
    "rate_limited": RATE_LIMITED,
    "over_budget": OVER_BUDGET,
    "wrong_output": WRONG_OUTPUT,
}
"""Kinds of errors that have an exit status of their own."""

_log = logging.getLogger(__name__)


class Runner:
    """One run of `antiphon run`: starts the agent, sends the prompt, prints updates and the result."""

    def __init__(
        self,
        options: "Options",
        prompt: "RunPrompt",
        cwd: str,
        stop: StopSignal,
        *,
        schema: "AnswerSchema | None" = None,
        worktree: "Worktree | None" = None,
        workflow: WorkflowCommands | None = None,
    ) -> None:
        self._options = options
        self._prompt = prompt
        self._cwd = cwd
        self._stop = stop
        self._schema = schema
        self._worktree = worktree
        self._workflow = workflow
        self._worktree_report: events.WorktreeReport | None = None
        self._patch_report: events.PatchReport | None = None
        self._output: object = None
        self._attempts: int | None = None
        self._budget: RunBudget | None = None
        self._problem: AcpError | None = None
        """Why a turn that ended is no success all the same: over budget, or an answer in the wrong form."""
        self._began = time.monotonic()
        self._screen = Screen()
        self._terminals = WatchedTerminals()
        self._refused: set[str] = set()
        self._printer: Printer = _printer(options, self._screen, self._tail_of, self._word_of)
        terminal = terminal_of(self._screen)
        self._person = None if terminal is None else Person(self._screen, terminal)
        self._files = NotedFiles()
        self._answer = AnswerText()
        self._warnings = NotedWarnings()
        self._running: RunningAgent | None = None
        self._opened: OpenedSession | None = None
        self._turn: ClientTurn | None = None
        self._begin = 0
        self._ending: asyncio.Task[None] | None = None
        self._starting: asyncio.TimerHandle | None = None

    async def run(self) -> int:
        """Run, and return the exit status."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task()

        def request_cancel() -> None:
            loop.call_soon_threadsafe(self._cancel_run, task)

        self._stop.cancel_run = request_cancel
        self._screen.lost = lambda: self._stop.stop("cancelled")
        self._starting = loop.call_later(STATUS_DELAY, self._screen.status, "starting the agent …")
        limit = self._options.timeout
        timeout = loop.call_later(limit, self._stop.stop, "timeout") if limit is not None else None
        async with AsyncExitStack() as looking:
            stopped, error = await self._run_agent(looking, timeout)
        try:
            return self._finish(stopped, error)
        except (OutputLost, BrokenPipeError):
            self._note_worktree()
            raise

    async def _run_agent(
        self, looking: AsyncExitStack, timeout: asyncio.TimerHandle | None
    ) -> tuple[v1.PromptResult | None, Exception | None]:
        """Run from the start of the agent to its end, and look at what changed."""
        stopped: v1.PromptResult | None = None
        error: Exception | None = None
        base: PatchBase | None = None
        try:
            if self._options.patch is not None:
                from antiphon.runs.patches import patch_base

                base = await looking.enter_async_context(patch_base(self._cwd))
            async with launch(self._options.launch_options(), self._cwd, self._frontend()) as running:
                self._running = running
                stopped = await self._run_session(running)
                self._turn = None
        except asyncio.CancelledError:
            if self._stop.why is None:
                raise
        except AcpError as failure:
            error = failure
        except (Misused, OutputLost, BrokenPipeError):
            await self._look_at_changes(base)  # there is no result any more: stderr has what was kept
            self._note_worktree()
            raise
        except Exception as failure:  # a bug of ours: the user still gets a result, without a traceback
            _log.exception("a fault of this program")
            error = AcpError(
                f"{type(failure).__name__}: {failure}", hint=f"this is a fault of antiphon; {log_file()} has more"
            )
        finally:
            if self._starting is not None:
                self._starting.cancel()
            if timeout is not None:
                timeout.cancel()
            self._screen.status(None)
        return stopped, await self._look_at_changes(base) or error

    async def _look_at_changes(self, base: "PatchBase | None") -> AcpError | None:
        """Write the patch, and keep or remove the worktree; return what went wrong."""
        problem: AcpError | None = None
        try:
            if base is not None and self._options.patch is not None:
                self._patch_report = await base.write(self._options.patch)
        except AcpError as error:
            problem = error
        if (made := self._worktree) is not None:
            keep, kept = self._options.keep_worktree or "changed", True
            try:
                if problem is None and (keep == "never" or (keep == "changed" and not made.changed())):
                    made.remove()
                    kept = False
            except AcpError as error:
                problem = problem or error
            self._worktree_report = events.WorktreeReport(path=made.path, branch=made.branch, base=made.base, kept=kept)
        return problem

    # The session.

    async def _run_session(self, running: RunningAgent) -> v1.PromptResult:
        _log.info("%s started for a run in %s", running.agent.name, self._cwd)
        if self._starting is not None:  # it has started, and may ask before anything else comes
            self._starting.cancel()
        opened = self._opened = await open_session(running, self._options, on_update=self._update_outside_turn)
        self._screen.status(None)
        session, info = opened.session, running.agent.info
        self._begin = len(session.transcript.entries)
        blocks = await asyncio.to_thread(
            self._prompt.blocks, running.agent.capabilities.prompt_capabilities, running.agent.name
        )
        self._printer.opened(session, running.agent.name, info.version if info is not None else None, opened.how)
        if self._screen.is_terminal and running.name == DEMO and not (self._options.agent or self._options.quiet):
            self._screen.note("the demo answers, which has no model: `--agent NAME` chooses another", "dim")
        self._limit(opened)
        try:
            if self._schema is not None:
                return await self._ask_for_json(self._schema, session, blocks)
            return await self._run_turn(session, blocks)
        finally:
            if self._options.ephemeral:
                await self._forget(running, session.id)

    async def _run_turn(self, session: "ClientSession", blocks: "Sequence[v1.ContentBlock]") -> v1.PromptResult:
        async with session.prompt(blocks) as turn:
            self._turn = turn
            if self._stop.why is not None:  # since the session was opened
                self._cancel_turn()
            async for update in turn:
                await self._show(update)
        result = turn.result
        if self._stop.why is None:
            await asyncio.sleep(LINGER)
        self._answer.end_turn()
        self._check_budget(result)
        return result

    async def _ask_for_json(
        self, schema: "AnswerSchema", session: "ClientSession", blocks: "Sequence[v1.ContentBlock]"
    ) -> v1.PromptResult:
        """Prompt until an answer matches the schema, a few times at most."""
        from antiphon.runs.answer_schema import ATTEMPTS, NoMatch

        blocks = [*blocks, v1.TextBlock(schema.request())]
        while True:
            self._attempts = (self._attempts or 0) + 1
            result = await self._run_turn(session, blocks)
            stopped = self._stop.why is not None or self._problem is not None or self._failed
            if stopped or result.stop_reason != v1.StopReason.END_TURN:
                return result
            try:
                self._output = schema.read(self._answer.final)
                return result
            except NoMatch as problem:
                first = problem.sentence.partition("\n")[0].removeprefix("- ")
                if self._attempts == ATTEMPTS:
                    self._problem = NoMatch(
                        f"no answer of {ATTEMPTS} matches the schema: {first}",
                        hint="the prompt may not lead to such an answer; `--output json` shows the last one",
                    )
                    return result
                self._warn(f"the answer does not match the schema, so it is asked for again: {first}")
                blocks = [v1.TextBlock(schema.request_again(problem))]

    @property
    def _failed(self) -> bool:
        """Whether permission was needed where `--on-ask fail` holds."""
        return self._running is not None and self._running.gate.failed is not None

    # Limits.

    def _limit(self, opened: OpenedSession) -> None:
        """Begin to count what the run uses, if it has limits."""
        options = self._options
        if (options.max_cost, options.max_tokens, options.max_turns) == (None, None, None):
            return
        from antiphon.runs.budget import RunBudget, RunLimits

        limits = RunLimits(options.max_cost, options.max_tokens, options.max_turns)
        self._budget = RunBudget(limits, before=opened.session.transcript.usage, new=opened.how == "new")

    def _count(self, update: v1.Update) -> None:
        if self._budget is not None and self._problem is None:
            self._problem = self._budget.update(update)
            if self._problem is not None:
                self._cancel_turn()

    def _check_budget(self, result: v1.PromptResult) -> None:
        """Compare what a turn has used with the limits: some agents report it only at the end."""
        budget, options = self._budget, self._options
        if budget is None:
            return
        passed = budget.turn_ended(result.usage)
        if result.stop_reason == v1.StopReason.MAX_TURN_REQUESTS and (options.max_turns or options.max_cost):
            from antiphon.runs.budget import OverBudget

            passed = passed or OverBudget(
                "the agent stopped at a limit of this run", hint="allow more with `--max-turns` or `--max-cost`"
            )
        self._problem = self._problem or passed
        if options.max_cost is not None and (unpriced := budget.unpriced):
            named = " and ".join(f"`{each}`" for each in unpriced if each)
            self._warn(
                f"{named or 'the agent'} reports no cost, so `--max-cost` has no effect{' on it' if named else ''}",
                "`--max-tokens` may help",
            )

    async def _forget(self, running: RunningAgent, session_id: str) -> None:
        """Delete the session of an ephemeral run; a warning if the agent cannot."""
        try:
            await running.agent.delete_session(session_id)
        except AcpError as error:
            self._warn(
                f"the session {session_id} is not deleted: {sentence_and_hint(error)[0]}",
                f"{running.agent.name} keeps it",
            )

    async def _show(self, update: v1.Update) -> None:
        if self._person is not None:
            await self._person.undisturbed()
        self._answer.add_update(update)
        self._warnings.add_update(update)
        self._printer.update(update)
        self._count(update)

    def _update_outside_turn(self, update: v1.Update) -> None:
        """Handle an update outside of a turn: history or settings before the prompt, late updates after it."""
        if self._turn is not None:
            self._answer.add_update(update)
            self._warnings.add_update(update)
            self._printer.update(update)
            self._count(update)

    def _warn(self, title: str, hint: str | None = None) -> None:
        self._warnings.add(title, hint)
        self._printer.warn(title, hint)

    def _cancel_run(self, task: "asyncio.Task[object] | None") -> None:
        """Cancel the turn, or the start of the agent."""
        if self._turn is not None:
            self._cancel_turn()
        elif self._opened is None and task is not None:
            task.cancel()
        if not self._options.events and self._stop.why == "cancelled":
            self._screen.note("cancelling … (Ctrl-C again ends the agent at once)", "dim")

    def _cancel_turn(self) -> None:
        turn = self._turn
        if turn is None or self._ending is not None:
            return

        async def cancel() -> None:
            try:
                await turn.cancel()
            except AcpError as error:  # the turn reports it too
                _log.info("the turn was not cancelled cleanly: %s", error)

        self._ending = asyncio.get_running_loop().create_task(cancel(), name="cancel the turn")

    # What the agent asks.

    def _frontend(self) -> Frontend:
        person = self._person if self._options.on_ask is None else None
        return Frontend(
            client=RUN,
            ask=None if person is None else person.decide,
            elicitation=Elicitation(self._fill_in, self._open_page),
            files=self._files,
            terminals=self._terminals,
            refused=self._refused,
            decided=self._decided,
            warn=lambda problem: self._warn(problem.sentence, problem.hint or None),
        )

    async def _fill_in(self, request: v1.FormElicitation) -> Elicited:
        answer: Elicited = v1.Declined() if self._person is None else await self._person.fill_in(request)
        return self._answered(request, answer)

    async def _open_page(self, request: v1.UrlElicitation) -> Elicited:
        answer: Elicited = v1.Declined() if self._person is None else await self._person.visit(request)
        return self._answered(request, answer)

    def _answered(self, request: v1.FormElicitation | v1.UrlElicitation, answer: Elicited) -> Elicited:
        words = (
            "accept" if isinstance(answer, v1.Accepted) else "decline" if isinstance(answer, v1.Declined) else "cancel"
        )
        self._printer.answered(request.message, words, engine_of(request))
        return answer

    def _decided(self, entry: "AuditEntry") -> None:
        allowed = entry.verdict == "allow"
        if entry.source == "cancelled" or (
            allowed and entry.source == "mode" and entry.kind in ("read", "search", "think")
        ):
            return
        failed = self._failed
        if self._options.events or not failed:  # a failure is printed once, as an error
            self._printer.decided(entry, engine_asking())
        if failed:
            self._cancel_turn()

    def _tail_of(self, terminal_id: str) -> str | None:
        """Return the end of what a terminal has written; None if it has written nothing."""
        tail = self._terminals.tail(terminal_id)
        return tail.text or None if tail is not None else None

    def _word_of(self, call_id: str) -> str:
        if call_id in self._refused:
            return "denied"
        return "cancelled" if self._ending is not None else "failed"

    # The end.

    def _finish(self, stopped: v1.PromptResult | None, error: Exception | None) -> int:
        gate = self._running.gate if self._running is not None else None
        if error is None and gate is not None and gate.failed is not None and self._stop.why is None:
            what = gate.failed.subject
            error = AcpError(
                f"`{what}` needs permission, and there is no terminal to ask in", hint=f"{advice_for([gate.failed])}"
            )
        if error is None and stopped is not None and stopped.stop_reason.value == "tool_error":
            error = AcpError("the agent stopped because a tool failed", hint="its last messages show which one")
        error = error or self._problem
        if error is None and self._options.output_file is not None and self._stop.why is None:
            error = self._write_answer()
        failure = self._failure(error) if error is not None and self._stop.why is None else None
        status = self._status(stopped, failure, wrong=error is not None and status_of(error) == MISUSED)
        session = self._opened.session if self._opened is not None else None
        usage = session.transcript.usage if session is not None else None
        tokens = stopped.usage if stopped is not None else None
        result = events.ResultEvent(
            schema_version=events.VERSION,
            exit_code=status,
            stop_reason=str(stopped.stop_reason) if stopped is not None else None,
            text=self._answer.last,
            answers=self._answer.answers,
            failures=failures_in(stopped) if stopped is not None else [],
            agent=self._running.agent.name if self._running is not None else None,
            session_id=session.id if session is not None else None,
            usage=None if usage is None else usage_event(usage),
            tokens=None if tokens is None else tokens_event(tokens),
            output=self._output,
            attempts=self._attempts,
            worktree=self._worktree_report,
            patch=self._patch_report,
            files_changed=self._changes(),
            denials=[
                events.DeniedAction(subject=each.subject, kind=each.action.kind, why=each.why, unasked=each.unattended)
                for each in (gate.denials if gate is not None else ())
            ],
            denied=gate.denied if gate is not None else 0,
            warnings=self._warnings.found,
            seconds=round(time.monotonic() - self._began, 3),
            error=failure,
        )
        result = self._write_junit(result)
        status, failure = result.exit_code, result.error
        _log.info("the run ended with %d (%s)", status, result.stop_reason)
        self._printer.ended(result, usage, tokens)
        if gate is not None and status == DENIED and not self._options.events:
            self._screen.note(denied_line(gate.denials, gate.unattended), "yellow")
        if status == HALF_FAILED and not self._options.events:
            self._note_failures(result.failures)
        if failure is not None:
            self._screen.error(failure.message, failure.hint)
        elif self._stop.why == "timeout":
            took = f"the turn took longer than {shown_time(self._options.timeout or 0)} and was cancelled"
            self._screen.error(took, "give it more time with `--timeout`")
        if not self._options.events:
            self._note_worktree()
        self._screen.finish()
        advice = denied_line(gate.denials, gate.unattended) if gate is not None and status == DENIED else ""
        return self._report(result, advice)

    @staticmethod
    def _failure(error: Exception) -> events.RunFailure:
        _log.error("%s", error)
        return failure_of(error)

    def _note_worktree(self) -> None:
        if (made := self._worktree_report) is not None and made.kept:
            self._screen.note(f"worktree {made.path} on branch {made.branch}", "dim")

    def _write_answer(self) -> AcpError | None:
        text = self._answer.last if self._schema is None else msgspec.json.encode(self._output).decode()
        try:
            write_answer(str(self._options.output_file), text)
        except AcpError as error:
            return error
        return None

    def _write_junit(self, result: events.ResultEvent) -> events.ResultEvent:
        """Write the report, and return the result: with an error if that failed, unless it has another one."""
        if self._options.junit is None:
            return result
        try:
            write_junit(self._options.junit, result)
        except AcpError as error:
            if result.exit_code == DONE:
                return msgspec.structs.replace(result, exit_code=FAILED, error=self._failure(error))
            self._screen.error(error.sentence, error.hint)
        return result

    def _report(self, result: events.ResultEvent, advice: str) -> int:
        """Write what GitHub Actions reads, after everything else, and return the exit status."""
        if self._workflow is None:
            return result.exit_code
        try:
            write_workflow(self._workflow, result, self._cwd, advice)
        except AcpError as error:
            self._screen.error(error.sentence, error.hint)
            return result.exit_code or FAILED
        return result.exit_code

    def _note_failures(self, failures: list[events.EngineFailure]) -> None:
        """Print which engines failed. Their errors have been shown as updates already, except with `--quiet`."""
        names = " and ".join(f"`{each.engine}`" for each in failures)
        if not self._options.quiet:
            self._screen.note(f"{names} failed, the answer is not whole (exit status {HALF_FAILED})", "yellow")
            return
        for each in failures:
            self._screen.error(each.message, each.hint or MORE)

    def _status(self, stopped: v1.PromptResult | None, failure: events.RunFailure | None, *, wrong: bool) -> int:
        if self._stop.why is not None:
            return TIMED_OUT if self._stop.why == "timeout" else CANCELLED
        if failure is not None and failure.kind in _STATUSES:
            return _STATUSES[failure.kind]
        if failure is not None or stopped is None or self._running is None:
            return MISUSED if wrong else FAILED
        denied = self._running.gate.unattended > 0
        return status_of_turn(stopped.stop_reason, denied=denied, half_failed=bool(failures_in(stopped)))

    def _changes(self) -> list[events.ChangedPath]:
        if self._opened is None:
            return []
        changed = changed_files(self._opened.session.transcript, self._begin, self._files.written)
        return [events.ChangedPath(path=path, change=how) for path, how in changed.items()]


def _printer(options: "Options", screen: Screen, tail_of: TailOf, word_of: WordOf) -> Printer:
    if options.events:
        return (JsonPrinter if options.output == "stream-json" else ResultPrinter)(screen.data, word_of)
    if options.quiet or options.output_schema is not None:
        return QuietPrinter(screen, lambda result: answer_of(result, options))
    return TextPrinter(screen, tail_of, word_of)
