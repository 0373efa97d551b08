"""Our own client, connected to an engine as its users connect it, with a record of all updates and requests."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import pytest

import antiphon
from antiphon import v1
from antiphon.client.agent import ConnectedAgent
from antiphon.client.capabilities import our_capabilities
from antiphon.client.files import Files
from antiphon.client.link import Retry
from antiphon.client.session import ClientSession, PromptContent
from antiphon.client.terminals import Terminals
from antiphon.connection.connection import Direction
from tests.engines.model.steps import Json, wait_limit
from tests.engines.places import Ground

__all__ = ["Can", "Client", "Reply", "connected"]

Decision: TypeAlias = str | Callable[[v1.RequestPermission], Any]
"""The id or kind of an option, or a function that decides."""


@dataclass
class Can:
    """What the client is able to do."""

    files: Files | None = field(default_factory=Files)
    terminals: Terminals | None = None
    forms: Callable[[v1.FormElicitation], Any] | None = None
    terminal_login: bool = False
    meta: Json | None = None
    """`_meta` of its capabilities."""


class Reply(NamedTuple):
    """The answer to a prompt: its updates, and how the turn ended."""

    updates: list[v1.Update]
    result: v1.PromptResult

    @property
    def text(self) -> str:
        return "".join(_words(self.of(v1.AgentMessageChunk)))

    @property
    def thoughts(self) -> str:
        return "".join(_words(self.of(v1.AgentThoughtChunk)))

    @property
    def stop(self) -> str:
        return str(self.result.stop_reason.value)

    def of(self, kind: type[Any]) -> list[Any]:
        """The updates of one kind."""
        return [update for update in self.updates if isinstance(update, kind)]

    @property
    def notices(self) -> str:
        """All notices as one text."""
        return "\n".join(f"{each.title}: {each.description}" for each in self.of(v1.NoticeUpdate))

    def history(self, name: str) -> list[Json]:
        """All that was sent about the first call of this name, as it stood on the wire."""
        calls = [update for update in self.updates if isinstance(update, v1.ToolCall | v1.ToolCallUpdate)]
        wanted = next((each.tool_call_id for each in calls if each.name == name), None)
        assert wanted is not None, f"no call of {name} among {[each.name for each in calls]}"
        return [_wire(each) for each in calls if each.tool_call_id == wanted]

    def call(self, name: str) -> Json:
        """The first call of this name as it is in the end."""
        whole: Json = {}
        for each in self.history(name):
            whole |= each
        return whole


def _words(chunks: list[Any]) -> list[str]:
    return [each.content.text for each in chunks if isinstance(each.content, v1.TextBlock)]


def _wire(update: v1.Update) -> Json:
    found: Json = msgspec.json.decode(msgspec.json.encode(update))
    return found


class Client:
    """A connection, the session that is used, and a list of all that came."""

    def __init__(self, at: Ground, can: Can) -> None:
        self.at = at
        self.can = can
        self.agent: ConnectedAgent
        self.session: ClientSession
        self.frames: list[Json] = []
        """What the agent sent, as it stood on the wire."""
        self.sent: list[Json] = []
        """What was sent to the agent."""
        self.between: list[v1.Update] = []
        """Updates outside of turns."""
        self.asked: list[v1.RequestPermission] = []
        self.decisions: deque[Decision] = deque()
        """Answers to questions for permission in their order; who asks more is allowed once."""
        self.forms: list[v1.FormElicitation] = []
        self._arrived = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    # What is asked of us.

    def permit(self, request: v1.RequestPermission) -> Any:
        self.asked.append(request)
        decision = self.decisions.popleft() if self.decisions else "allow_once"
        return decision(request) if callable(decision) else decision

    def fill_in(self, form: v1.FormElicitation | v1.UrlElicitation) -> Any:
        assert self.can.forms is not None and isinstance(form, v1.FormElicitation)
        self.forms.append(form)
        return self.can.forms(form)

    # What we do.

    async def open(self, cwd: Path | None = None, **more: Any) -> ClientSession:
        """A new session, which the client uses from now on."""
        self.session = await self.agent.new_session(cwd or self.at.folder, on_update=self.between.append, **more)
        return self.session

    async def load(self, session_id: str, **more: Any) -> Reply:
        """Open an earlier session: what was replayed, as if it were a turn."""
        before = len(self.between)
        self.session = await self.agent.load_session(session_id, self.at.folder, on_update=self.between.append, **more)
        return Reply(self.between[before:], v1.PromptResult(v1.StopReason.END_TURN))

    async def resume(self, session_id: str, **more: Any) -> ClientSession:
        self.session = await self.agent.resume_session(
            session_id, self.at.folder, on_update=self.between.append, **more
        )
        return self.session

    async def fork(self, session_id: str, **more: Any) -> ClientSession:
        self.session = await self.agent.fork_session(session_id, self.at.folder, on_update=self.between.append, **more)
        return self.session

    async def say(self, text: PromptContent, session: ClientSession | None = None) -> Reply:
        """One turn to its end; in the session that was opened last, or a new one if there is none."""
        if session is None and not hasattr(self, "session"):
            await self.open()
        turn = (session or self.session).prompt(text)
        async with asyncio.timeout(wait_limit()):
            return Reply([update async for update in turn], turn.result)

    # What came.

    def see(self, direction: Direction, _: float, frame: bytes) -> None:
        (self.frames if direction == "in" else self.sent).append(msgspec.json.decode(frame))
        task = asyncio.get_running_loop().create_task(self._tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self) -> None:
        async with self._arrived:
            self._arrived.notify_all()

    async def until(self, holds: Callable[[], Any]) -> Any:
        """Wait until something holds; looked at whenever a frame has come or gone. What it is then."""
        async with asyncio.timeout(wait_limit()), self._arrived:
            while not (found := holds()):
                await self._arrived.wait()
            return found

    @property
    def updates(self) -> list[Json]:
        """All updates of all sessions, as they stood on the wire."""
        return [each["params"]["update"] for each in self.frames if each.get("method") == "session/update"]

    def updates_of(self, kind: str) -> list[Json]:
        """Those of one kind."""
        return [each for each in self.updates if each["sessionUpdate"] == kind]

    @property
    def all_text(self) -> str:
        """All that the agent sent, in turns and between them."""
        return "".join(each["content"]["text"] for each in self.updates_of("agent_message_chunk"))

    def option(self, config_id: str) -> v1.SelectConfig:
        """A setting of the session, as it stands."""
        for option in self.session.config_options or ():
            if isinstance(option, v1.SelectConfig) and option.id == config_id:
                return option
        raise AssertionError(f"no setting {config_id} in {self.session.config_options}")

    def choices(self, config_id: str) -> list[str]:
        """The values that a setting may have."""
        return [each.value for each in self.option(config_id).options if isinstance(each, v1.SelectOption)]


@asynccontextmanager
async def connected(at: Ground, can: Can | None = None, command: Sequence[str] = ()) -> AsyncIterator[Client]:
    """The agent as a process, introduced to a client that is able to do these things."""
    can = can or Can()
    client = Client(at, can)

    def announced(*what: Any, **more: Any) -> v1.ClientCapabilities:
        # Our library says what it can do and no more; some clients say things that are in no schema.
        return msgspec.structs.replace(our_capabilities(*what, **more), meta=can.meta)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("antiphon.client.connect.our_capabilities", announced)
        connecting = antiphon.connect(
            command or at.agent, cwd=at.folder, env=at.environment, permission=client.permit,
            elicitation=client.fill_in if can.forms is not None else None, files=can.files, terminals=can.terminals,
            terminal_login=can.terminal_login, retry=Retry(()),
        )  # fmt: skip
        client.agent = await connecting.__aenter__()
    try:
        client.agent.connection.tap(client.see)
        yield client
    finally:
        await connecting.__aexit__(None, None, None)
