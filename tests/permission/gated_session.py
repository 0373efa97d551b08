"""What tests of the gate share: an agent over memory that does what a test says, and a user who answers from a list."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from antiphon.client.files import Files
from antiphon.client.launch import GuardedFiles, GuardedTerminals
from antiphon.client.session import ClientSession
from antiphon.client.terminals import Terminals
from antiphon.connection.connection import Connection
from antiphon.errors import RequestRefused
from antiphon.permission.gate import PermissionChoice, PermissionGate, Question
from antiphon.policy import Rules, Verdict
from antiphon.protocol import v1
from antiphon.protocol.methods import Call
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.permission import PermissionOptionKind as Kind
from antiphon.store.database import Database
from antiphon.store.decisions import AuditEntry, AuditStore, DecisionStore
from tests.client.talker import END, Talker
from tests.waits import idle

P = TypeVar("P")
R = TypeVar("R")

ONCE = PermissionChoice(Verdict.ALLOW)
NO = PermissionChoice(Verdict.DENY)

OPTIONS = [
    v1.PermissionOption("A", "Always", Kind.ALLOW_ALWAYS),
    v1.PermissionOption("N", "Never", Kind.REJECT_ALWAYS),
    v1.PermissionOption("n", "No", Kind.REJECT_ONCE),
    v1.PermissionOption("y", "Yes", Kind.ALLOW_ONCE),
]


def rules(*allow: str, deny: Iterable[str] = (), ask: Iterable[str] = ()) -> Rules:
    return Rules.parse(allow=allow, deny=deny, ask=ask, source="test")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class User:
    """A user who answers questions with these, one after the other; one question more is an error."""

    def __init__(self, *answers: PermissionChoice) -> None:
        self.asked: list[Question] = []
        self._answers = list(answers)

    async def __call__(self, question: Question) -> PermissionChoice:
        self.asked.append(question)
        await idle()
        assert self._answers, f"asked too often: {question.action}"
        return self._answers.pop(0)


class AgentActions:
    """The actions of an agent in its turn."""

    def __init__(self, connection: Connection, session_id: str, cwd: Path) -> None:
        self._connection = connection
        self._session = session_id
        self._cwd = cwd

    async def ask(self, *, options: list[v1.PermissionOption] | None = None, **call: Any) -> v1.PermissionOutcome:
        question = v1.RequestPermission(
            self._session, v1.ToolCallPatch("t", **call), OPTIONS if options is None else options
        )
        return (await self._connection.request(m.REQUEST_PERMISSION, question)).outcome

    async def ask_to_run(self, line: str) -> v1.PermissionOutcome:
        return await self.ask(name="Bash", kind=v1.ToolKind.EXECUTE, raw_input={"command": line})

    async def ask_to_edit(self, path: str, text: str | None = None) -> v1.PermissionOutcome:
        place = str(self._cwd / path)
        content: list[v1.ToolContent] = [] if text is None else [v1.Diff(place, text)]
        return await self.ask(name="Edit", kind=v1.ToolKind.EDIT, raw_input={"path": place}, content=content)

    async def write(self, path: str, text: str = "words") -> str | None:
        """Write a file and return None, or the error that the agent gets."""
        return await self._try(m.WRITE_TEXT_FILE, v1.WriteTextFile(self._session, str(self._cwd / path), text))

    async def read(self, path: str) -> str | None:
        return await self._try(m.READ_TEXT_FILE, v1.ReadTextFile(self._session, str(self._cwd / path)))

    async def run(self, command: str, *args: str, **more: Any) -> str | None:
        try:
            made = await self._connection.request(
                m.CREATE_TERMINAL, v1.CreateTerminal(self._session, command, args=list(args), **more)
            )
        except RequestRefused as error:
            return str(error)
        await self._connection.request(m.WAIT_FOR_EXIT, v1.WaitForExit(self._session, made.terminal_id))
        await self._connection.request(m.RELEASE_TERMINAL, v1.ReleaseTerminal(self._session, made.terminal_id))
        return None

    async def _try(self, call: Call[P, R], params: P) -> str | None:
        try:
            await self._connection.request(call, params)
        except RequestRefused as error:
            return str(error)
        return None


Play = Callable[[AgentActions], Awaitable[None]]


class GatedSession:
    """A session behind a permission gate, and turns in which the agent does what a test says."""

    def __init__(self, session: ClientSession, talker: Talker, cwd: Path) -> None:
        self.session = session
        self._cwd = cwd
        self._talker = talker
        self._play: Play | None = None
        talker.router.on_request(m.PROMPT, self._prompt)

    async def turn(self, play: Play) -> v1.PromptResult:
        self._play = play
        return await self.session.prompt("go")

    async def _prompt(self, prompt: v1.Prompt) -> v1.PromptResult:
        assert self._talker.connection is not None and self._play is not None
        await self._play(AgentActions(self._talker.connection, prompt.session_id, self._cwd))
        return END


@asynccontextmanager
async def gated_session(gate: PermissionGate, cwd: Path) -> AsyncIterator[GatedSession]:
    talker = Talker()
    handlers: dict[str, Any] = {
        "permission": gate.permission,
        "files": GuardedFiles(Files(write=True), gate),
        "terminals": GuardedTerminals(Terminals(), gate),
    }
    async with talker.connect(**handlers) as agent:
        yield GatedSession(await agent.new_session(cwd), talker, cwd)


def stores(database: Database) -> dict[str, Any]:
    return {"decisions": DecisionStore(database), "audit": AuditStore(database)}


async def audited(database: Database) -> list[AuditEntry]:
    return await AuditStore(database).latest(1000)
