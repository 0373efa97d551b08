"""One run: starts the agent, sends the prompt, prints the updates and the result.

However it is stopped (Ctrl-C, a timeout, a reader that goes away), the turn is cancelled first and the agent ended with all it started.
"""

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Final

from antiphon.catalogue.known import DEMO
from antiphon.cli.arguments import Misused, shown_time
from antiphon.cli.logs import log_file
from antiphon.cli.outcome import (
    CANCELLED,
    DENIED,
    FAILED,
    HALF_FAILED,
    MISUSED,
    TIMED_OUT,
    OutputLost,
    is_retryable,
    kind_of,
)
from antiphon.cli.outcome import status_of as status_of_error
from antiphon.cli.run import events
from antiphon.cli.run.command import StopSignal
from antiphon.cli.run.person import Person
from antiphon.cli.run.printers import (
    JsonPrinter,
    Printer,
    QuietPrinter,
    TailOf,
    TextPrinter,
    WordOf,
    tokens_event,
    usage_event,
)
from antiphon.cli.run.result import (
    AnswerText,
    NotedFiles,
    advice_for,
    changed_files,
    denied_line,
    failures_in,
    status_of,
)
from antiphon.cli.run.session import OpenedSession, open_session
from antiphon.cli.terminal import Screen, terminal_of
from antiphon.client.handlers import Elicitation, Elicited
from antiphon.client.launch import Frontend, RunningAgent, launch
from antiphon.config.shapes import RUN
from antiphon.errors import AcpError, Advice, AuthRequired, sentence_and_hint
from antiphon.protocol import v1
from antiphon.tui.terminals import WatchedTerminals

if TYPE_CHECKING:
    from antiphon.cli.arguments import Options
    from antiphon.cli.run.command import RunPrompt
    from antiphon.client.turn import ClientTurn
    from antiphon.store.decisions import AuditEntry

__all__ = ["Runner"]

LINGER: Final = 0.1
"""Seconds that we read on after the turn's response: some agents send the end of their message after it."""

MORE: Final = "`--verbose` shows the log"
"""The hint of an error that has none."""

STATUS_DELAY: Final = 1.0
"""Seconds before we show what we wait for."""

_log = logging.getLogger(__name__)


