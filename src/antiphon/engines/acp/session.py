"""A session with an agent: one of its own, and one of ours before it.

What the agent says comes through an ear, in order, and what it asks after that. When its process ended, the next thing that is asked of the
session opens it again, with all that was chosen.
"""

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from antiphon.agent.prompts import STEERING
from antiphon.config.project_files import ANY
from antiphon.engines.acp.answering import Answering
from antiphon.engines.acp.opening import Opening
from antiphon.engines.acp.prompts import blocks_for
from antiphon.engines.acp.refusing import check_end, clearly
from antiphon.engines.acp.showing import Showing
from antiphon.engines.base import EngineSession
from antiphon.engines.project import Project
from antiphon.errors import AcpError, Code, ConnectionClosed, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.methods import Call, Notice
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.turn import AgentTurn
    from antiphon.client.relay import Life
    from antiphon.engines.acp.hub import Hub

__all__ = ["CANCEL_LIMIT", "AcpSession"]

CANCEL_LIMIT: Final = 10.0
"""Seconds that an agent may take to answer a cancelled turn before it counts as hung. The client does not wait for it, the next prompt
does; and ending it ends the turns of all its sessions, so this is longer than a tool takes to be stopped."""

ANSWER_WAIT: Final = 2.0
"""Seconds of these that the client waits for, because most agents have a last word."""

CLOSE_LIMIT: Final = 2.0
"""Seconds that an agent may take to close a session before we go on without its answer."""

_STEER: Final = Call(STEERING, v1.Prompt, dict)

_log = logging.getLogger(__name__)


