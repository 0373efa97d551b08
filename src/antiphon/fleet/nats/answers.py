"""What this process has asked over a connection to NATS and waits for: all answers come to one subscription.

Each question has a random word in the subject of its answer. One who has answered a question knows nothing of the next: it could send an
answer before the one that is asked, such as the broker itself.
"""

import asyncio
import logging
import re
import secrets
from collections.abc import Mapping
from typing import Final

from antiphon.fleet.broker import BrokerAway, NoResponder
from antiphon.fleet.errors import BrokerRefused
from antiphon.fleet.nats.server_link import ServerLink
from antiphon.fleet.nats.wire import WireHeaders, WireMessage, encode_publish, read_headers

__all__ = ["ANSWER_LIMIT", "BrokerAnswers"]

ANSWER_LIMIT: Final = 5.0
"""Seconds for an answer of the broker itself: longer than its servers take to choose another leader, most of the time."""

LOOK_INTERVAL: Final = 0.25
"""Seconds between two looks for questions that have waited too long: a timer for each of thousands in a second costs more than all the rest."""

REFUSED: Final = 20
"""Errors about what the server did not permit that are kept: another process may have chosen the subject that an answer was to go to."""

_log = logging.getLogger(__name__)


class _Question:
    """A question that waits for its answer, or for several up to one with a status."""

    __slots__ = ("answers", "deadline", "future", "number", "subject", "timer", "unanswered")

    def __init__(
        self,
        future: "asyncio.Future[list[WireMessage]]",
        subject: str,
        deadline: float,
        unanswered: type[BrokerAway],
        several: bool,
    ) -> None:
        self.future, self.subject, self.deadline, self.unanswered = future, subject, deadline, unanswered
        self.number = 0
        self.timer: asyncio.TimerHandle | None = None
        self.answers: list[WireMessage] | None = [] if several else None

    def stop_timer(self) -> None:
        """Wait for the next answer only as long as for any other."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def fail(self, error: Exception) -> None:
        """End the wait with an error."""
        if not self.future.done():
            self.future.set_exception(error)


class BrokerAnswers:
    """The questions of one connection."""

    def __init__(self, link: ServerLink, inbox: str) -> None:
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._inbox = f"{inbox}.{secrets.token_hex(8)}."
        self._waiting: dict[str, _Question] = {}
        self._look: asyncio.TimerHandle | None = None
        self.refused: set[str] = set()
        """Errors of the server about subscriptions and messages that it did not permit and that nothing waits for."""
        link.subscribe(f"{self._inbox}*", self._take)
        link.on_lost = self._lost
        link.on_refused = self._refuse

    async def ask(
        self,
        subject: str,
        data: bytes,
        limit: float = ANSWER_LIMIT,
        *,
        headers: Mapping[str, str] | None = None,
        unanswered: type[BrokerAway] = BrokerAway,
    ) -> WireMessage:
        """Send a message and return the answer. `unanswered` is the error if it may have arrived and no answer comes.

        Raises:
            NoResponder: nothing takes it.
            BrokerRefused: this process may not send it.
            BrokerAway: it was not sent.
        """
        message = (await self._wait(subject, data, limit, headers, unanswered, several=False))[0]
        if message.head and not message.data and read_headers(message.head).status == 503:
            raise NoResponder(f"no process takes requests for {subject}")
        return message

    async def ask_all(self, subject: str, data: bytes, limit: float) -> tuple[list[WireMessage], WireHeaders]:
        """Send a message and return all answers up to one with a status, and that. `limit` is how long the first of them may take.

        Raises:
            NoResponder: nothing takes it.
            BrokerRefused: this process may not send it.
            BrokerAway: it was not sent, or the answers end in the middle.
        """
        messages = await self._wait(subject, data, limit, None, BrokerAway, several=True)
        end = read_headers(messages.pop().head)
        if end.status == 503:
            raise NoResponder(f"no process takes requests for {subject}")
        return messages, end

    def close(self) -> None:
        """End all waits."""
        if self._look is not None:
            self._look.cancel()
        self._fail_all(0)

    async def _wait(
        self,
        subject: str,
        data: bytes,
        limit: float,
        headers: Mapping[str, str] | None,
        unanswered: type[BrokerAway],
        *,
        several: bool,
    ) -> list[WireMessage]:
        key = secrets.token_hex(8)
        future: asyncio.Future[list[WireMessage]] = self._loop.create_future()
        question = _Question(future, subject, self._loop.time() + limit, unanswered, several)
        question.number = self._link.send(encode_publish(subject, data, self._inbox + key, headers))
        self._waiting[key] = question
        if limit != ANSWER_LIMIT:
            question.timer = self._loop.call_later(limit, self._late, question)
        if self._look is None:
            self._look = self._loop.call_later(LOOK_INTERVAL, self._find_late)
        try:
            return await future
        finally:
            self._waiting.pop(key, None)
            question.stop_timer()

    def _take(self, message: WireMessage) -> None:
        question = self._waiting.get(message.subject[len(self._inbox) :])
        if question is None or question.future.done():
            return
        if question.answers is None:
            question.future.set_result([message])
            return
        question.stop_timer()
        question.answers.append(message)
        question.deadline = self._loop.time() + ANSWER_LIMIT
        if message.head.startswith(b"NATS/1.0 "):
            question.future.set_result(question.answers)

    def _find_late(self) -> None:
        self._look = None
        now = self._loop.time()
        for question in list(self._waiting.values()):
            if question.deadline <= now:
                self._late(question)
        if self._waiting:
            self._look = self._loop.call_later(LOOK_INTERVAL, self._find_late)

    def _late(self, question: _Question) -> None:
        question.fail(
            question.unanswered(
                f"no answer came in time for {question.subject}",
                hint="the log of the broker may say why; after a full disk nats-server has to be restarted",
            )
        )

    def _lost(self, written: int) -> None:
        self._fail_all(written)

    def _fail_all(self, written: int) -> None:
        problem = "the connection to the broker was lost"
        for question in self._waiting.values():
            error = question.unanswered if question.number <= written else BrokerAway
            question.fail(error(problem, hint="it is tried again for ever"))

    def _refuse(self, text: str) -> None:
        found = re.search(r'to "([^"]*)"', text)
        subject = found[1] if found else ""
        error = BrokerRefused(
            f"the broker does not permit this: {text}",
            hint="`antiphon fleet credentials` prints the permissions of each role",
        )
        asked = [question for question in self._waiting.values() if question.subject == subject]
        for question in asked:
            question.fail(error)
        if not asked and text not in self.refused:
            if len(self.refused) < REFUSED:
                self.refused.add(text)
            _log.warning("the broker does not permit this: %s", text)
