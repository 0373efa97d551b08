"""An agent written with the official Python SDK, as its users write one: `python python_agent.py`.
With `serve` it listens on a port of the loopback interface, and prints it.

It plays the scenario that the words of the prompt ask for: /all, /edit, /read, /run, /slow, /fail, or a small answer.
The same file runs under 0.12.1 and under the 1.0 candidates; what only one of them can say is looked up by name.
"""

import asyncio
import socket
import sys
from typing import Any, cast

import acp
from acp import schema

Update = Any  # the SDK writes its union out at every use and gives it no name

MODES = schema.SessionModeState(
    current_mode_id="ask",
    available_modes=[schema.SessionMode(id="ask", name="Ask"), schema.SessionMode(id="go", name="Go")],
)
OPTIONS = [
    schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    schema.PermissionOption(option_id="always", name="Always", kind="allow_always"),
    schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
    schema.PermissionOption(option_id="never", name="Never", kind="reject_always"),
]


class Session:
    """What the agent remembers of one session."""

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self.mode = "ask"
        self.tempo = "slow"
        self.history: list[Update] = []
        self.cancelled = asyncio.Event()

    def modes(self) -> schema.SessionModeState:
        return MODES.model_copy(update={"current_mode_id": self.mode})

    def options(self) -> list[Any]:
        values = [schema.SessionConfigSelectOption(value=word, name=word.title()) for word in ("slow", "fast")]
        return [
            schema.SessionConfigOptionSelect(
                type="select", id="tempo", name="Tempo", current_value=self.tempo, options=values
            )
        ]


def text(words: str) -> schema.TextContentBlock:
    return schema.TextContentBlock(type="text", text=words)


def say(words: str) -> schema.AgentMessageChunk:
    return schema.AgentMessageChunk(session_update="agent_message_chunk", content=text(words))


def shown(words: str) -> schema.ContentToolCallContent:
    return schema.ContentToolCallContent(type="content", content=text(words))


def started(call: str, title: str, kind: Any, content: list[Any] | None = None) -> schema.ToolCallStart:
    return schema.ToolCallStart(
        session_update="tool_call", tool_call_id=call, title=title, kind=kind, status="pending", content=content
    )


def progress(call: str, status: Any, content: list[Any] | None = None) -> schema.ToolCallProgress:
    return schema.ToolCallProgress(session_update="tool_call_update", tool_call_id=call, status=status, content=content)


def everything(session: Session) -> list[Update]:
    """One update of every kind that this version of the SDK has a type for."""
    diff = schema.FileEditToolCallContent(type="diff", path=f"{session.cwd}/a", old_text="a", new_text="b")
    command = schema.AvailableCommand(name="all", description="Every update")
    entry = schema.PlanEntry(content="Sing", priority="high", status="in_progress")
    updates: list[Update] = [
        schema.AgentThoughtChunk(session_update="agent_thought_chunk", content=text("Let me think.")),
        say("Here is all of it."),
        schema.AgentPlanUpdate(session_update="plan", entries=[entry]),
        started("all-1", "Edit a", "edit", [diff]),
        progress("all-1", "completed", [diff, shown("done")]),
        schema.AvailableCommandsUpdate(session_update="available_commands_update", available_commands=[command]),
        schema.CurrentModeUpdate(session_update="current_mode_update", current_mode_id=session.mode),
        schema.ConfigOptionUpdate(session_update="config_option_update", config_options=session.options()),
        schema.SessionInfoUpdate(session_update="session_info_update", title="A song"),
        schema.UsageUpdate(
            session_update="usage_update", used=10, size=100, cost=schema.Cost(amount=0.5, currency="EUR")
        ),
    ]
    if notice := getattr(schema, "SessionUpdateNotice", None):
        updates.append(notice(severity="info", title="A notice"))
    if compaction := getattr(schema, "SessionUpdateCompactionUpdate", None):
        chunk = getattr(schema, "SessionUpdateCompactionSummaryChunk")  # noqa: B009 - 0.12.1 has no such name
        updates.append(compaction(compaction_id="c1", status="in_progress"))
        updates.append(chunk(compaction_id="c1", content=text("In short.")))
        updates.append(compaction(compaction_id="c1", status="completed"))
    return [*updates, say("That was all.")]


