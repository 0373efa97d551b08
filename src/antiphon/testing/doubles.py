"""The two sides for tests of the other: a client that answers as an editor with a user does, and an agent with a script."""

import asyncio
import os
from collections.abc import Awaitable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict, TypeVar

from antiphon.agent.agent import Agent
from antiphon.agent.turn import AgentTurn
from antiphon.client.agent import ConnectedAgent
from antiphon.client.capabilities import DEFAULT_VERSIONS
from antiphon.client.connect import DEFAULT_FILES, connect
from antiphon.client.files import Files
from antiphon.client.handlers import PermissionAnswer, PermissionHandler, allow_once
from antiphon.client.session import ClientSession
from antiphon.client.terminals import Terminals
from antiphon.errors import LocalProtocolError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.client.link import Target

__all__ = ["BlockingClient", "EditorOptions", "RecordingClient", "ScriptedAgent"]

T = TypeVar("T")


class EditorOptions(TypedDict, total=False):
    """What a recording client answers; `RecordingClient` describes each."""

    permission: PermissionHandler
    answers: Mapping[str, Any] | None
    files: Mapping[str, str] | None
    terminals: bool
    cwd: str | os.PathLike[str]
    versions: Sequence[int]


class RecordingClient:
    """A client for tests of an agent: `async with RecordingClient(agent) as client`. It keeps everything that the agent sends.

    `agent`: an `Agent`, a name such as `"demo"`, or the words of a command. `permission` answers permission requests; all are allowed once
    unless given. `answers`: the values for the fields of forms, by their names; without it the client has no forms. `files`: the buffers
    of the editor, by their path in `cwd`; the agent reads them and writes into them, and the disk stays as it is. `terminals`: run the
    commands of the agent. `cwd`: the directory of the session. `versions`: those of ACP that the client speaks, the preferred one first.
    """

    def __init__(
        self,
        agent: "Target",
        *,
        permission: PermissionHandler = allow_once,
        answers: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
        terminals: bool = False,
        cwd: str | os.PathLike[str] = "/",
        versions: Sequence[int] = DEFAULT_VERSIONS,
    ) -> None:
        self.updates: list[v1.Update] = []
        """Every update of the turns, in their order."""
        self.permissions: list[v1.RequestPermission] = []
        """Every permission request."""
        self.questions: list[v1.FormElicitation] = []
        """Every form that the agent has asked the user to fill in."""
        self.files = dict(files or {})
        """The buffers as they are now: what the agent has written is in them."""
        self._permission = permission
        self._answers = answers
        self._cwd = os.path.abspath(cwd)
        self._connecting = connect(
            agent,
            permission=self._permit,
            versions=versions,
            elicitation=None if answers is None else self._answer,
            files=DEFAULT_FILES if files is None else Files(write=True, unsaved=self._read, saved=self._write),
            terminals=Terminals() if terminals else None,
        )
        self._agent: ConnectedAgent | None = None
        self._session: ClientSession | None = None

    def _permit(self, request: v1.RequestPermission) -> "PermissionAnswer | Awaitable[PermissionAnswer]":
        self.permissions.append(request)
        return self._permission(request)

    def _answer(self, request: "v1.CreateElicitation") -> v1.Accepted | v1.Declined:
        if not isinstance(request, v1.FormElicitation) or self._answers is None:
            return v1.Declined()
        self.questions.append(request)
        wanted = request.requested_schema.properties
        return v1.Accepted({name: value for name, value in self._answers.items() if name in wanted})

    def _read(self, path: Path) -> str | None:
        return self.files.get(os.path.relpath(path, self._cwd))

    def _write(self, path: Path, text: str) -> bool:
        self.files[os.path.relpath(path, self._cwd)] = text
        return True

    async def __aenter__(self) -> Self:
        self._agent = await self._connecting
        self._session = await self._agent.new_session(self._cwd)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._agent is not None:
            await self._agent.close()

    @property
    def agent(self) -> ConnectedAgent:
        """The agent as a client sees it, for everything that has no short form here."""
        if self._agent is None:
            raise LocalProtocolError("not connected yet", hint="async with RecordingClient(agent) as client")
        return self._agent

    @property
    def session(self) -> ClientSession:
        """The session in which `prompt` prompts."""
        if self._session is None:
            raise LocalProtocolError("not connected yet", hint="async with RecordingClient(agent) as client")
        return self._session

    async def prompt(self, content: str | Sequence[v1.ContentBlock]) -> v1.PromptResult:
        """Send a prompt, record its updates, and return why the turn ended."""
        turn = self.session.prompt(content)
        async for update in turn:
            self.updates.append(update)
        return turn.result

    @property
    def text(self) -> str:
        """All text of the agent's messages so far."""
        chunks = [update.content for update in self.updates if isinstance(update, v1.AgentMessageChunk)]
        return "".join(content.text for content in chunks if isinstance(content, v1.TextBlock))


class BlockingClient:
    """A connected `RecordingClient` for tests without `async`: the fixture `acp_client` makes it."""

    def __init__(self, recording: RecordingClient, runner: asyncio.Runner) -> None:
        self.recording = recording
        """The client with `async` methods; `run` runs them."""
        self._runner = runner

    def prompt(self, content: str | Sequence[v1.ContentBlock]) -> v1.PromptResult:
        """Send a prompt, record its updates, and return why the turn ended."""
        return self.run(self.recording.prompt(content))

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run anything else, such as `client.recording.session.set_mode("plan")`, to its end."""
        return self._runner.run(coroutine)

    @property
    def text(self) -> str:
        """All text of the agent's messages so far."""
        return self.recording.text

    @property
    def updates(self) -> list[v1.Update]:
        """Every update of the turns, in their order."""
        return self.recording.updates

    @property
    def permissions(self) -> list[v1.RequestPermission]:
        """Every permission request."""
        return self.recording.permissions

    @property
    def questions(self) -> list[v1.FormElicitation]:
        """Every form that the agent has asked the user to fill in."""
        return self.recording.questions

    @property
    def files(self) -> dict[str, str]:
        """The buffers as they are now."""
        return self.recording.files


class ScriptedAgent(Agent):
    """An agent for tests of a client: each prompt is answered by the next turn of its script.

    A turn is a sequence of what it sends: text is a piece of the agent's message, anything else an update of its own. Without a turn that
    is left it answers nothing.
    """

    def __init__(self, *turns: Iterable[str | v1.Update], name: str = "scripted") -> None:
        super().__init__(name)
        self.prompts: list[str] = []
        """The text of every prompt, in their order."""
        self._turns = [list(turn) for turn in turns]

    async def prompt(self, turn: AgentTurn) -> None:
        """Send the next turn of the script."""
        self.prompts.append(turn.text)
        for each in self._turns.pop(0) if self._turns else ():
            await (turn.say(each) if isinstance(each, str) else turn.update(each))
