"""The client without `async`, for scripts and notebooks: the same methods, each waiting for its result.

The connection lives in a thread of its own, so this also works where a loop runs already. Handlers may block (ask with `input()`);
`on_update` and the hooks of `Files` are called in that other thread and must be quick. Ctrl-C while a turn is waited for cancels the turn.
So does a handler that ends the program (`sys.exit()`, Ctrl-C in `input()`): it is raised where the turn is waited for.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self, TypedDict, TypeVar

from msgspec import UNSET

from antiphon.client.agent import ConnectedAgent
from antiphon.client.capabilities import DEFAULT_VERSIONS
from antiphon.client.connect import DEFAULT_FILES, DEFAULT_RETRY
from antiphon.client.connect import connect as connect_async
from antiphon.client.handlers import Elicitation, PermissionHandler, SignInHandler
from antiphon.client.worker import Worker
from antiphon.connection.stream import CANCEL_GRACE

if TYPE_CHECKING:
    from ssl import SSLContext
    from typing import Unpack

    from antiphon.client.connect import ElicitationHandler, PendingConnection
    from antiphon.client.files import Files
    from antiphon.client.handlers import ExtensionHandler
    from antiphon.client.link import Retry, Target
    from antiphon.client.session import ClientSession, PromptContent
    from antiphon.client.terminals import Terminals
    from antiphon.client.turn import ClientTurn
    from antiphon.client.updates import OnUpdate
    from antiphon.connection.reports import Observer
    from antiphon.protocol import v1
    from antiphon.protocol.base import JsonObject
    from antiphon.protocol.extension import OpenWork, WorkState
    from antiphon.protocol.timeouts import Timeout
    from antiphon.transcript.transcript import Transcript

__all__ = ["SyncAgent", "SyncSession", "SyncTurn", "connect"]

T = TypeVar("T")
PathLike = str | os.PathLike[str]


class ConnectOptions(TypedDict, total=False):
    """The options of a session besides its directory."""

    mcp_servers: "Sequence[v1.McpServer]"
    additional_directories: Sequence[PathLike]
    on_update: "OnUpdate | None"
    timeout: "Timeout"
    meta: "JsonObject | None"


@contextmanager
def connect(
    target: "Target",
    *,
    cwd: PathLike | None = None,
    env: Mapping[str, str] | None = None,
    token: str | None = None,
    headers: Mapping[str, str] | None = None,
    tls: "SSLContext | None" = None,
    plaintext: bool = False,
    permission: PermissionHandler | None = None,
    elicitation: "ElicitationHandler | None" = None,
    authenticate: SignInHandler | None = None,
    files: "Files | None" = DEFAULT_FILES,
    terminals: "Terminals | None" = None,
    info: "v1.Implementation | None" = None,
    retry: "Retry" = DEFAULT_RETRY,
    observer: "Observer | None" = None,
    cancel_grace: float = CANCEL_GRACE,
    terminal_login: bool = False,
    timeout: "Timeout" = UNSET,
    transcript: int | None = None,
    extensions: "Mapping[str, ExtensionHandler] | None" = None,
    versions: Sequence[int] = DEFAULT_VERSIONS,
) -> "Iterator[SyncAgent]":
    """Connect to an agent; `antiphon.connect` describes the arguments."""
    held = _HeldConnection()
    worker = Worker(held.end)
    held.connected = connect_async(
        target,
        cwd=cwd,
        env=env,
        token=token,
        headers=headers,
        tls=tls,
        plaintext=plaintext,
        permission=worker.in_thread(permission) if permission is not None else None,
        elicitation=_in_threads(elicitation, worker) if elicitation is not None else None,
        authenticate=worker.in_thread(authenticate) if authenticate is not None else None,
        files=files,
        terminals=terminals,
        info=info,
        retry=retry,
        observer=worker.on_loop(observer) if observer is not None else None,
        cancel_grace=cancel_grace,
        terminal_login=terminal_login,
        timeout=timeout,
        transcript=transcript,
        extensions={name: worker.in_thread(handler) for name, handler in (extensions or {}).items()},
        versions=versions,
    )
    with _running(held, worker) as agent:
        yield agent


@contextmanager
def _running(held: "_HeldConnection", worker: Worker) -> "Iterator[SyncAgent]":
    """The agent of a connection, with the thread that holds it open."""
    try:
        worker.start()
        try:
            yield SyncAgent(worker.run(held.begin()), worker)
        finally:
            worker.run(held.end(), closing=True)  # raises what went wrong; interrupted, the worker does it
    finally:
        try:
            worker.stop()
        finally:
            worker.stop_soon()  # again, because Ctrl-C may have come before it was begun
    worker.raise_pending()


class _HeldConnection:
    """A connection that a task of its own holds open: whenever its caller is interrupted, it can be closed."""

    connected: "PendingConnection"

    def __init__(self) -> None:
        self._over = asyncio.Event()
        self._making = True
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> ConnectedAgent:
        """Connect. If this is cancelled, `end` closes the connection."""
        loop = asyncio.get_running_loop()
        there: asyncio.Future[ConnectedAgent] = loop.create_future()
        self._task = task = loop.create_task(self._hold(there), name="connection")
        await asyncio.wait((task, there), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()  # raises why it could not be made
        return there.result()

    async def _hold(self, there: "asyncio.Future[ConnectedAgent]") -> None:
        async with self.connected as agent:
            self._making = False
            if not there.done():
                there.set_result(agent)
            await self._over.wait()

    async def end(self) -> None:
        """Close the connection, or cancel its making. The grace periods of a process bound the wait."""
        task = self._task
        if task is None or task.done():
            return
        self._over.set()
        if self._making:
            task.cancel()
        await asyncio.wait([task])
        if not task.cancelled():
            task.result()


def _in_threads(elicitation: "ElicitationHandler", worker: Worker) -> "ElicitationHandler":
    if not isinstance(elicitation, Elicitation):
        return worker.in_thread(elicitation)
    form, url, completed = elicitation.form, elicitation.url, elicitation.completed
    return Elicitation(
        form=worker.in_thread(form) if form is not None else None,
        url=worker.in_thread(url) if url is not None else None,
        completed=worker.on_loop(completed) if completed is not None else None,
    )


class SyncAgent:
    """An agent that we are connected to. See `ConnectedAgent`."""

    def __init__(self, agent: ConnectedAgent, worker: Worker) -> None:
        self._agent = agent
        self._worker = worker

    @property
    def name(self) -> str:
        """The name of the agent."""
        return self._agent.name

    @property
    def info(self) -> "v1.Implementation | None":
        """The name and version of the agent, if it sent them."""
        return self._agent.info

    @property
    def meta(self) -> Mapping[str, object]:
        """What the agent sent in `_meta` with its capabilities."""
        return self._agent.meta

    @property
    def capabilities(self) -> "v1.AgentCapabilities":
        """What the agent has advertised."""
        return self._agent.capabilities

    @property
    def auth_methods(self) -> "Sequence[v1.AuthMethod]":
        """The methods to sign in that the agent offers."""
        return self._agent.auth_methods

    @property
    def version(self) -> int:
        """The version of ACP that the agent speaks, 1 or 2."""
        return self._agent.version

    @property
    def stderr(self) -> str:
        """The last lines that the agent's program wrote to stderr."""
        return self._agent.stderr

    def new_session(self, cwd: PathLike | None = None, **options: "Unpack[ConnectOptions]") -> "SyncSession":
        """Open a session in a directory."""
        return self._open(self._agent.new_session(cwd, **self._guarded(options)))

    def load_session(self, id: str, cwd: PathLike | None = None, **options: "Unpack[ConnectOptions]") -> "SyncSession":
        """Open an earlier session with its history."""
        return self._open(self._agent.load_session(id, cwd, **self._guarded(options)))

    def resume_session(
        self, id: str, cwd: PathLike | None = None, **options: "Unpack[ConnectOptions]"
    ) -> "SyncSession":
        """Open an earlier session without its history."""
        return self._open(self._agent.resume_session(id, cwd, **self._guarded(options)))

    def fork_session(self, id: str, cwd: PathLike | None = None, **options: "Unpack[ConnectOptions]") -> "SyncSession":
        """Open a new session that begins with the history of another."""
        return self._open(self._agent.fork_session(id, cwd, **self._guarded(options)))

    def _open(self, opening: "Coroutine[Any, Any, ClientSession]") -> "SyncSession":
        return SyncSession(self._worker.run(opening), self._worker)

    def _guarded(self, options: ConnectOptions) -> ConnectOptions:
        if (on_update := options.get("on_update")) is not None:
            options["on_update"] = self._worker.on_loop(on_update)
        return options

    def list_sessions(self, cwd: PathLike | None = None, *, timeout: "Timeout" = UNSET) -> "Iterator[v1.SessionInfo]":
        """Iterate over the sessions that the agent keeps, page by page as they are needed."""
        sessions = self._agent.list_sessions(cwd, timeout=timeout)
        while (info := self._worker.run(_next(sessions))) is not None:
            yield info

    def delete_session(self, session_id: str, *, timeout: "Timeout" = UNSET) -> None:
        """Remove a session from the list for good."""
        self._worker.run(self._agent.delete_session(session_id, timeout=timeout))

    def authenticate(self, method_id: str, *, timeout: "Timeout" = UNSET) -> None:
        """Sign in by one of the `auth_methods`."""
        self._worker.run(self._agent.authenticate(method_id, timeout=timeout))

    def logout(self, *, timeout: "Timeout" = UNSET) -> None:
        """Sign out."""
        self._worker.run(self._agent.logout(timeout=timeout))

    def request_extension(self, method: str, params: object = None, *, timeout: "Timeout" = UNSET) -> Any:
        """Send an extension request, such as `_mine/ping`, and return its result as plain JSON values."""
        return self._worker.run(self._agent.request_extension(method, params, timeout=timeout))

    def notify_extension(self, method: str, params: object = None) -> None:
        """Send an extension notification."""
        self._worker.run(self._agent.notify_extension(method, params))