class Singer:
    """The handlers. What is not here, the SDK refuses by itself."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.client: acp.Client

    def on_connect(self, conn: acp.Client) -> None:
        self.client = conn

    def known(self, session_id: str) -> Session:
        try:
            return self.sessions[session_id]
        except KeyError:
            raise acp.RequestError.resource_not_found(session_id) from None

    async def initialize(self, protocol_version: int, **rest: Any) -> acp.InitializeResponse:
        able = schema.AgentCapabilities(
            load_session=True,
            prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
            session_capabilities=schema.SessionCapabilities(
                list=schema.SessionListCapabilities(),
                resume=schema.SessionResumeCapabilities(),
                close=schema.SessionCloseCapabilities(),
                delete=schema.SessionDeleteCapabilities(),
            ),
        )
        return acp.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_capabilities=able,
            auth_methods=[schema.AuthMethodAgent(id="demo", name="Demo")],
            agent_info=schema.Implementation(name="python-sdk-agent", version="1"),
        )

    async def authenticate(self, method_id: str, **rest: Any) -> acp.AuthenticateResponse:
        if method_id != "demo":
            raise acp.RequestError.invalid_params({"methodId": method_id})
        return acp.AuthenticateResponse()

    async def new_session(self, cwd: str, **rest: Any) -> acp.NewSessionResponse:
        session_id = f"song-{len(self.sessions) + 1}"
        session = self.sessions[session_id] = Session(cwd)
        return acp.NewSessionResponse(session_id=session_id, modes=session.modes(), config_options=session.options())

    async def load_session(self, cwd: str, session_id: str, **rest: Any) -> acp.LoadSessionResponse:
        session = self.known(session_id)
        for update in session.history:
            await self.client.session_update(session_id=session_id, update=update)
        return acp.LoadSessionResponse(modes=session.modes(), config_options=session.options())

    async def resume_session(self, cwd: str, session_id: str, **rest: Any) -> schema.ResumeSessionResponse:
        session = self.known(session_id)
        return schema.ResumeSessionResponse(modes=session.modes(), config_options=session.options())

    async def close_session(self, session_id: str, **rest: Any) -> schema.CloseSessionResponse:
        self.known(session_id).cancelled.set()
        return schema.CloseSessionResponse()

    async def delete_session(self, session_id: str, **rest: Any) -> schema.DeleteSessionResponse:
        self.sessions.pop(session_id, None)
        return schema.DeleteSessionResponse()

    async def list_sessions(self, **rest: Any) -> schema.ListSessionsResponse:
        found = [schema.SessionInfo(session_id=key, cwd=each.cwd) for key, each in self.sessions.items()]
        return schema.ListSessionsResponse(sessions=found)

    async def set_session_mode(self, session_id: str, mode_id: str, **rest: Any) -> acp.SetSessionModeResponse:
        session = self.known(session_id)
        if mode_id not in ("ask", "go"):
            raise acp.RequestError.invalid_params({"modeId": mode_id})
        session.mode = mode_id
        return acp.SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **rest: Any
    ) -> acp.SetSessionConfigOptionResponse:
        session = self.known(session_id)
        if config_id != "tempo" or value not in ("slow", "fast"):
            raise acp.RequestError.invalid_params({"configId": config_id})
        session.tempo = str(value)
        return acp.SetSessionConfigOptionResponse(config_options=session.options())

    async def cancel(self, session_id: str, **rest: Any) -> None:
        self.known(session_id).cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **rest: Any) -> acp.PromptResponse:
        session = self.known(session_id)
        session.cancelled.clear()
        for block in prompt:
            session.history.append(schema.UserMessageChunk(session_update="user_message_chunk", content=block))
        words = "".join(block.text for block in prompt if block.type == "text")
        await Turn(self.client, session_id, session).play(words)
        return acp.PromptResponse(stop_reason="cancelled" if session.cancelled.is_set() else "end_turn")


class Turn:
    """One prompt being answered."""

    def __init__(self, client: acp.Client, session_id: str, session: Session) -> None:
        self.client = client
        self.session_id = session_id
        self.session = session

    async def send(self, update: Update) -> None:
        self.session.history.append(update)
        await self.client.session_update(session_id=self.session_id, update=update)

    async def play(self, words: str) -> None:
        command, _, rest = words.partition(" ")
        match command:
            case "/all":
                for update in everything(self.session):
                    await self.send(update)
            case "/edit":
                await self.edit(*rest.split(" ", 1))
            case "/read":
                found = await self.client.read_text_file(session_id=self.session_id, path=rest)
                await self.send(say(found.content))
            case "/run":
                await self.run(rest.split())
            case "/slow":
                await self.send(say("Slowly."))
                await self.session.cancelled.wait()
            case "/fail":
                raise acp.RequestError.internal_error({"details": "asked to fail"})
            case _:
                await self.send(say(f"You said: {words}"))

    async def allowed(self, call: str, title: str) -> bool:
        asked = schema.ToolCallUpdate(tool_call_id=call, title=title)
        answer = await self.client.request_permission(session_id=self.session_id, tool_call=asked, options=OPTIONS)
        return answer.outcome.outcome == "selected" and answer.outcome.option_id in ("yes", "always")

    async def edit(self, path: str, content: str) -> None:
        diff = schema.FileEditToolCallContent(type="diff", path=path, new_text=content)
        await self.send(started("edit-1", "Edit", "edit", [diff]))
        if await self.allowed("edit-1", "Edit"):
            await self.client.write_text_file(session_id=self.session_id, path=path, content=content)
            await self.send(progress("edit-1", "completed", [diff]))
        else:
            await self.send(progress("edit-1", "failed"))

    async def run(self, words: list[str]) -> None:
        await self.send(started("run-1", "Run", "execute"))
        if not await self.allowed("run-1", "Run"):
            await self.send(progress("run-1", "failed"))
            return
        made = await self.client.create_terminal(
            session_id=self.session_id, command=words[0], args=words[1:], cwd=self.session.cwd
        )
        where = {"session_id": self.session_id, "terminal_id": made.terminal_id}
        shown_terminal = schema.TerminalToolCallContent(type="terminal", terminal_id=made.terminal_id)
        await self.send(progress("run-1", "in_progress", [shown_terminal]))
        ended = asyncio.ensure_future(self.client.wait_for_terminal_exit(**where))
        stopped = asyncio.ensure_future(self.session.cancelled.wait())
        await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            await self.client.kill_terminal(**where)
        await ended
        stopped.cancel()
        output = await self.client.terminal_output(**where)
        await self.client.release_terminal(**where)
        await self.send(progress("run-1", "completed", [shown_terminal, shown(output.output)]))


def serve() -> None:
    import uvicorn
    from acp.http.asgi import create_asgi_app

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    app = create_asgi_app(lambda _: cast("acp.Agent", Singer()))
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run([listening])


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve()
    else:
        asyncio.run(acp.run_agent(cast("acp.Agent", Singer())))
