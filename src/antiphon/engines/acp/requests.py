"""Requests of an agent in one session: forwarded to the client, and done on this machine where the client cannot.

Rule 1: a request keeps its order: updates before it are forwarded first.
Rule 2: on this machine files are read and written, and commands started, in the session's directories, and only after `session.host.admit`.
Rule 3: a terminal belongs to the side that made it, and is released whatever happens to the agent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from msgspec import UNSET, structs

from antiphon.aio import background
from antiphon.client.files import Files
from antiphon.client.terminals import Terminals
from antiphon.engines.acp.errors import forwarded
from antiphon.errors import AcpError, Code, ConnectionClosed, RequestError, RequestRefused, RequestTimeout
from antiphon.protocol import v1
from antiphon.protocol.timeouts import APPROVAL_TIMEOUT, NO_TIMEOUT
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.protocol.methods import Call
    from antiphon.protocol.timeouts import Timeout

__all__ = ["AgentRequests", "AnyCall", "ClientRequest"]

P = TypeVar("P")
R = TypeVar("R")

AnyCall: TypeAlias = "Call[Any, Any]"
"""A method, whatever its parameters and result are."""

TerminalRequest: TypeAlias = v1.TerminalOutput | v1.WaitForExit | v1.KillTerminal | v1.ReleaseTerminal
ClientRequest: TypeAlias = (
    v1.RequestPermission
    | v1.FormElicitation
    | v1.UrlElicitation
    | v1.ReadTextFile
    | v1.WriteTextFile
    | v1.CreateTerminal
    | TerminalRequest
)
"""The parameters of a request that agents send to clients."""

_CANCELLED: Final = v1.PermissionResult(v1.Cancelled())


class AgentRequests:
    """Handles the requests of the agent in one session."""

    def __init__(self, session: "AgentSession", before_release: Callable[[str, str], Awaitable[None]]) -> None:
        self.known = False
        """Whether the client knows the session. Agents read their instructions before it does."""
        self._session = session
        self._before_release = before_release
        self._files = Files(write=True)
        self._terminals = Terminals()
        self._local: set[str] = set()
        """Terminals on this machine, by their ids."""
        self._at_client: set[str] = set()
        """Terminals of the client that the agent has not released."""
        self._questions: set[asyncio.Task[object]] = set()
        self._tasks: set[asyncio.Task[object]] = set()

    def is_local(self, terminal_id: str) -> bool:
        """Whether a terminal is one of this machine, which the client cannot show."""
        return terminal_id in self._local

    async def answer(self, call: AnyCall, params: ClientRequest) -> object:
        """Return the result.

        Raises:
            RequestError: the request is refused.
        """
        params = structs.replace(params, session_id=self._session.id)
        client = self._session.client
        match params:
            case v1.RequestPermission():
                return await self._question(call, params, _CANCELLED)
            case v1.FormElicitation():
                return await self._question(call, params, v1.Dismissed()) if client.shows_forms else v1.Declined()
            case v1.UrlElicitation():
                return await self._question(call, params, v1.Dismissed()) if client.opens_pages else v1.Declined()
            case v1.ReadTextFile() if not (self.known and client.reads_files):
                return await self._do_locally(call, params, self._files.read(self._roots, params))
            case v1.WriteTextFile() if not (self.known and client.writes_files):
                return await self._do_locally(call, params, self._files.write(self._roots, params))
            case v1.CreateTerminal():
                return await self._create(params)
            case v1.ReadTextFile() | v1.WriteTextFile():
                return await self.ask(call, params)
            case _:
                return await self._at_terminal(call, params)

    async def ask(self, call: "Call[P, R]", params: P, timeout: "Timeout" = UNSET) -> R:
        """Send a request to the client.

        Raises:
            RequestError: it refuses, does not respond in time, or is gone.
        """
        try:
            return await self._session.request(call, params, timeout=timeout)
        except RequestRefused as error:
            raise forwarded(error) from error
        except RequestTimeout as error:
            raise RequestError(Code.REQUEST_TIMEOUT, "Request timed out", str(error)) from error
        except ConnectionClosed as error:
            raise RequestError(Code.INTERNAL_ERROR, "Internal error", "the client is gone") from error

    @property
    def _roots(self) -> list[str]:
        return [self._session.cwd, *self._session.directories]

    async def _do_locally(self, call: "Call[P, R]", params: P, work: "Coroutine[object, object, R]") -> R:
        try:
            await self._session.host.admit(call, params)
        except BaseException:
            work.close()
            raise
        return await work

    # Questions to the user.

    async def _question(self, call: "Call[P, R]", params: P, cancelled: R) -> R:
        question = background(self.ask(call, params), self._tasks)
        self._questions.add(question)
        question.add_done_callback(self._questions.discard)
        try:
            await asyncio.wait([question])
        except asyncio.CancelledError:  # the agent cancels it, or is gone
            question.cancel()
            raise
        return cancelled if question.cancelled() else question.result()

    def cancel_questions(self) -> None:
        """Cancel the open questions with their turn: the agent gets the cancelled result, and the client stops asking."""
        for question in self._questions:
            question.cancel()

    # Terminals.

    async def _create(self, params: v1.CreateTerminal) -> v1.CreateTerminalResult:
        if not (self.known and self._session.client.runs_commands):
            made = await self._do_locally(m.CREATE_TERMINAL, params, self._terminals.create(self._roots, params))
            self._local.add(made.terminal_id)
            return made
        # Not cancelled with the request: the client may respond all the same, with a command that runs and has no owner.
        creating = background(self.ask(m.CREATE_TERMINAL, params, NO_TIMEOUT), self._tasks)
        try:
            async with asyncio.timeout(APPROVAL_TIMEOUT):
                made = await asyncio.shield(creating)
        except asyncio.CancelledError:
            creating.add_done_callback(self._release_late)
            raise
        except TimeoutError:
            creating.add_done_callback(self._release_late)
            why = f"the client did not respond within {APPROVAL_TIMEOUT:g} seconds"
            raise RequestError(Code.REQUEST_TIMEOUT, "Request timed out", why) from None
        self._at_client.add(made.terminal_id)
        return made

    def _release_late(self, creating: "asyncio.Task[v1.CreateTerminalResult]") -> None:
        if not creating.cancelled() and creating.exception() is None:
            _ = background(self._release(creating.result().terminal_id), self._tasks)

    async def _at_terminal(self, call: AnyCall, params: TerminalRequest) -> object:
        id = params.terminal_id
        if id not in self._local:
            if isinstance(params, v1.ReleaseTerminal):
                self._at_client.discard(id)
            return await self.ask(call, params)
        match params:
            case v1.TerminalOutput():
                return await self._terminals.output(params)
            case v1.WaitForExit():
                return await self._terminals.wait_for_exit(params)
            case v1.KillTerminal():
                return await self._terminals.kill(params)
            case _:
                output = await self._terminals.output(v1.TerminalOutput(self._session.id, id))
                await self._before_release(id, output.output)
                self._local.discard(id)
                return await self._terminals.release(params)

    async def output_of(self, terminal_id: str) -> str:
        """Return what a command of this machine has printed so far."""
        return (await self._terminals.output(v1.TerminalOutput(self._session.id, terminal_id))).output

    async def _release(self, terminal_id: str) -> None:
        with suppress(AcpError):  # a client that does not know it, or is gone, has nothing to release
            await self._session.request(m.RELEASE_TERMINAL, v1.ReleaseTerminal(self._session.id, terminal_id))

    # The end.

    async def release(self) -> None:
        """Release everything that the agent began in the session."""
        self.cancel_questions()
        self._local.clear()
        theirs, self._at_client = self._at_client, set()
        for terminal_id in theirs:
            _ = background(self._release(terminal_id), self._tasks)
        await self._terminals.close()
