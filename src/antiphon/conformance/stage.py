"""Where scenarios for agents play: a client that says what it is told, a workspace, and the verdicts.

A scenario asks, hears, and calls `holds` for each requirement that it shows. It may stop early by raising `NotOffered`, `Unseen` or
`Blocked`; what it has not shown by then gets that for a verdict.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from antiphon.conformance.editor import EVERYTHING, Editor
from antiphon.conformance.prompts import Prompts
from antiphon.conformance.verdicts import Blocked, NoAnswer, NotOffered, Status, Unseen, Verdict
from antiphon.conformance.wire import Closed, Wire
from antiphon.traffic.entries import Entry

__all__ = ["Answer", "Pending", "Stage", "Wishes"]

LIMIT: Final = 30.0
"""Seconds that an answer may take, unless told otherwise: a model may think."""

PATIENCE: Final = 0.25
"""Seconds of silence after which nothing more is taken to come."""

AUTH_REQUIRED: Final = -32000


@dataclass(frozen=True, slots=True)
class Wishes:
    """What whoever checks has said: the words for the agent, how to sign in, how long to wait."""

    prompts: Prompts = field(default_factory=Prompts)
    auth: str | None = None
    limit: float = LIMIT
    patience: float = PATIENCE


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its question."""

    asked: Entry
    entry: Entry

    @property
    def result(self) -> Any:
        """What was answered; None where it is an error."""
        return self.entry.msg.get("result")

    @property
    def error(self) -> dict[str, Any] | None:
        found = self.entry.msg.get("error")
        return found if isinstance(found, dict) else None

    @property
    def code(self) -> object:
        return self.error.get("code") if self.error else None

    def get(self, *path: str) -> Any:
        """Something inside the result, None where it is not there."""
        found = self.result
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found


class Pending:
    """A question that was asked and not waited for."""

    def __init__(self, stage: "Speaking", asked: Entry) -> None:
        self._stage = stage
        self.asked = asked

    def _is_answer(self, entry: Entry) -> bool:
        return entry.is_answer and entry.msg.get("id") == self.asked.msg["id"]

    def peek(self) -> Answer | None:
        """Its answer, if it has come."""
        found = next(
            (one for one in self._stage.wire.heard if one.number > self.asked.number and self._is_answer(one)), None
        )
        return None if found is None else Answer(self.asked, found)

    async def answer(self, limit: float | None = None) -> Answer:
        """Wait for its answer.

        Raises:
            NoAnswer: it did not come in time, or the agent left.
        """
        seconds = self._stage.wishes.limit if limit is None else limit
        try:
            entry = await self._stage.wire.hear(self._is_answer, after=self.asked.number, limit=seconds)
        except TimeoutError:
            raise NoAnswer(self.asked, f"nothing came within {seconds:g} s") from None
        except Closed:
            raise NoAnswer(self.asked, f"the agent had left{self._stage.wire.how_it_left}") from None
        return Answer(self.asked, entry)


class Speaking:
    """What a client says to an agent: questions, news, and the silence after them."""

    def __init__(self, wire: Wire, wishes: Wishes) -> None:
        self.wire = wire
        self.wishes = wishes

    async def begin(self, method: str, params: object = None, *, id: object = None, **more: object) -> Pending:
        """Ask, and do not wait. `more` goes into the message beside its params."""
        message = {"jsonrpc": "2.0", "id": self.wire.new_id() if id is None else id, "method": method, **more}
        if params is not None:
            message["params"] = params
        return Pending(self, await self.wire.say(message))

    async def ask(self, method: str, params: object = None, *, id: object = None, limit: float | None = None) -> Answer:
        """Ask, and wait for the answer."""
        return await (await self.begin(method, params, id=id)).answer(limit)

    async def tell(self, method: str, params: object) -> Entry:
        """A notification."""
        return await self.wire.say({"jsonrpc": "2.0", "method": method, "params": params})

    async def settle(self) -> None:
        """Until all that was on its way has come: an answer to a harmless question, and then silence."""
        await self.ask("_antiphon/fence", {})
        await self.wire.silence(self.wishes.patience)

    async def cancel(self, session: str) -> Entry:
        """`session/cancel`."""
        return await self.tell("session/cancel", {"sessionId": session})


