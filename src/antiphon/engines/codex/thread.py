"""The thread of a session: opened in the server, opened again in the next one, closed. And what it is opened with."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.aio import ignore_result
from antiphon.config.project_files import CODEX, directories_above, main_repository
from antiphon.config.shapes import APPEND_SYSTEM_PROMPT, asked_of_engines
from antiphon.engines.codex import wire
from antiphon.engines.codex.login import must_be_signed_in
from antiphon.engines.codex.modes import config_with_profile, has_rules
from antiphon.engines.codex.rollout import RAW_EVENTS
from antiphon.engines.codex.server import (
    CodexServer,
    client_errors,
    is_archived,
    is_open_elsewhere,
    key_at_fault,
    refusal_of,
)
from antiphon.engines.codex.stored_threads import prompts_of
from antiphon.engines.labels import free_name
from antiphon.engines.process import CliRefused
from antiphon.engines.project import Project
from antiphon.errors import Code, ConnectionClosed, ResponseError
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject
from antiphon.transcript.fork_point import cut_point, no_cut

if TYPE_CHECKING:
    from antiphon.agent.session import AgentSession
    from antiphon.engines.codex.hub import CodexHub, ThreadListener
    from antiphon.engines.codex.rollout import UnseenItems
    from antiphon.engines.codex.settings import CodexSettings

__all__ = ["CodexConfig", "OpenThread", "read_config", "servers_of"]


def servers_of(servers: "Iterable[v1.McpServer]") -> dict[str, JsonObject]:
    """Return the MCP servers of a session as Codex's configuration has them. They are sent over its pipe, so nothing secret is stored."""
    found = dict[str, JsonObject]()
    for server in servers:
        match server:
            case v1.StdioServer():
                entry: JsonObject = {
                    "command": server.command,
                    "args": list(server.args),
                    "env": {each.name: each.value for each in server.env},
                }
            case v1.HttpServer():
                entry = {"url": server.url, "http_headers": {each.name: each.value for each in server.headers}}
            case _:  # a kind that was never offered: it has been refused before
                continue
        found[free_name(server.name, found)] = entry
    return found


class _Workspace(msgspec.Struct, frozen=True):
    writable_roots: list[str] = []
    network_access: bool = False
    exclude_tmpdir_env_var: bool = False
    exclude_slash_tmp: bool = False


class _Project(msgspec.Struct, frozen=True):
    trust_level: str | None = None


class CodexConfig(msgspec.Struct, frozen=True):
    """The part of the user's own configuration that would not count if a thread or turn were sent other settings without it."""

    approval_policy: str | JsonObject | None = None

    sandbox_mode: str | None = None
    default_permissions: str | None = None
    sandbox_workspace_write: _Workspace | None = None
    model_reasoning_summary: str | None = None
    developer_instructions: str | None = None
    projects: dict[str, _Project] | None = None

    @property
    def workspace(self) -> JsonObject | None:
        """The sandbox of the workspace, as a turn takes it."""
        found = self.sandbox_workspace_write
        if found is None:
            return None
        return {
            "type": "workspaceWrite",
            "writableRoots": found.writable_roots,
            "networkAccess": found.network_access,
            "excludeTmpdirEnvVar": found.exclude_tmpdir_env_var,
            "excludeSlashTmp": found.exclude_slash_tmp,
        }

    def trusts(self, places: Iterable[str]) -> bool | None:
        """Return whether the user trusts a project in Codex's own file. None if it is not in the file."""
        levels = {found.trust_level for place in places if (found := (self.projects or {}).get(place)) is not None}
        return False if "untrusted" in levels else True if "trusted" in levels else None

    def rights(self, trusts: bool | None) -> JsonObject:
        """Return approval policy and sandbox: as the user has configured them, else Codex's own defaults.

        A thread gets a setting for whether to read the project's own settings. For Codex that is about rights too: in a project that it is
        set to trust it writes unasked. These settings keep the two apart. What the user has configured is sent again, because a
        thread that is resumed keeps the rights of its last turn, and those are ours.
        """
        if trusts is False:
            return {}
        rights: JsonObject = {"approval_policy": self.approval_policy or "on-request"}
        if self.default_permissions is None:
            rights["sandbox_mode"] = self.sandbox_mode or ("workspace-write" if trusts else "read-only")
        return rights


class _Read(msgspec.Struct, frozen=True):
    config: CodexConfig = CodexConfig()


async def read_config(server: "CodexServer", cwd: str) -> CodexConfig:
    """Read the configuration for this directory.

    Raises:
        CliRefused: the server refuses.
        RemoteProtocolError: the result is something else.
    """
    return (await server.call("config/read", {"cwd": cwd}, _Read)).config