class AcpSession(EngineSession):
    """An agent at work."""

    def __init__(self, session: "AgentSession", hub: "Hub") -> None:
        self.session = session
        self._hub = hub
        self._showing = Showing(session)
        self._answering = self._showing.answering = Answering(session, self._showing.released)
        self._opening = Opening(self, hub, self._showing, self._answering)
        self._turn: asyncio.Task[v1.PromptResult] | None = None
        self._calling_off: asyncio.Task[None] | None = None

    # Opening.

    async def create(self) -> None:
        """From nothing."""
        with clearly(self._hub.agent):
            await self._opening.create()
        await self._warn()

    async def restore(self, *, telling: bool) -> None:
        """As it was left; `telling` all that was said in it."""
        with clearly(self._hub.agent):
            await self._opening.restore(telling=telling)
        await self._warn()

    async def copy(self, source: str) -> None:
        """As another stands."""
        with clearly(self._hub.agent):
            await self._opening.copy(source)
        await self._warn()

    async def _warn(self) -> None:
        """Tell what the agent may read in a project that is not trusted. What it does with that is not ours to prevent."""
        await Project(self.session, self._hub.agent.name, ANY).warn()

    def lives_in(self, life: "Life") -> bool:
        """Whether it is open there."""
        return self._opening.life is life

    async def lost(self) -> None:
        """The agent is gone: what it left is ended."""
        await self._opening.caught_up()
        await self._answering.free()
        await self._showing.agent_gone()

    # What the agent asks.

    async def asked(self, call: Call[Any, Any], params: Any) -> Any:
        """It asks something."""
        await self._opening.caught_up()
        return await self._answering.answer(call, params)

    async def asked_otherwise(self, call: Call[Any, Any], params: Any) -> object:
        """It asks something that is not the protocol's."""
        await self._opening.caught_up()
        return await self._answering.ask(call, params)

    async def told_otherwise(self, notice: Notice[Any], params: Any) -> None:
        """It tells something that is no update. The session passes it on: it may have another id at the client."""
        await self._opening.caught_up()
        with suppress(AcpError):
            await self.session.notify(notice, params)

    # Working.

    async def prompt(self, turn: "AgentTurn") -> "Outcome":
        with clearly(self._hub.agent):
            life = await self._ready()
            blocks = await blocks_for(turn, life.welcome.agent_capabilities.prompt_capabilities)
            with self._opening.reminding(blocks) as reminded:
                result = await self._play(life, v1.Prompt(self._opening.id, reminded))
            check_end(self._hub.agent, result)
        return structs.replace(result, session_id=None)

    async def _play(self, life: "Life", prompt: v1.Prompt) -> v1.PromptResult:
        work = life.work(m.PROMPT, prompt, prompt.session_id)
        self._turn = working = asyncio.get_running_loop().create_task(work, name="a turn of an agent")
        try:
            await asyncio.wait([working])
        except asyncio.CancelledError:
            self._answering.call_off_questions()
            self._calling_off = self._hub.do(self._call_off(life, working))
            await asyncio.wait([self._calling_off], timeout=ANSWER_WAIT)
            raise
        await self._opening.caught_up()
        try:
            return working.result()
        except RequestRefused as error:
            if (
                error.code == Code.SESSION_EXPIRED
            ):  # the next prompt opens it again; this one may have done some of its work
                self._opening.life = None
            raise

    async def _call_off(self, life: "Life", working: "asyncio.Task[v1.PromptResult]") -> None:
        """Cancel as the protocol has it; end an agent that does not listen."""
        with suppress(ConnectionClosed):
            life.post(m.CANCEL, v1.Cancel(self._opening.id))
        _, hung = await asyncio.wait([working], timeout=CANCEL_LIMIT)
        if hung:
            _log.warning("%s does not end a cancelled turn: it is ended", self._hub.agent.name)
            await self._hub.end(life)
            await asyncio.wait([working])
        if not working.cancelled():
            working.exception()  # no news: the turn is over
        await self._opening.caught_up()

    async def _ready(self) -> "Life":
        """The agent with this session open. What was called off has come to its end."""
        if self._calling_off is not None:
            await asyncio.wait([self._calling_off])
        return await self._opening.ready()

    async def steer(self, turn: "AgentTurn") -> bool:
        life = self._opening.life
        if life is None or life.ended or self._turn is None or self._turn.done() or not _steers(life):
            return False
        blocks = await blocks_for(turn, life.welcome.agent_capabilities.prompt_capabilities)
        addition = v1.Prompt(self._opening.id, blocks, meta={"steering": {"idleBehavior": "promptRequired"}})
        try:
            answer = await life.request(_STEER, addition)
        except (RequestRefused, ConnectionClosed):  # the client keeps what the user said, and sends it as a prompt
            return False
        return answer.get("outcome") == "injected"

    def cancel(self) -> None:
        life = self._opening.life
        if life is not None and not life.ended:
            life.post(m.CANCEL, v1.Cancel(self._opening.id))

    # Changing.

    async def set_mode(self, mode_id: str) -> None:
        with clearly(self._hub.agent):
            life = await self._ready()
            await life.request(m.SET_MODE, v1.SetMode(self._opening.id, mode_id))

    async def set_model(self, model_id: str) -> None:
        with clearly(self._hub.agent):
            life = await self._ready()
            await life.request(m.SET_MODEL, v1.SetModel(self._opening.id, model_id))

    async def set_config_option(self, config_id: str, value: bool | str) -> None:
        with clearly(self._hub.agent):
            life = await self._ready()
            answer = await life.request(m.SET_CONFIG_OPTION, v1.SetConfigOption(self._opening.id, config_id, value))
        if answer.config_options:
            self.session.settings.options = list(answer.config_options)

    async def close(self) -> None:
        life = self._opening.life
        if life is not None and not life.ended and life.abilities.has("session/close"):
            try:
                async with asyncio.timeout(CLOSE_LIMIT):
                    await life.request(m.CLOSE_SESSION, v1.CloseSession(self._opening.id))
            except (AcpError, TimeoutError) as error:
                _log.info("%s did not close a session: %s", self._hub.agent.name, error)
        await self._opening.close()
        await self._answering.free()


def _steers(life: "Life") -> bool:
    said = (life.welcome.meta or {}).get("steering")
    return isinstance(said, dict) and said.get("supported") is True