class Stage(Speaking):
    """One scenario with one agent. The wire may be shared with scenarios before and after it; the verdicts are its own."""

    def __init__(self, wire: Wire, editor: Editor, cwd: Path, wishes: Wishes) -> None:
        super().__init__(wire, wishes)
        self.editor = editor
        self.cwd = cwd
        self.verdicts: dict[str, Verdict] = {}
        self.introduced: Answer | None = None
        """The answer to `initialize`."""
        self.another: Callable[[], Awaitable[Stage]] | None = None
        """Starts one more agent beside this one; only a scenario that has an agent of its own may."""

    # Verdicts.

    def holds(self, requirement: str, held: bool, otherwise: str, *evidence: Entry | Answer | None) -> bool:
        """Say whether a requirement held; `otherwise` says what was wrong. A failure is not taken back by a later success."""
        entries = tuple(
            entry
            for one in evidence
            if one is not None
            for entry in ((one.asked, one.entry) if isinstance(one, Answer) else (one,))
        )
        before = self.verdicts.get(requirement)
        if before is None or before.status is not Status.FAILED:
            status = Status.PASSED if held else Status.FAILED
            self.verdicts[requirement] = Verdict(status, "" if held else otherwise, entries)
        return held

    # Opening.

    async def introduce(self, version: int = 1, capabilities: Mapping[str, Any] | None = None) -> Answer:
        """`initialize`."""
        params = {
            "protocolVersion": version,
            "clientCapabilities": EVERYTHING if capabilities is None else capabilities,
            "clientInfo": {"name": "antiphon-check", "title": "Antiphon check", "version": "1"},
        }
        self.introduced = await self.ask("initialize", params)
        return self.introduced

    async def new_session(self, **params: object) -> Answer:
        """`session/new`, signing in first if that is asked for and known how."""
        asked = {"cwd": str(self.cwd), "mcpServers": [], **params}
        answer = await self.ask("session/new", asked)
        if answer.code == AUTH_REQUIRED and self.wishes.auth is not None:
            await self.ask("authenticate", {"methodId": self.wishes.auth})
            answer = await self.ask("session/new", asked)
        return answer

    async def session(self, **params: object) -> str:
        """The id of a new session.

        Raises:
            Blocked: there is none to be had.
        """
        answer = await self.new_session(**params)
        found = answer.get("sessionId")
        if answer.code == AUTH_REQUIRED:
            raise Blocked("`session/new` wants somebody to sign in: `--auth METHOD` names one of the agent's methods")
        if not isinstance(found, str):
            raise Blocked("`session/new` gave no session")
        return found

    def offers(self, *path: str) -> bool:
        """Whether the agent says that it can do something: `loadSession`, or `sessionCapabilities`, `list`."""
        found = self.introduced.get("agentCapabilities", *path) if self.introduced else None
        return found is not None and found is not False

    def need(self, *path: str) -> None:
        """Go on only if the agent says that it can do something.

        Raises:
            NotOffered: it does not.
        """
        if not self.offers(*path):
            raise NotOffered(f"the agent does not offer `{'.'.join(path)}`")

    # Turns.

    def words(self, purpose: str, **places: object) -> str:
        """What to say to the agent for a purpose.

        Raises:
            Unseen: there is nothing to say for it.
        """
        text = self.wishes.prompts.text(purpose, cwd=self.cwd, **places)
        if not text:
            raise Unseen(f"there is no prompt for `{purpose}`: a prompt file can name one")
        return text

    async def prompt(self, session: str, text: str, *blocks: Mapping[str, Any]) -> Pending:
        """Start a turn."""
        said = [{"type": "text", "text": text}, *blocks]
        return await self.begin("session/prompt", {"sessionId": session, "prompt": said})

    async def turn(self, session: str, purpose: str = "say", **places: object) -> Answer:
        """A whole turn."""
        return await (await self.prompt(session, self.words(purpose, **places))).answer()

    def updates(self, session: str, *, after: int = 0, before: int | None = None) -> list[Entry]:
        """The updates of a session between two lines of the trace."""
        return [
            entry
            for entry in self.wire.heard
            if entry.method == "session/update"
            and entry.params.get("sessionId") == session
            and after < entry.number
            and (before is None or entry.number < before)
        ]

    async def first_sign(self, session: str, pending: Pending) -> Entry:
        """The first update or question of a turn, which shows that it runs.

        Raises:
            Unseen: it ended without one.
        """

        def is_sign(entry: Entry) -> bool:
            return entry.params.get("sessionId") == session or (
                entry.is_answer and entry.msg.get("id") == pending.asked.msg["id"]
            )

        try:
            found = await self.wire.hear(is_sign, after=pending.asked.number, limit=self.wishes.limit)
        except (TimeoutError, Closed):
            raise NoAnswer(pending.asked, "no sign of it came") from None
        if found.is_answer:
            raise Unseen("the turn ended before it said anything, so there was nothing to interrupt")
        return found

    async def asked_for(self, method: str, pending: Pending) -> Entry:
        """The agent's question of that kind during a turn; hold the method back first.

        Raises:
            Unseen: the turn ended without one, or goes on and on.
        """

        def is_it(entry: Entry) -> bool:
            return entry.method == method or (entry.is_answer and entry.msg.get("id") == pending.asked.msg["id"])

        try:
            found = await self.wire.hear(is_it, after=pending.asked.number, limit=self.wishes.limit)
        except (TimeoutError, Closed):
            if not self.wire.closed and self.updates(pending.asked.params["sessionId"], after=pending.asked.number):
                raise Unseen(
                    f"the agent works on without `{method}`: a prompt file can name words that make it"
                ) from None
            raise NoAnswer(pending.asked, f"neither `{method}` nor an answer came") from None
        if found.is_answer:
            raise Unseen(f"the agent did not use `{method}`: a prompt file can name words that make it")
        return found
