"""A session as its agent sees it: its directories, its settings, and updates that belong to no turn.

A session that is being opened has no sender yet. What is sent in it is kept until the step that sends the response to the client, which
also gives the session its sender. So no update reaches the client before it knows the session.

`SessionHost` and the functions at the end are for engines and for the programs around them. They are not public names.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec import UNSET

from antiphon.agent.settings import SessionSettings
from antiphon.aio import NO_WAIT
from antiphon.errors import LocalProtocolError
from antiphon.protocol import v1

if TYPE_CHECKING:
    import os
    from collections.abc import Coroutine

    from antiphon.agent.client import ConnectedClient
    from antiphon.agent.prompts import PromptQueue
    from antiphon.agent.tools import LiveCall
    from antiphon.agent.turn import AgentTurn
    from antiphon.agent.work import BackgroundCall, OwnWork, SessionWork
    from antiphon.connection.updates import SessionSender
    from antiphon.policy import Rules
    from antiphon.protocol.base import JsonObject
    from antiphon.protocol.methods import Call, Notice
    from antiphon.protocol.timeouts import Timeout

__all__ = ["AgentSession", "SessionHost", "close_session", "open_session", "send_model", "watch_updates"]

_log = logging.getLogger(__name__)
P = TypeVar("P")
R = TypeVar("R")


class _HeldNotification(NamedTuple):
    """A notification that is not an update, and waits until the client knows the session."""

    notice: "Notice[Any]"
    params: Any


class SessionHost:
    """What an engine gets with its session from the program around it: settings, rules, limits. Not for users of the SDK."""

    def __init__(self) -> None:
        self.settings = SessionSettings()
        self.rules: Rules | None = None
        """Rules of the policy that the engine has to apply by itself, because it does not ask for permission for everything."""
        self.read_only = False
        """Whether the engine must change nothing for now, in any mode."""
        self.id_prefix = ""
        """Goes into the ids of tool calls and the like, so that a session that is opened again does not repeat earlier ids."""
        self.id_count = 0
        """How many of those ids were given."""

    async def admit(self, call: "Call[P, Any]", params: P) -> None:
        """Decide whether the engine may do on this machine what the client cannot do for it. Raise to refuse.

        Without a policy everything is allowed.
        """

    async def lost_session(self, id: str) -> str:
        """Note that the engine could not go on with its session and has begun another one, with this id.

        Return the summary of what it forgot, which is put before the next prompt. Without a history it is empty. A host may give the id
        to the session too, if the client does not know that session.
        """
        return ""


class AgentSession:
    """One session of a client. `state` is yours: keep there what the session needs."""

    def __init__(
        self,
        id: str,
        cwd: str,
        client: "ConnectedClient",
        directories: Iterable[str] = (),
        mcp_servers: "Iterable[v1.McpServer]" = (),
        *,
        host: SessionHost | None = None,
    ) -> None:
        self._id = id
        self.cwd = cwd
        self.directories = tuple(directories)
        """Directories that belong to the session besides `cwd`."""
        self.mcp_servers = tuple(mcp_servers)
        self.client = client
        """The client of the session, and what it can do."""
        self.host = host or SessionHost()
        """For engines, which are given more than an agent of the SDK needs."""
        self.meta: JsonObject = {}
        """The `_meta` of the request that opened it."""
        self.state: Any = None
        self._on_update: Callable[[v1.Update], None] | None = None
        self._held: list[v1.Update | _HeldNotification] | None = []
        self._known_work: SessionWork | None = None
        self._prompts: PromptQueue | None = None
        """The prompts that run or wait in it, once it is open."""
        self._running_prompt: str | None = None
        """The id that the client gave to the prompt that runs."""
        self._sender: SessionSender | None = None
        self._quick: SessionSender | None = None
        """The sender, unless updates are watched: pieces of text need not become updates first."""

    @property
    def id(self) -> str:
        """The id of the session. An agent that has ids of its own sets it while the session is being opened."""
        return self._id

    @id.setter
    def id(self, id: str) -> None:
        if self._sender is not None:
            raise LocalProtocolError("the client knows this session by its id already: it cannot change")
        self._id = id

    # Settings. Set them while the session is being opened; later changes have methods, which send them to the client.

    @property
    def modes(self) -> "v1.ModeState | None":
        """The modes on offer and the current one."""
        return self.host.settings.modes

    @modes.setter
    def modes(self, modes: "v1.ModeState | None") -> None:
        if modes is not None and modes.current_mode_id not in [mode.id for mode in modes.available_modes]:
            raise LocalProtocolError(f"`{modes.current_mode_id}` is not among the modes on offer")
        self.host.settings.modes = modes

    @property
    def config_options(self) -> "list[v1.ConfigOption]":
        """The options and their values."""
        return self.host.settings.options

    @config_options.setter
    def config_options(self, options: "Iterable[v1.ConfigOption]") -> None:
        chosen = list(options)
        for option in chosen:
            if not isinstance(option, v1.SelectConfig | v1.BooleanConfig | v1.Unknown):
                raise TypeError(f"{option!r:.60} is no option: use v1.SelectConfig or v1.BooleanConfig")
        self.host.settings.options = chosen

    @property
    def models(self) -> "v1.ModelState | None":
        """The models on offer and the current one, for older clients; newer ones use an option."""
        return self.host.settings.models

    @models.setter
    def models(self, models: "v1.ModelState | None") -> None:
        self.host.settings.models = models

    # Updates, requests and notifications.

    def update(self, update: "v1.Update") -> Awaitable[None]:
        """Send an update. Await it: it waits while the client is slow."""
        if self._on_update is not None:
            self._on_update(update)
        if self._sender is None:
            if self._held is None:
                raise LocalProtocolError("the session is closed")
            self._held.append(update)
            return NO_WAIT
        return self._sender.update(update)

    def say(self, text: str) -> Awaitable[None]:
        """Send a piece of text of the agent: the quick form of `update`."""
        if (sender := self._quick) is None:
            return self.update(v1.AgentMessageChunk(v1.TextBlock(text)))
        return sender.say(text)

    def think(self, text: str) -> Awaitable[None]:
        """Send a piece of the agent's thinking: the quick form of `update`."""
        if (sender := self._quick) is None:
            return self.update(v1.AgentThoughtChunk(v1.TextBlock(text)))
        return sender.think(text)

    def offer(self, *commands: "v1.Command") -> Awaitable[None]:
        """Send the slash commands that there are, all of them."""
        return self.update(v1.AvailableCommandsUpdate(list(commands)))

    def entitle(self, title: str | None, updated_at: "str | None | v1.UnsetType" = v1.UNSET) -> Awaitable[None]:
        """Give the session a title."""
        return self.update(v1.SessionInfoUpdate(title=title, updated_at=updated_at))

    async def switch_mode(self, mode_id: str) -> None:
        """Change the mode by ourselves, and send the change to the client."""
        self.host.settings.check_mode(mode_id)
        options_too = self.host.settings.choose_mode(mode_id)
        await self.update(v1.CurrentModeUpdate(mode_id))
        if options_too:
            await self.send_options()

    async def change_option(self, config_id: str, value: bool | str) -> None:
        """Change an option by ourselves, and send the change to the client."""
        self.host.settings.check_option(config_id, value)
        before = self.models
        mode_too = self.host.settings.choose_option(config_id, value)
        await self.send_options()
        if self.models is not None and self.models is not before:
            await send_model(self, self.models.current_model_id)
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
        """Send the user a notice that belongs to no message. A client without notices gets it as text."""
        if self.client.shows_notices:
            await self.update(v1.NoticeUpdate(severity, title, description, meta=None if meta is None else dict(meta)))
        else:
            await self.say(f"{title}: {description}\n" if description else f"{title}\n")

    # Work beside the answer to a prompt.

    def work(self) -> "OwnWork":
        """Work without a prompt: `async with session.work() as turn`, and then as in a turn. The client shows the session as running.

        If the client cancels the session, the block is left by a cancellation and the code after it runs. It does not wait for a prompt
        that runs: `await session.wait_idle()` before it does. A client of version 1 gets the updates alone.
        """
        from antiphon.agent.work import OwnWork

        return OwnWork(self)

    async def wait_idle(self) -> None:
        """Wait until no prompt runs or waits in the session. Not in the hook of a prompt, which would wait for itself."""
        if self._prompts is not None:
            await self._prompts.wait_idle()

    def background(
        self,
        title: str,
        kind: v1.ToolKind = v1.ToolKind.OTHER,
        *,
        name: str | None = None,
        input: Any = UNSET,
        at: "Sequence[v1.ToolLocation | str | os.PathLike[str]]" = (),
    ) -> "BackgroundCall":
        """Show a tool call that goes on beyond its turn: `async with session.background("Watch the build") as call`, in a task.

        The client lists it as background work and can cancel it alone: then the block is left, and the code after it runs. It is
        cancelled too when the session is closed, and when a client of version 1 cancels the session while no prompt runs.
        """
        from antiphon.agent.work import BackgroundCall

        def make(turn: "AgentTurn") -> "LiveCall":
            return turn.tool(title, kind, name=name, input=input, at=at)

        return BackgroundCall(self, make)

    def start_task(self, work: "Coroutine[Any, Any, None]", *, name: str | None = None) -> None:
        """Run a coroutine beyond the turn: until it ends, or the session is closed. Its error is logged."""
        self._work.start(work, name)

    @property
    def _work(self) -> "SessionWork":
        """The work of the session. Its module is loaded for agents that have some."""
        if self._known_work is None:
            from antiphon.agent.work import SessionWork

            self._known_work = SessionWork(self)
        return self._known_work

    def _prompt_id(self) -> str | None:
        """The id that the client gave to the prompt that runs, if it did."""
        return self._running_prompt

    def _shown_id(self, id: str) -> str:
        """The id of a tool call, as the client knows it."""
        return id

    def _shown(self) -> Awaitable[None]:
        """Wait until what was sent is on its way to the client."""
        return NO_WAIT

    def send_options(self) -> Awaitable[None]:
        """Send all options with their values."""
        return self.update(v1.ConfigOptionUpdate(self.host.settings.shown(self.client.shows_booleans)))

    def notify(self, notice: "Notice[P]", params: P) -> Awaitable[None]:
        """Send a notification that is not an update, in order with the updates. Await it. Params that name the session name it by our `id`."""
        if self._sender is None:
            if self._held is None:
                raise LocalProtocolError("the session is closed")
            self._held.append(_HeldNotification(notice, params))
            return NO_WAIT
        return self.client.connection.notify(notice, params)

    async def request(self, call: "Call[P, R]", params: P, *, timeout: "Timeout" = UNSET) -> R:
        """Send a request to the client. Most have a method of their own in `AgentTurn`.

        `timeout`: the seconds that the response may take, None for no timeout; by default what `protocol.timeouts` has for it.
        """
        return await self.client.connection.request(call, params, timeout=timeout)

    @property
    def closed(self) -> bool:
        """Whether nothing can be sent in it any more."""
        return self._sender is None and self._held is None


# For the service, for engines and for the programs around them.


def open_session(session: AgentSession) -> None:
    """Send what the session has kept, now that the client knows it, and let later updates leave at once."""
    held, session._held = session._held, None
    session._sender = session.client.connection.sender(session.id)
    session._quick = session._sender if session._on_update is None else None
    for each in held or ():
        try:
            _ = session.notify(*each) if isinstance(each, _HeldNotification) else session._sender.update(each)
        except Exception:  # it has no JSON form; its sender has returned long ago, and the rest must not suffer
            _log.exception("an update of a new session could not be sent")


def close_session(session: AgentSession) -> None:
    """Let nothing more be sent in a session."""
    session._sender = session._quick = session._held = None


def watch_updates(session: AgentSession, see: "Callable[[v1.Update], None] | None") -> None:
    """Call `see` with every update that is sent from now on, for a history; None ends it."""
    session._on_update = see
    session._quick = session._sender if see is None else None


def send_model(session: AgentSession, model_id: str) -> Awaitable[None]:
    """Send the current model to a client that chooses models with `session/set_model`. Other clients do not know the update."""
    return session.update(v1.CurrentModelUpdate(model_id)) if session.client.chooses_models else NO_WAIT