class SyncSession:
    """One session. See `ClientSession`."""

    def __init__(self, session: "ClientSession", worker: Worker) -> None:
        self._session = session
        self._worker = worker

    @property
    def id(self) -> str:
        """The id of the session; another one if a new session had to take its place."""
        return self._session.id

    @property
    def cwd(self) -> str:
        """The directory that the session works in."""
        return self._session.cwd

    @property
    def modes(self) -> "v1.ModeState | None":
        """The modes on offer and the current one."""
        return self._session.modes

    @property
    def config_options(self) -> "Sequence[v1.ConfigOption] | None":
        """The options and their values."""
        return self._session.config_options

    @property
    def models(self) -> "v1.ModelState | None":
        """The models on offer and the current one."""
        return self._session.models

    @property
    def commands(self) -> "Sequence[v1.Command] | None":
        """The slash commands on offer."""
        return self._session.commands

    @property
    def title(self) -> str | None:
        """The title of the session."""
        return self._session.title

    @property
    def transcript(self) -> "Transcript":
        """The transcript of the session."""
        return self._session.transcript

    @property
    def state(self) -> "WorkState":
        """What the agent does here: idle, running, or waiting for the user."""
        return self._session.state

    @property
    def background(self) -> "tuple[OpenWork, ...] | None":
        """The work that goes on in the background. None: the agent does not report it."""
        return self._session.background

    @property
    def cancellable(self) -> "tuple[OpenWork, ...]":
        """The tool calls and terminals that can be cancelled alone now."""
        return self._session.cancellable

    def wait_idle(self, *, timeout: float | None = None) -> None:
        """Wait until the agent does nothing in the foreground."""
        self._worker.run(self._session.wait_idle(timeout=timeout))

    def cancel_tool_call(self, tool_call_id: str, *, timeout: "Timeout" = UNSET) -> None:
        """Cancel one tool call; the turn goes on."""
        self._worker.run(self._session.cancel_tool_call(tool_call_id, timeout=timeout))

    def cancel_terminal(self, terminal_id: str, *, timeout: "Timeout" = UNSET) -> None:
        """Cancel the command in one terminal of the agent."""
        self._worker.run(self._session.cancel_terminal(terminal_id, timeout=timeout))

    def prompt(
        self, content: "PromptContent", *, timeout: float | None = None, meta: "JsonObject | None" = None
    ) -> "SyncTurn":
        """Send a prompt. Iterate over the turn, or take its `result` or its `text()`.

        After `timeout` seconds, if given, the turn is cancelled and fails with `RequestTimeout`.
        """

        async def begin() -> "ClientTurn":
            return self._session.prompt(content, timeout=timeout, meta=meta)

        return SyncTurn(self._worker.run(begin()), self._worker)

    def set_mode(self, mode_id: str, *, timeout: "Timeout" = UNSET) -> None:
        """Change the mode."""
        self._worker.run(self._session.set_mode(mode_id, timeout=timeout))

    def set_model(self, model_id: str, *, timeout: "Timeout" = UNSET) -> None:
        """Change the model."""
        self._worker.run(self._session.set_model(model_id, timeout=timeout))

    def set_config_option(self, config_id: str, value: str | bool, *, timeout: "Timeout" = UNSET) -> None:
        """Change an option."""
        self._worker.run(self._session.set_config_option(config_id, value, timeout=timeout))

    def cancel(self) -> None:
        """Cancel what runs in this session, and wait until it is over."""
        self._worker.run(self._session.cancel())

    def close(self, *, timeout: "Timeout" = UNSET) -> None:
        """Cancel what runs, release what the session holds here, and have the agent close it."""
        self._worker.run(self._session.close(timeout=timeout))


