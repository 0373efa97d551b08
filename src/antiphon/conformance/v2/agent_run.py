"""One scenario with one agent that speaks version 2: prompts are accepted, and states say when the work begins and ends."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Final

from antiphon.conformance.agent_run import AUTH_REQUIRED, AgentRun
from antiphon.conformance.requirements import Blocked, NoResponse, NotSeen, TooLong
from antiphon.conformance.wire import PeerClosed, PeerResponse, PendingRequest
from antiphon.traffic.entries import Entry, JsonObject, as_object, as_text

__all__ = ["CAPABILITIES", "INFO", "AgentRunV2", "SeenWork"]

INFO: Final[JsonObject] = {"name": "antiphon-check", "title": "Antiphon check", "version": "1"}

CAPABILITIES: Final[JsonObject] = {"auth": {"terminal": {}}, "elicitation": {"form": {}, "url": {}}}
"""All that a client of version 2 can offer."""


@dataclass(frozen=True, slots=True)
class SeenWork:
    """A prompt, its answer and the `idle` that ended the work on it."""

    answer: PeerResponse
    idle: Entry

    @property
    def message_id(self) -> str | None:
        return as_text(self.answer.get("messageId"))

    @property
    def reason(self) -> object:
        return as_object(self.idle.params.get("update")).get("stopReason")


class AgentRunV2(AgentRun):
    """One scenario with one agent."""

    version: ClassVar[int] = 2
    closes: ClassVar[tuple[str, ...]] = ("capabilities", "session")

    async def initialize(
        self, version: int = 2, capabilities: Mapping[str, object] | None = None, **more: object
    ) -> PeerResponse:
        """Send `initialize`."""
        params = {
            "protocolVersion": version,
            "info": INFO,
            "capabilities": CAPABILITIES if capabilities is None else capabilities,
            **more,
        }
        self.initialized = await self.request("initialize", params, limit=self.options.start)
        return self.initialized

    async def start(self) -> None:
        """Send `initialize`, and go on only if the agent speaks version 2.

        Raises:
            Blocked: it does not.
        """
        response = await self.initialize()
        if response.get("protocolVersion") != self.version:
            raise Blocked("the agent does not speak version 2")

    async def new_session(self, **params: object) -> PeerResponse:
        asked = {"cwd": str(self.cwd), **params}
        response = await self.request("session/new", asked)
        if response.code == AUTH_REQUIRED and self.options.auth is not None:
            await self.request("auth/login", {"methodId": self.options.auth})
            response = await self.request("session/new", asked)
        if response.code == AUTH_REQUIRED:
            raise Blocked("`session/new` requires a login: `--auth METHOD` names one of the agent's methods")
        return response

    # States.

    def states(self, session: str, *, after: int = 0, before: int | None = None) -> list[tuple[str, Entry]]:
        """The states that the session has reported between two lines of the trace."""
        found = self.updates(session, after=after, before=before)
        updates = [(as_object(one.params.get("update")), one) for one in found]
        return [(str(update.get("state")), one) for update, one in updates if _is_state(update)]

    async def state(self, session: str, wanted: Callable[[str], bool], *, after: int) -> Entry | None:
        """The first report of a state that is wanted; None where none comes in time.

        Raises:
            PeerClosed: the agent left.
        """

        def is_it(entry: Entry) -> bool:
            update = as_object(entry.params.get("update")) if entry.method == "session/update" else {}
            return entry.params.get("sessionId") == session and _is_state(update) and wanted(str(update.get("state")))

        with suppress(TimeoutError):
            return await self.wire.wait_for(is_it, after=after, limit=self.options.limit)
        return None

    async def idle(self, session: str, prompt: Entry, requirement: str = "turn.idle") -> Entry:
        """The `idle` that ends the work on a prompt. Work may take long, but it has to end when it is cancelled.

        Raises:
            TooLong: it took too long, and was cancelled.
            Blocked: it never came.
        """
        try:
            found = await self.state(session, lambda state: state == "idle", after=prompt.number)
            if found is not None:
                return found
            await self.fence()
            cancel = await self.cancel(session)
            if await self.state(session, lambda state: state == "idle", after=cancel.number) is not None:
                raise TooLong(f"the work took over {self.options.limit:g} s: `--timeout` gives it longer")
        except PeerClosed:
            raise NoResponse(prompt, f"the peer had left{self.wire.how_it_left}", left=True) from None
        self.holds(requirement, False, "no `idle` came, not even after `session/cancel`", prompt)
        raise Blocked("the work did not end")

    async def accepted(self, pending: PendingRequest) -> PeerResponse:
        """The answer to a prompt, which has to be inserted.

        Raises:
            Blocked: it was refused.
        """
        response = await pending.response()
        if response.error is not None:
            raise Blocked("`session/prompt` was answered with an error")
        return response

    async def work(self, session: str, purpose: str = "say", **places: object) -> SeenWork:
        """A prompt, and all the work on it."""
        pending = await self.prompt(session, self.words(purpose, **places))
        response = await self.accepted(pending)
        return SeenWork(response, await self.idle(session, pending.request))

    async def busy(self, session: str) -> PeerResponse:
        """Work that goes on until it is cancelled; the answer to its prompt.

        Raises:
            NotSeen: the agent does nothing that takes so long.
        """
        pending = await self.prompt(session, self.words("long"))
        response = await self.accepted(pending)
        begun = pending.request.number
        try:
            working = await self.state(session, lambda state: state != "idle", after=begun)
        except PeerClosed:
            raise pending.lost() from None
        await self.settle_briefly()
        if working is None or self.states(session, after=begun)[-1][0] == "idle":
            raise NotSeen(
                "the work ended by itself, so there was nothing to interrupt: a prompt file can name more of it"
            )
        return response

    async def asked(self, session: str, method: str, purpose: str, **places: object) -> Entry:
        """The agent's request of that kind in the work on a prompt; it is left to the scenario to answer it.

        Raises:
            NotSeen: the work ended without one.
        """
        self.client.held.add(method)
        pending = await self.prompt(session, self.words(purpose, **places))

        def is_it(entry: Entry) -> bool:
            update = as_object(entry.params.get("update")) if entry.method == "session/update" else {}
            ends = _is_state(update) and update.get("state") == "idle"
            refused = entry.is_response and entry.msg.get("id") == pending.request.msg["id"] and "error" in entry.msg
            return refused or (entry.params.get("sessionId") == session and (entry.method == method or ends))

        try:
            found = await self.wire.wait_for(is_it, after=pending.request.number, limit=self.options.limit)
        except TimeoutError:
            await self.cancel(session)
            raise NotSeen(f"the agent works on without `{method}`: a prompt file can name words that make it") from None
        except PeerClosed:
            raise pending.lost() from None
        finally:
            self.client.held.discard(method)
        if found.method != method:
            raise NotSeen(f"the agent did not use `{method}`: a prompt file can name words that make it")
        return found

    async def settle_briefly(self) -> None:
        """Until all that was sent has been read. Work that talks has no silence to wait for."""
        await self.fence()

    def messages(self, session: str, kind: str, *, after: int = 0, before: int | None = None) -> list[str]:
        """The ids of the messages of a kind, each once: `user`, `agent`."""
        names = (f"{kind}_message", f"{kind}_message_chunk")
        found = [as_object(one.params.get("update")) for one in self.updates(session, after=after, before=before)]
        return list(
            dict.fromkeys(
                str(one["messageId"]) for one in found if one.get("sessionUpdate") in names and one.get("messageId")
            )
        )


def _is_state(update: JsonObject) -> bool:
    return update.get("sessionUpdate") == "state_update"