CLOSE_LIMIT: Final = 2.0
"""Seconds for each request that closes a thread."""

RELEASE_DELAYS: Final = (0.02, 0.05, 0.1, 0.2, 0.4)
"""Seconds before another try to open a thread that a server still closes. Closing one takes a few milliseconds."""


class OpenThread:
    """The thread of one session, which gets its messages."""

    def __init__(
        self,
        session: "AgentSession",
        hub: "CodexHub",
        settings: "CodexSettings",
        unseen: "UnseenItems",
        listener: "ThreadListener",
    ) -> None:
        self.server: CodexServer | None = None
        """The server in which it is open; None if it has to be opened again."""
        self._session = session
        self._hub = hub
        self._settings = settings
        self._unseen = unseen
        self._listener = listener
        self.project = Project(session, "Codex", CODEX)
        self._level = ""
        """The trust level of the project that the open thread was sent."""
        self._distrusted = False
        """Whether the user distrusts the project in Codex's own file, which then holds whatever was trusted here."""
        self._named = False
        """Whether the client knows the session by its id already."""
        self._empty = False

    @property
    def id(self) -> str:
        """The id of the thread."""
        return self._hub.ids.own_id(self._session.id)

    # Opening.

    async def start(self) -> wire.ThreadOpened:
        """Start a new thread. The session is named after it."""
        opened = await self._first("thread/start", {})
        self._empty = True
        return opened

    async def resume(self) -> wire.ThreadOpened:
        """Open the thread of an earlier session."""
        self._named = True
        return await self._first("thread/resume", {"threadId": self.id})

    async def fork(self, source: str, dropped: Sequence[str] = ()) -> wire.ThreadOpened:
        """Start a new thread with the history of another session, without these prompts and what followed. The session is named after it.

        Raises:
            RequestError: it is not certain where these prompts begin, or this version of Codex copies whole threads only.
        """
        wanted: JsonObject = {"threadId": self._hub.ids.own_id(source)}
        if not dropped:
            return await self._first("thread/fork", wanted)
        with client_errors():
            turns = await prompts_of(await self._signed_in(), str(wanted["threadId"]))
        cut = cut_point([text for _, text in turns], dropped)
        if cut is None:
            raise no_cut()
        if cut == 0:
            return await self.start()
        opened = await self._first("thread/fork", {**wanted, "lastTurnId": turns[cut - 1][0]})
        with client_errors():
            left = await prompts_of(await self._signed_in(), opened.thread.id)
        if [text for _, text in left] != [text for _, text in turns[:cut]]:
            raise no_cut()  # a version that does not know where to end has copied all of it
        return opened

    async def _first(self, method: str, params: JsonObject) -> wire.ThreadOpened:
        with client_errors():
            return await self._open(await self._signed_in(), method, params)

    async def _signed_in(self) -> CodexServer:
        try:
            return await must_be_signed_in(self._hub)
        except ResponseError as error:
            server = await self._hub.ready()
            if error.code != Code.AUTH_REQUIRED or await key_at_fault(server) is None:
                raise
        return server  # it cannot read its configuration and falls back on one that wants a login; the error comes when a thread is opened

    async def ready(self) -> CodexServer:
        """Return the server, with the thread open in it."""
        with client_errors():
            server = await self._hub.ready()
            if self.server is not server:
                await self._again(server)
        return server

    async def _again(self, server: CodexServer) -> None:
        try:
            await self._open(server, "thread/resume", {"threadId": self.id})
        except ResponseError as error:
            # Codex stores a thread from its first turn on. One without a turn is as good as a new one; any other was deleted.
            if error.code != Code.RESOURCE_NOT_FOUND or not self._empty:
                raise
            await self._open(server, "thread/start", {})

    async def _open(self, server: CodexServer, method: str, params: JsonObject) -> wire.ThreadOpened:
        try:
            return await self._when_released(server, method, params)
        except CliRefused as error:
            if method == "thread/resume" and is_archived(error):
                await server.request("thread/unarchive", {"threadId": params["threadId"]})
                return await self._request_thread(server, method, params)
            key = await key_at_fault(server)
            if key is not None:
                self._hub.drop_unused(server)  # the next server reads the file again
            raise refusal_of(error, key) from error

    async def _when_released(self, server: CodexServer, method: str, params: JsonObject) -> wire.ThreadOpened:
        """Open a thread, and wait for a moment if a server is still closing it."""
        for delay in RELEASE_DELAYS:
            try:
                return await self._request_thread(server, method, params)
            except CliRefused as error:
                if not is_open_elsewhere(error):
                    raise
            await asyncio.sleep(delay)
        return await self._request_thread(server, method, params)

    async def _request_thread(self, server: CodexServer, method: str, params: JsonObject) -> wire.ThreadOpened:
        session, starts = self._session, method == "thread/start"
        wanted: JsonObject = {"cwd": session.cwd, **params, **(RAW_EVENTS if starts else {})}
        configured = await self._configured(server)
        config = await self._config(configured)
        if isinstance(more := asked_of_engines(session.meta).get(APPEND_SYSTEM_PROMPT), str):
            # It takes the place of what the user has configured.
            wanted["developerInstructions"] = "\n\n".join(filter(None, (configured.developer_instructions, more)))
        if session.mcp_servers:
            config["mcp_servers"] = servers_of(session.mcp_servers)
        if config:
            wanted["config"] = config
        if session.directories:
            wanted["runtimeWorkspaceRoots"] = [session.cwd, *session.directories]
        wanted |= self._settings.for_thread()
        left = False

        def at_once(opened: wire.ThreadOpened) -> None:
            if left:
                self._unwanted(server, opened.thread.id)
            else:
                self._opened(server, opened.thread, live=starts)

        # A task of its own: a thread that is opened for a cancelled caller must be closed again.
        opening = asyncio.create_task(server.call(method, wanted, wire.ThreadOpened, at_once))
        opening.add_done_callback(ignore_result)
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            left = True
            raise

    async def _configured(self, server: CodexServer) -> CodexConfig:
        try:
            return await read_config(server, self._session.cwd)
        except CliRefused:
            return CodexConfig()  # the request that follows is refused for the same reason, with a better text

    async def _config(self, found: CodexConfig) -> JsonObject:
        """Return the configuration of the thread: whether the project's settings count, and a profile for read-only turns."""
        above = directories_above(self._session.cwd)
        places = dict.fromkeys([*above, *filter(None, map(main_repository, above))])
        trusts = found.trusts(places)
        self._distrusted = trusts is False
        self._level = level = await self._level_now()
        self._settings.has_profile = self._session.host.rules is not None and await asyncio.to_thread(
            has_rules, self._session.cwd
        )
        config: JsonObject = {"projects": {place: {"trust_level": level} for place in places}}
        config |= found.rights(trusts)
        if self._settings.has_profile:
            config |= config_with_profile(found)
            if "default_permissions" in config:  # it takes the place of the sandbox's mode
                config.pop("sandbox_mode", None)
        return config

    async def _level_now(self) -> str:
        # By default Codex trusts each project in which it may write, for ever. In an untrusted project it reads no AGENTS.md: that
        # is the cost in a project with settings to be trusted, and only there.
        trusted = await self.project.look() or not self.project.has_files
        return "trusted" if trusted and not self._distrusted else "untrusted"

    async def check_project(self) -> None:
        """Close a thread that was opened with other settings of the project than those that are trusted now: it is opened again."""
        server = self.server
        if server is None or server.end is not None:
            return
        if await self._level_now() == self._level:
            return
        with suppress(CliRefused, ConnectionClosed):
            await server.request("thread/unsubscribe", {"threadId": self.id}, CLOSE_LIMIT)
        self.left()

    def _opened(self, server: CodexServer, thread: wire.Thread, *, live: bool) -> None:
        """Get the messages of the thread from now on: they come right behind the response."""
        if self.id != thread.id:
            self._hub.forget(self.id, self._listener)
            if self._named:
                self._hub.ids.move(self._session.id, thread.id)
            else:
                self._session.id = thread.id
        self._named = True
        self.server = server
        self._unseen.opened(thread, live=live)
        self._hub.listen(thread.id, self._listener)

    def _unwanted(self, server: CodexServer, id: str) -> None:
        if self._hub.listener_of(id) is None:
            server.request_without_response("thread/unsubscribe", {"threadId": id})

    # While it is open.

    def has_turn(self) -> None:
        """A turn began in the thread."""
        self._empty = False

    def left(self) -> None:
        """The thread is not open any more: it is archived, or another session opened it. The next prompt opens it again."""
        self.server = None

    async def clean(self, server: CodexServer) -> None:
        """End the commands that outlived their turn."""
        with suppress(CliRefused):
            await server.request("thread/backgroundTerminals/clean", {"threadId": self.id}, CLOSE_LIMIT)

    async def close(self) -> None:
        """End what the thread left running, and leave it, unless another session has it now."""
        server = self.server
        if not self._hub.forget(self.id, self._listener) or server is None or server.end is not None:
            return
        with suppress(CliRefused, ConnectionClosed):
            await self.clean(server)
            if self._hub.listener_of(self.id) is None:
                await server.request("thread/unsubscribe", {"threadId": self.id}, CLOSE_LIMIT)