class SyncTurn:
    """One turn: `for update in turn`, then `turn.result`; or `turn.result` or `turn.text()` at once. See `ClientTurn`."""

    def __init__(self, turn: "ClientTurn", worker: Worker) -> None:
        self._turn = turn
        self._worker = worker

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> "v1.Update":
        update = self._run(_next(self._turn))
        if update is None:
            raise StopIteration
        return update

    @property
    def result(self) -> "v1.PromptResult":
        """Why the turn ended; waits until it has."""

        async def rest() -> "v1.PromptResult":
            return await self._turn

        return self._run(rest())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel the turn if it is not over, and wait for its end."""
        self._worker.run(self._turn.__aexit__(None, None, None), closing=True)

    @property
    def message_id(self) -> str | None:
        """The id of the prompt as a message of the session, once the agent has taken it. None in version 1."""
        return self._turn.message_id

    def text(self) -> str:
        """Wait for the end of the turn, and return all text of the agent's messages in it."""
        return self._run(self._turn.text())

    def cancel(self) -> "v1.PromptResult":
        """Cancel the turn and wait until it is over."""
        return self._run(self._turn.cancel())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._worker.run(work, instead=self._turn.cancel_soon)


async def _next(items: AsyncIterator[T]) -> T | None:
    return await anext(items, None)
