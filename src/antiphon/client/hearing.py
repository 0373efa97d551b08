"""What a session hears, in the order of the wire: in its turns, between them, and while it is opened again.

The updates of a turn wait until its consumer reads them. What the agent tells after the turn's answer waits behind them, so that
settings and transcript never see the later before the earlier.
"""

import logging
from collections.abc import Callable
from copy import copy
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from antiphon.client import settings
from antiphon.errors import LocalProtocolError
from antiphon.protocol import v1
from antiphon.transcript.entries import CallEntry

if TYPE_CHECKING:
    from antiphon.client.run import Run
    from antiphon.protocol.v1.updates import Update
    from antiphon.transcript.transcript import Transcript

__all__ = ["Hearing", "OnUpdate"]

_log = logging.getLogger(__name__)

OnUpdate: TypeAlias = Callable[["Update"], None]
"""Takes the updates that come outside of turns."""

LATE_WEIGHT: Final = 1024
"""Bytes that an update counts for while it waits behind a turn that is over and not read. Enough of them slow the wire."""


class Listener(settings.Followed, Protocol):
    """Who keeps up: a session."""

    id: str
    transcript: "Transcript"


class Hearing:
    """The ears of one session."""

    def __init__(self, session: Listener, on_update: OnUpdate | None) -> None:
        if iscoroutinefunction(on_update):
            raise LocalProtocolError("`on_update` must be a plain `def`: to wait, iterate over a turn")
        self.runs: list[Run] = []
        """The turns that are not over, the oldest first."""
        self.replaying = False
        """Whether the agent tells again what we know: the session is opened anew by `session/load`."""
        self._session = session
        self._on_update = on_update

    @property
    def being_cancelled(self) -> bool:
        """Whether a turn has been called off that the agent has not ended yet."""
        return any(run.being_cancelled for run in self.runs)

    def worked(self) -> None:
        """The agent asks for something: whatever prompt it has is being worked on, and must not be sent again."""
        for run in self.runs:
            run.begun = run.begun or run.sent

    def heard(self, update: "Update") -> None:
        """An update that no turn was waiting for."""
        if self.replaying:
            settings.follow(self._session, update)
            return
        for run in reversed(self.runs):
            if run.sent:  # answered, or the update would have gone there; but not read to its end
                run.keep_late(update, LATE_WEIGHT)
                return
        self._deliver(update)

    def follow(self, update: "Update") -> None:
        """Keep up with an update."""
        self._session.transcript.apply(update)
        settings.follow(self._session, update)

    def asked(self, patch: v1.ToolCallPatch) -> v1.ToolCallPatch:
        """Permission is asked for a call: note it, in its place, and return it with all that we know about it.

        Many agents name only the call that they announced just before, and whoever decides wants to know what it is.
        """
        transcript = self._session.transcript
        run = next((run for run in self.runs if run.sent and not run.over), None)
        waiting = run.waiting if run is not None else []
        call = copy(transcript.call(patch.tool_call_id))
        if call is None or call.finished:  # some agents count their calls anew in each turn: this is another one
            call = CallEntry(0, patch.tool_call_id)
        for update in waiting:
            if isinstance(update, v1.ToolCall) and update.tool_call_id == call.id:
                call.announce(update)
            elif isinstance(update, v1.ToolCallUpdate) and update.tool_call_id == call.id:
                call.patch(update)
        if run is not None and waiting:
            run.ask_later(patch, len(waiting))
        else:
            transcript.asked(patch)
        return call.known(patch)

    def tell(self, notice: v1.NoticeUpdate) -> None:
        """Say something of our own: in the turn, or else to `on_update`."""
        _log.warning("session `%s`: %s: %s", self._session.id, notice.title, notice.description)
        if self.runs:
            self._session.transcript.apply(notice)
            self.runs[0].notices.append(notice)
        else:
            self._deliver(notice)

    def over(self, run: "Run") -> None:
        """A turn has ended and is read."""
        if run in self.runs:
            self.runs.remove(run)
        self._session.transcript.turn_ended()
        for update in run.take_late():
            self._deliver(update)

    def _deliver(self, update: "Update") -> None:
        self.follow(update)
        if self._on_update is not None:
            try:
                self._on_update(update)
            except Exception:  # somebody's fault, but not a reason to hear no more
                _log.exception("`on_update` failed")
