"""A session of ours in front of one of the agent: prompts and settings in, updates out.

Updates of the agent come in order, and its requests after them. When its process ended, the next use of the
session opens it again, with all settings.
"""

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import structs

from antiphon.agent.prompts import STEERING
from antiphon.config.project_files import ANY
from antiphon.engines.acp.errors import check_end, request_errors
from antiphon.engines.acp.remote_session import RemoteSession
from antiphon.engines.acp.requests import AgentRequests, AnyCall, ClientRequest
from antiphon.engines.base import EngineSession
from antiphon.engines.content import PicturePiece, Piece, begins_with_command, pieces_of, reader_of
from antiphon.engines.project import Project
from antiphon.errors import AcpError, Code, ConnectionClosed, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.methods import Call, Notice
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.client.relay import LiveAgent
    from antiphon.engines.acp.hub import AcpHub

__all__ = ["CANCEL_LIMIT", "AcpSession", "UpdateForwarder", "blocks_for"]

# Updates on their way to the client: settings are noted, open calls are remembered.
# A call may show a terminal of this machine, which the client cannot show, so it gets the output as text.

_OVER: Final = (v1.ToolStatus.COMPLETED, v1.ToolStatus.FAILED)


class UpdateForwarder:
    """Forwards the updates of one session to its client."""

    def __init__(self, session: "AgentSession") -> None:
        self.silent = False
        """Whether a history is replayed that the client did not request."""
        self.answering: AgentRequests
        """The requests of the session, which know the terminals. Set by the session that makes both."""
        self._session = session
        self._open_calls: dict[str, None] = {}
        self._content: dict[str, list[v1.ToolContent]] = {}
        """The content of calls that show a terminal of this machine."""

    def forward(self, update: v1.Update) -> Awaitable[None] | None:
        """Forward an update. Await what it returns."""
        match update:
            case v1.ToolCall() | v1.ToolCallUpdate():
                return None if self.silent else self._forward_call(update)
            case v1.CurrentModeUpdate() | v1.ConfigOptionUpdate() | v1.CurrentModelUpdate():
                self._note(update)
            case _ if self.silent and not isinstance(update, v1.StateUpdate | v1.Unknown):
                return None
            case _:
                pass
        return self._session.update(update)

    def _note(self, update: v1.CurrentModeUpdate | v1.ConfigOptionUpdate | v1.CurrentModelUpdate) -> None:
        """Note a setting without the methods of the session: the agent itself reports what changes with it."""
        settings = self._session.host.settings
        match update:
            case v1.ConfigOptionUpdate():
                settings.options = list(update.config_options)
            case v1.CurrentModeUpdate() if settings.modes is not None:
                settings.modes = structs.replace(settings.modes, current_mode_id=update.current_mode_id)
            case v1.CurrentModelUpdate() if settings.models is not None:
                settings.models = structs.replace(settings.models, current_model_id=update.current_model_id)
            case _:
                pass

    async def _forward_call(self, update: v1.ToolCall | v1.ToolCallUpdate) -> None:
        id = update.tool_call_id
        if update.status in _OVER:
            self._open_calls.pop(id, None)
        elif isinstance(update, v1.ToolCall) or id in self._open_calls:
            self._open_calls[id] = None
        content = update.content
        if isinstance(content, list):
            self._content.pop(id, None)
            if any(self._is_local(item) for item in content):
                self._content[id] = content
                update = structs.replace(update, content=await self._with_output(content))
        await self._session.update(update)

    def _is_local(self, item: v1.ToolContent) -> bool:
        return isinstance(item, v1.TerminalItem) and self.answering.is_local(item.terminal_id)

    async def _with_output(self, content: list[v1.ToolContent]) -> list[v1.ToolContent]:
        parts: list[v1.ToolContent] = []
        for item in content:
            if isinstance(item, v1.TerminalItem) and self.answering.is_local(item.terminal_id):
                parts += _as_text(await self.answering.output_of(item.terminal_id))
            else:
                parts.append(item)
        return parts

    async def released(self, terminal_id: str, output: str) -> None:
        """Replace a terminal of this machine by its output in the calls that show it, before it is released."""
        for id, content in list(self._content.items()):
            if any(isinstance(item, v1.TerminalItem) and item.terminal_id == terminal_id for item in content):
                parts: list[v1.ToolContent] = []
                for item in content:
                    mine = isinstance(item, v1.TerminalItem) and item.terminal_id == terminal_id
                    parts += _as_text(output) if mine else [item]
                self._content[id] = parts
                await self._session.update(v1.ToolCallUpdate(id, content=await self._with_output(parts)))

    async def fail_open_calls(self) -> None:
        """Fail the open calls, because the agent is gone."""
        calls, self._open_calls = self._open_calls, {}
        self._content.clear()
        for id in calls:
            if not self._session.closed:
                await self._session.update(v1.ToolCallUpdate(id, status=v1.ToolStatus.FAILED))