class Runner:
    """One run of `antiphon run`: starts the agent, sends the prompt, prints updates and the result."""

    def __init__(self, options: "Options", prompt: "RunPrompt", cwd: str, stop: StopSignal) -> None:
        self._options = options
        self._prompt = prompt
        self._cwd = cwd
        self._stop = stop
        self._began = time.monotonic()
        self._screen = Screen()
        self._terminals = WatchedTerminals()
        self._refused: set[str] = set()
        self._printer: Printer = _printer(options, self._screen, self._tail_of, self._word_of)
        terminal = terminal_of(self._screen)
        self._person = None if terminal is None else Person(self._screen, terminal)
        self._files = NotedFiles()
        self._answer = AnswerText()
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
        stopped: v1.PromptResult | None = None
        error: Exception | None = None
        try:
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
            raise
        except Exception as failure:  # a bug of ours: the user still gets a result, without a traceback
            _log.exception("a fault of this program")
            error = AcpError(
                f"{type(failure).__name__}: {failure}", hint=f"this is a fault of antiphon; {log_file()} has more"
            )
        finally:
            self._starting.cancel()
            if timeout is not None:
                timeout.cancel()
            self._screen.status(None)
        return self._finish(stopped, error)

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
        async with session.prompt(blocks) as turn:
            self._turn = turn
            if self._stop.why is not None:  # since the session was opened
                self._cancel_turn()
            async for update in turn:
                await self._show(update)
        result = turn.result
        if self._stop.why is None:
            await asyncio.sleep(LINGER)
        return result

    async def _show(self, update: v1.Update) -> None:
        if self._person is not None:
            await self._person.undisturbed()
        self._answer.add_update(update)
        self._printer.update(update)

    def _update_outside_turn(self, update: v1.Update) -> None:
        """Handle an update outside of a turn: history or settings before the prompt, late updates after it."""
        if self._turn is not None:
            self._answer.add_update(update)
            self._printer.update(update)

    def _cancel_run(self, task: "asyncio.Task[object] | None") -> None:
        """Cancel the turn, or the start of the agent."""
        if self._turn is not None:
            self._cancel_turn()
        elif self._opened is None and task is not None:
            task.cancel()
        if self._options.json is False and self._stop.why == "cancelled":
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
            warn=lambda problem: self._printer.warn(*_parts(problem)),
        )

    async def _fill_in(self, request: v1.FormElicitation) -> Elicited:
        answer: Elicited = v1.Declined() if self._person is None else await self._person.fill_in(request)
        return self._answered(request.message, answer)

    async def _open_page(self, request: v1.UrlElicitation) -> Elicited:
        answer: Elicited = v1.Declined() if self._person is None else await self._person.visit(request)
        return self._answered(request.message, answer)

    def _answered(self, message: str, answer: Elicited) -> Elicited:
        words = (
            "accept" if isinstance(answer, v1.Accepted) else "decline" if isinstance(answer, v1.Declined) else "cancel"
        )
        self._printer.answered(message, words)
        return answer

    def _decided(self, entry: "AuditEntry") -> None:
        allowed = entry.verdict == "allow"
        if entry.source == "cancelled" or (
            allowed and entry.source == "mode" and entry.kind in ("read", "search", "think")
        ):
            return
        failed = self._running is not None and self._running.gate.failed is not None
        if self._options.json or not failed:  # a failure is printed once, as an error
            self._printer.decided(entry)
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
        failure = _failure(error) if self._stop.why is None else None
        status = self._status(stopped, failure, wrong=error is not None and status_of_error(error) == MISUSED)
        session = self._opened.session if self._opened is not None else None
        usage = session.transcript.usage if session is not None else None
        tokens = stopped.usage if stopped is not None else None
        result = events.ResultEvent(
            exit_code=status,
            stop_reason=str(stopped.stop_reason) if stopped is not None else None,
            text=self._answer.last,
            answers=self._answer.answers,
            failures=failures_in(stopped) if stopped is not None else [],
            agent=self._running.agent.name if self._running is not None else None,
            session_id=session.id if session is not None else None,
            usage=None if usage is None else usage_event(usage),
            tokens=None if tokens is None else tokens_event(tokens),
            files_changed=self._changes(),
            denials=[
                events.DeniedAction(subject=each.subject, kind=each.action.kind, why=each.why, unasked=each.unattended)
                for each in (gate.denials if gate is not None else ())
            ],
            denied=gate.denied if gate is not None else 0,
            seconds=round(time.monotonic() - self._began, 3),
            error=failure,
        )
        _log.info("the run ended with %d (%s)", status, result.stop_reason)
        self._printer.ended(result, usage, tokens)
        if gate is not None and status == DENIED and not self._options.json:
            self._screen.note(denied_line(gate.denials, gate.unattended), "yellow")
        if status == HALF_FAILED and not self._options.json:
            self._note_failures(result.failures)
        if failure is not None:
            self._screen.error(failure.message, failure.hint)
        elif self._stop.why == "timeout":
            took = f"the turn took longer than {shown_time(self._options.timeout or 0)} and was cancelled"
            self._screen.error(took, "give it more time with `--timeout`")
        self._screen.finish()
        return status

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
        if failure is not None or stopped is None or self._running is None:
            return MISUSED if wrong else FAILED
        denied = self._running.gate.unattended > 0
        return status_of(stopped.stop_reason, denied=denied, half_failed=bool(failures_in(stopped)))

    def _changes(self) -> list[events.ChangedPath]:
        if self._opened is None:
            return []
        changed = changed_files(self._opened.session.transcript, self._begin, self._files.written)
        return [events.ChangedPath(path=path, change=how) for path, how in changed.items()]


def _printer(options: "Options", screen: Screen, tail_of: TailOf, word_of: WordOf) -> Printer:
    if options.json:
        return JsonPrinter(screen.data, word_of)
    return QuietPrinter(screen) if options.quiet else TextPrinter(screen, tail_of, word_of)


def _failure(error: Exception | None) -> events.RunFailure | None:
    if error is None:
        return None
    _log.error("%s", error)
    if isinstance(error, AuthRequired):
        sentence, hint = f"the agent wants you to sign in: {error.reason}", _login_hint(error)
    else:
        sentence, found = sentence_and_hint(error)
        hint = found or MORE
    return events.RunFailure(kind=kind_of(error), message=sentence, hint=hint, retryable=is_retryable(error))


def _login_hint(error: AuthRequired) -> str:
    if isinstance(error.data, dict) and isinstance(found := error.data.get("hint"), str):
        return found
    ways = []
    for method in error.methods:
        name, description = getattr(method, "name", ""), getattr(method, "description", None)
        ways.append(f"`{getattr(method, 'id', method)}` ({name}{f': {description}' if description else ''})")
    if not ways:
        return "it offers no way to sign in here: see its documentation."
    return f"it offers {'; '.join(ways)}. Sign in with its own program, or in `antiphon chat`, and run this again."


def _parts(problem: Advice) -> tuple[str, str | None]:
    return problem.sentence, problem.hint or None
