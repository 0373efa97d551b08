"""A session as its agent sees it: where it works, what the user can change, and news that belong to no turn.

A session that is being opened has no sender yet. What is sent in it is kept, and its sender is given to it by the same step that sends
the answer; so nothing can reach the client before it knows the session.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec import UNSET

from antiphon.agent.settings import SessionSettings
from antiphon.aio import NO_WAIT
from antiphon.errors import LocalProtocolError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.client import ConnectedClient
    from antiphon.connection.updates import SessionSender
    from antiphon.policy import Rules
    from antiphon.protocol.base import JsonObject
    from antiphon.protocol.methods import Call, Notice
    from antiphon.protocol.timeouts import Timeout

__all__ = ["AgentSession"]

_log = logging.getLogger(__name__)
P = TypeVar("P")
R = TypeVar("R")


class _Told(NamedTuple):
    """Something that is no update, and waits until the client knows the session."""

    notice: "Notice[Any]"
    params: Any


class AgentSession:
    """One conversation. `state` is yours: keep there what the session needs."""

    def __init__(
        self,
        id: str,
        cwd: str,
        client: "ConnectedClient",
        directories: Iterable[str] = (),
        mcp_servers: "Iterable[v1.McpServer]" = (),
    ) -> None:
        self.settings = SessionSettings()
        self._id = id
        self.cwd = cwd
        self.directories = tuple(directories)
        """Directories that belong to the session besides `cwd`."""
        self.mcp_servers = tuple(mcp_servers)
        self.client = client
        """Who is at the other end, and what it can do."""
        self.rules: Rules | None = None
        """Rules of the policy that whoever does the work has to keep too, because it does not ask about everything."""
        self.looking = False
        """Whether whoever does the work is only to look now, and to change nothing, whatever else it may do."""
        self.meta: JsonObject = {}
        """The `_meta` of the request that opened it."""
        self.state: Any = None
        self.series = ""
        """Goes into the ids of tool calls and the like, so that a session that is opened again does not use the old ones again."""
        self.numbers = 0
        """How many of them there are."""
        self.watch: Callable[[v1.Update], None] | None = None
        """Sees every update that leaves, for those who keep a history."""
        self._held: list[v1.Update | _Told] | None = []
        self._sender: SessionSender | None = None

    @property
    def id(self) -> str:
        """Its name. An agent that names sessions itself sets it while the session is being opened."""
        return self._id

    @id.setter
    def id(self, id: str) -> None:
        if self._sender is not None:
            raise LocalProtocolError("the client knows this session by its id already: it cannot change")
        self._id = id

    # Settings. Set them while the session is being opened; later changes have methods, which send them to the client.

    @property
    def modes(self) -> "v1.ModeState | None":
        """The modes on offer and the one in force."""
        return self.settings.modes

    @modes.setter
    def modes(self, modes: "v1.ModeState | None") -> None:
        if modes is not None and modes.current_mode_id not in [mode.id for mode in modes.available_modes]:
            raise LocalProtocolError(f"`{modes.current_mode_id}` is not among the modes on offer")
        self.settings.modes = modes

    @property
    def config_options(self) -> "list[v1.ConfigOption]":
        """The settings and their values."""
        return self.settings.options

    @config_options.setter
    def config_options(self, options: "Iterable[v1.ConfigOption]") -> None:
        chosen = list(options)
        for option in chosen:
            if not isinstance(option, v1.SelectConfig | v1.BooleanConfig | v1.Unknown):
                raise TypeError(f"{option!r:.60} is no setting: use v1.SelectConfig or v1.BooleanConfig")
        self.settings.options = chosen

    @property
    def models(self) -> "v1.ModelState | None":
        """The models on offer, in the way of older clients."""
        return self.settings.models

    @models.setter
    def models(self, models: "v1.ModelState | None") -> None:
        self.settings.models = models

    # Updates, requests and notifications.

    def update(self, update: "v1.Update") -> Awaitable[None]:
        """Tell any update. Await it: it waits while the client is slow."""
        if self.watch is not None:
            self.watch(update)
        if self._sender is None:
            if self._held is None:
                raise LocalProtocolError("the session is closed")
            self._held.append(update)
            return NO_WAIT
        return self._sender.update(update)

    def say(self, text: str) -> Awaitable[None]:
        """A piece of text of the agent: the quick way of `update`."""
        if self._sender is None or self.watch is not None:
            return self.update(v1.AgentMessageChunk(v1.TextBlock(text)))
        return self._sender.say(text)

    def think(self, text: str) -> Awaitable[None]:
        """A piece of thought of the agent: the quick way of `update`."""
        if self._sender is None or self.watch is not None:
            return self.update(v1.AgentThoughtChunk(v1.TextBlock(text)))
        return self._sender.think(text)

    def offer(self, *commands: "v1.Command") -> Awaitable[None]:
        """Say which slash commands there are, all of them."""
        return self.update(v1.AvailableCommandsUpdate(list(commands)))

    def entitle(self, title: str | None, updated_at: "str | None | v1.UnsetType" = v1.UNSET) -> Awaitable[None]:
        """Give the session a title."""
        return self.update(v1.SessionInfoUpdate(title=title, updated_at=updated_at))

    async def switch_mode(self, mode_id: str) -> None:
        """Change the mode ourselves, and say so."""
        self.settings.check_mode(mode_id)
        options_too = self.settings.choose_mode(mode_id)
        await self.update(v1.CurrentModeUpdate(mode_id))
        if options_too:
            await self.tell_options()

    async def change_option(self, config_id: str, value: bool | str) -> None:
        """Change a setting ourselves, and say so."""
        self.settings.check_option(config_id, value)
        before = self.models
        mode_too = self.settings.choose_option(config_id, value)
        await self.tell_options()
        if self.models is not None and self.models is not before:
            await self.tell_model(self.models.current_model_id)
        if mode_too and self.modes is not None:
            await self.update(v1.CurrentModeUpdate(self.modes.current_mode_id))

    async def notice(
        self,
        title: str,
        description: str | None = None,
        severity: v1.NoticeSeverity = v1.NoticeSeverity.INFO,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> None:
        """Something the user should know that belongs to no message. A client without notices gets it as text."""
        if self.client.shows_notices:
            await self.update(v1.NoticeUpdate(severity, title, description, meta=None if meta is None else dict(meta)))
        else:
            await self.say(f"{title}: {description}\n" if description else f"{title}\n")

    def tell_options(self) -> Awaitable[None]:
        """Tell all settings as they stand."""
        return self.update(v1.ConfigOptionUpdate(self.settings.shown(self.client.shows_booleans)))

    def tell_model(self, model_id: str) -> Awaitable[None]:
        """Tell a client that chooses models in the way of before settings that there is another. To others the update is unknown."""
        return self.update(v1.CurrentModelUpdate(model_id)) if self.client.chooses_models else NO_WAIT

    def notify(self, notice: "Notice[P]", params: P) -> Awaitable[None]:
        """Tell something that is no update, in its order. Await it. Params that name the session have to name it by our `id`."""
        if self._sender is None:
            if self._held is None:
                raise LocalProtocolError("the session is closed")
            self._held.append(_Told(notice, params))
            return NO_WAIT
        return self.client.connection.notify(notice, params)

    async def request(self, call: "Call[P, R]", params: P, *, timeout: "Timeout" = UNSET) -> R:
        """Send a request to the client. Most have a verb of their own in `Turn`.

        `timeout`: the seconds that the response may take, None for no timeout; by default what `protocol.timeouts` has for it.
        """
        return await self.client.connection.request(call, params, timeout=timeout)

    async def admit(self, call: "Call[P, Any]", params: P) -> None:
        """Whether what the client would be asked for may be done on this machine instead, because it cannot. Raise to refuse.

        Everything may, unless whoever made this session has rules for it.
        """

    async def lost_conversation(self, id: str) -> str:
        """An engine could not go on with its conversation and began another, by this id at the engine.

        Whoever keeps the conversation notes the new id (and may make it this session's own, if the client does not know this session).
        What is returned is told to the engine before the prompt that comes next: a summary of what it forgot. Nobody here has one.
        """
        return ""

    # Its life, for the service.

    def _open(self) -> None:
        """The client knows it now: what was said so far leaves, and what comes leaves at once."""
        held, self._held = self._held, None
        self._sender = self.client.connection.sender(self._id)
        for told in held or ():
            try:
                _ = self.notify(*told) if isinstance(told, _Told) else self._sender.update(told)
            except Exception:  # it has no JSON form; whoever said it is long gone, and the rest must not suffer
                _log.exception("an update of a new session could not be sent")

    @property
    def closed(self) -> bool:
        """Whether nothing can be said in it any more."""
        return self._sender is None and self._held is None

    def close(self) -> None:
        """Nothing more can be said in it."""
        self._sender = self._held = None