def _as_text(output: str) -> list[v1.ToolContent]:
    return [v1.ContentItem(v1.TextBlock(output))] if output else []


# A prompt as this agent takes it: content that is not in its capabilities becomes text in the same position.

PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Kinds of picture that are shown as such to an agent that takes pictures, also where they came as an attached file."""


async def blocks_for(turn: "AgentTurn", takes: v1.PromptCapabilities) -> list[v1.ContentBlock]:
    """Return the prompt, block by block. A slash command stays at its beginning."""
    blocks = list(turn.prompt)
    if all(_taken(block, takes) for block in blocks):
        return blocks
    if begins_with_command(blocks):
        first = next(each for each in blocks if isinstance(each, v1.TextBlock) and each.text.strip())
        blocks = [first, *(each for each in blocks if each is not first)]
    found: list[v1.ContentBlock] = []
    for block in blocks:
        found += [block] if _taken(block, takes) else await _as_text_blocks(turn, block, takes)
    return found


def _taken(block: v1.ContentBlock, takes: v1.PromptCapabilities) -> bool:
    match block:
        case v1.ImageBlock():
            return takes.image
        case v1.AudioBlock():
            return takes.audio
        case v1.EmbeddedResource():
            return takes.embedded_context
        case _:
            return True


async def _as_text_blocks(
    turn: "AgentTurn", block: v1.ContentBlock, takes: v1.PromptCapabilities
) -> list[v1.ContentBlock]:
    pictures = PICTURES if takes.image else ()
    pieces = await pieces_of([block], read=reader_of(turn), cwd=turn.session.cwd, pictures=pictures)
    return [_block(piece) for piece in reversed(pieces)]  # the mention first, then what it mentions


def _block(piece: Piece) -> v1.ContentBlock:
    if isinstance(piece, PicturePiece):
        return v1.ImageBlock(data=piece.data, mime_type=piece.mime_type)
    return v1.TextBlock(getattr(piece, "text", ""))


CANCEL_LIMIT: Final = 10.0
"""Seconds that an agent may take to answer a cancelled turn before it counts as hung. The client does not wait for it, the next prompt
does; and ending it ends the turns of all its sessions, so this is longer than a tool takes to be stopped."""

ANSWER_WAIT: Final = 2.0
"""Seconds of these that the client waits for, because most agents send a last message."""

CLOSE_LIMIT: Final = 2.0
"""Seconds that an agent may take to close a session before we go on without its answer."""

_STEER: Final = Call(STEERING, v1.Prompt, dict)

T = TypeVar("T")

_log = logging.getLogger(__name__)


class AcpSession(EngineSession):
    """A session of an ACP agent."""

    def __init__(self, session: "AgentSession", hub: "AcpHub") -> None:
        self.session = session
        self._hub = hub
        self._showing = UpdateForwarder(session)
        self._answering = self._showing.answering = AgentRequests(session, self._showing.released)
        self._remote = RemoteSession(self, hub, self._showing, self._answering)
        self._turn: asyncio.Task[v1.PromptResult] | None = None
        self._cancelling: asyncio.Task[None] | None = None

    # Opening.

    async def create(self) -> None:
        """Open a new session."""
        with request_errors(self._hub.identity):
            await self._remote.create()
        await self._warn()

    async def restore(self, *, replay: bool) -> None:
        """Open an earlier session; with `replay` its history is sent again."""
        with request_errors(self._hub.identity):
            await self._remote.restore(replay=replay)
        await self._warn()

    async def copy(self, source: str) -> None:
        """Fork another session."""
        with request_errors(self._hub.identity):
            await self._remote.copy(source)
        await self._warn()

    async def _warn(self) -> None:
        """Show what the agent may read in a project that is not trusted. Antiphon cannot prevent that."""
        await Project(self.session, self._hub.identity.name, ANY).send_warning()

    def lives_in(self, agent: "LiveAgent") -> bool:
        """Whether the session is open in this process."""
        return self._remote.agent is agent

    async def lost(self) -> None:
        """End what the agent left open."""
        await self._remote.drained()
        await self._answering.release()
        await self._showing.fail_open_calls()

    # Requests and notifications of the agent.

    async def handle_request(self, call: AnyCall, params: ClientRequest) -> object:
        """Handle a request of the agent."""
        await self._remote.drained()
        return await self._answering.answer(call, params)

    async def forward_request(self, call: AnyCall, params: object) -> object:
        """Forward a request with an extension method."""
        await self._remote.drained()
        return await self._answering.ask(call, params)

    async def forward_notification(self, notice: "Notice[T]", params: T) -> None:
        """Forward a notification that is not an update, through the session, which may have another id at the client."""
        await self._remote.drained()
        with suppress(AcpError):
            await self.session.notify(notice, params)

    # Turns.

    async def prompt(self, turn: "AgentTurn") -> "Outcome":
        with request_errors(self._hub.identity):
            agent = await self._ready()
            blocks = await blocks_for(turn, agent.initialized.agent_capabilities.prompt_capabilities)
            with self._remote.with_summary(blocks) as reminded:
                result = await self._run_turn(agent, v1.Prompt(self._remote.id, reminded))
            check_end(self._hub.identity, result)
        return structs.replace(result, session_id=None)

    async def _run_turn(self, agent: "LiveAgent", prompt: v1.Prompt) -> v1.PromptResult:
        work = agent.work(m.PROMPT, prompt, prompt.session_id)
        self._turn = working = asyncio.get_running_loop().create_task(work, name="a turn of an agent")
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError:
            self._answering.cancel_questions()
            self._cancelling = self._hub.do(self._cancel_turn(agent, working))
            await asyncio.wait([self._cancelling], timeout=ANSWER_WAIT)
            raise
        await self._remote.drained()
        try:
            return working.result()
        except RequestRefused as error:
            if (
                error.code == Code.SESSION_EXPIRED
            ):  # the next prompt opens it again; this one may have done some of its work
                self._remote.agent = None
            raise

    async def _cancel_turn(self, agent: "LiveAgent", working: "asyncio.Task[v1.PromptResult]") -> None:
        """Cancel the turn as the protocol has it; kill an agent that does not respond."""
        with suppress(ConnectionClosed):
            agent.post(m.CANCEL, v1.Cancel(self._remote.id))
        _, hung = await asyncio.wait([working], timeout=CANCEL_LIMIT)
        if hung:
            _log.warning("%s does not end a cancelled turn: it is ended", self._hub.identity.name)
            await self._hub.end(agent)
            await asyncio.wait([working])
        if not working.cancelled():
            working.exception()  # the turn is over
        await self._remote.drained()

    async def _ready(self) -> "LiveAgent":
        """Return the agent with this session open, after a cancelled turn has ended."""
        if self._cancelling is not None:
            await asyncio.wait([self._cancelling])
        return await self._remote.ready()

    async def steer(self, turn: "AgentTurn") -> bool:
        agent = self._remote.agent
        if agent is None or agent.ended or self._turn is None or self._turn.done() or not _steers(agent):
            return False
        blocks = await blocks_for(turn, agent.initialized.agent_capabilities.prompt_capabilities)
        addition = v1.Prompt(self._remote.id, blocks, meta={"steering": {"idleBehavior": "promptRequired"}})
        try:
            answer = await agent.request(_STEER, addition)
        except (RequestRefused, ConnectionClosed):  # the client still has the addition, and sends it as a prompt
            return False
        return answer.get("outcome") == "injected"

    def cancel(self) -> None:
        agent = self._remote.agent
        if agent is not None and not agent.ended:
            agent.post(m.CANCEL, v1.Cancel(self._remote.id))

    # Settings.

    async def set_mode(self, mode_id: str) -> None:
        with request_errors(self._hub.identity):
            agent = await self._ready()
            await agent.request(m.SET_MODE, v1.SetMode(self._remote.id, mode_id))

    async def set_model(self, model_id: str) -> None:
        with request_errors(self._hub.identity):
            agent = await self._ready()
            await agent.request(m.SET_MODEL, v1.SetModel(self._remote.id, model_id))

    async def set_config_option(self, config_id: str, value: bool | str) -> None:
        with request_errors(self._hub.identity):
            agent = await self._ready()
            answer = await agent.request(m.SET_CONFIG_OPTION, v1.SetConfigOption(self._remote.id, config_id, value))
        if answer.config_options:
            self.session.host.settings.options = list(answer.config_options)

    async def close(self) -> None:
        agent = self._remote.agent
        if agent is not None and not agent.ended and agent.abilities.has("session/close"):
            try:
                async with asyncio.timeout(CLOSE_LIMIT):
                    await agent.request(m.CLOSE_SESSION, v1.CloseSession(self._remote.id))
            except (AcpError, TimeoutError) as error:
                _log.info("%s did not close a session: %s", self._hub.identity.name, error)
        await self._remote.close()
        await self._answering.release()


def _steers(agent: "LiveAgent") -> bool:
    reported = (agent.initialized.meta or {}).get("steering")
    return isinstance(reported, dict) and reported.get("supported") is True
