"""A client written with the official Python SDK, as its users write one: `python python_client.py FOLDER AGENT…`.

It drives the agent through the scenario, step by step, and prints what it saw of each step as one line of JSON. It
judges nothing. The steps that `LEFT_OUT` names in the environment are not played. The same file runs under 0.12.1 and under the 1.0 candidates.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import acp
from acp import schema

TIMEOUT = 20.0
"""Seconds for one step. An agent that is silent for longer has failed it."""

LATE = 5.0
"""Seconds for updates that were sent before a response, on another stream of HTTP."""

SLOW = 0.2
"""Seconds that a slow handler takes: other updates are there long before."""

Facts = dict[str, Any]


class Lacking(Exception):
    """This version of the SDK has no way to say it."""


class Terminal:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.output = b""
        self.reading = asyncio.ensure_future(self.read())

    async def read(self) -> None:
        assert self.process.stdout
        while chunk := await self.process.stdout.read(65536):
            self.output += chunk

    async def wait(self) -> tuple[int | None, str | None]:
        await asyncio.shield(self.reading)  # who asked may lose interest
        code = await self.process.wait()
        return (code, None) if code >= 0 else (None, signal.Signals(-code).name)

    def kill(self) -> None:
        if self.process.returncode is None:
            os.killpg(self.process.pid, signal.SIGKILL)


class Listener:
    """The handlers of the client, and what they saw."""

    def __init__(self) -> None:
        self.agent: acp.Agent
        self.answer = "allow_once"
        self.slow_at_first = False
        self.updates: list[Any] = []
        self.options: list[str] = []
        self.calls: list[str] = []
        self.terminals: dict[str, Terminal] = {}
        self.received = asyncio.Event()
        self.created = asyncio.Event()
        self.waiting = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    def on_connect(self, conn: acp.Agent) -> None:
        self.agent = conn

    def forget(self) -> None:
        self.updates, self.options, self.calls = [], [], []
        for event in (self.received, self.created, self.waiting):
            event.clear()
        self.go_on.set()

    def kinds(self) -> list[str]:
        return sorted({update.session_update for update in self.updates})

    def shown(self, words: str) -> bool:
        """Whether any update held these words: a message, or what a tool put out."""
        return any(words in update.model_dump_json() for update in self.updates)

    async def session_update(self, session_id: str, update: Any, **rest: Any) -> None:
        if self.slow_at_first:
            self.slow_at_first = False
            await asyncio.sleep(SLOW)
        self.updates.append(update)
        self.received.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[schema.PermissionOption], **rest: Any
    ) -> acp.RequestPermissionResponse:
        self.options = sorted(option.kind for option in options)
        chosen = next(option.option_id for option in options if option.kind == self.answer)
        return acp.RequestPermissionResponse(outcome=schema.AllowedOutcome(outcome="selected", option_id=chosen))

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **rest: Any
    ) -> acp.ReadTextFileResponse:
        self.calls.append("read")
        return acp.ReadTextFileResponse(content=part_of(path, line or 1, limit))

    async def write_text_file(self, session_id: str, path: str, content: str, **rest: Any) -> acp.WriteTextFileResponse:
        self.calls.append("write")
        save(path, content)
        return acp.WriteTextFileResponse()

    async def create_terminal(
        self, session_id: str, command: str, args: list[str] | None = None, cwd: str | None = None, **rest: Any
    ) -> acp.CreateTerminalResponse:
        self.calls.append("create")
        process = await asyncio.create_subprocess_exec(
            command,
            *(args or []),
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        name = f"terminal-{len(self.terminals) + 1}"
        self.terminals[name] = Terminal(process)
        self.created.set()
        await self.go_on.wait()
        return acp.CreateTerminalResponse(terminal_id=name)

    async def terminal_output(self, session_id: str, terminal_id: str, **rest: Any) -> acp.TerminalOutputResponse:
        self.calls.append("output")
        terminal = self.terminals[terminal_id]
        return acp.TerminalOutputResponse(output=terminal.output.decode(), truncated=False)

    async def wait_for_terminal_exit(
        self, session_id: str, terminal_id: str, **rest: Any
    ) -> acp.WaitForTerminalExitResponse:
        self.calls.append("wait")
        self.waiting.set()
        code, name = await self.terminals[terminal_id].wait()
        return acp.WaitForTerminalExitResponse(exit_code=code, signal=name)

    async def kill_terminal(self, session_id: str, terminal_id: str, **rest: Any) -> acp.KillTerminalResponse:
        self.calls.append("kill")
        self.terminals[terminal_id].kill()
        return acp.KillTerminalResponse()

    async def release_terminal(self, session_id: str, terminal_id: str, **rest: Any) -> acp.ReleaseTerminalResponse:
        self.calls.append("release")
        self.terminals[terminal_id].kill()
        return acp.ReleaseTerminalResponse()


def part_of(path: str, line: int, limit: int | None) -> str:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines(keepends=True)
    except FileNotFoundError:
        raise acp.RequestError.resource_not_found(path) from None
    return "".join(lines[line - 1 : line - 1 + limit if limit else None])


def save(path: str, content: str) -> None:
    Path(path).write_text(content, encoding="utf-8")


def abilities() -> schema.ClientCapabilities:
    """Everything this version of the SDK can promise."""
    session: Facts = {"config_options": schema.SessionConfigOptionsCapabilities()}
    for name, kind in (("notices", "NoticeCapabilities"), ("compaction", "CompactionCapabilities")):
        if name in schema.ClientSessionCapabilities.model_fields:
            session[name] = getattr(schema, kind)()
    return schema.ClientCapabilities(
        fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True),
        terminal=True,
        session=schema.ClientSessionCapabilities(**session),
    )


class Scenario:
    """The steps, in order. Each returns what was seen."""

    def __init__(self, agent: acp.Agent, client: Listener, folder: Path, *, is_http: bool) -> None:
        self.agent = agent
        self.is_http = is_http
        self.client = client
        self.folder = folder
        self.session = ""
        self.first: Any = None

    async def send(self, words: str) -> str:
        block = schema.TextContentBlock(type="text", text=words)
        return (await self.agent.prompt(session_id=self.session, prompt=[block])).stop_reason

    async def prompt(self, words: str, answer: str = "allow_once") -> str:
        self.client.forget()
        self.client.answer = answer
        return await self.send(words)

    async def prompt_and_cancel(self, words: str, when: asyncio.Event, hold: bool = False) -> str:
        """If `hold` is set, a terminal is only handed out once the cancellation is on its way."""
        self.client.forget()
        self.client.answer = "allow_once"
        if hold:
            self.client.go_on.clear()
        turn = asyncio.ensure_future(self.send(words))
        await when.wait()
        await self.agent.cancel(session_id=self.session)
        self.client.go_on.set()
        return await turn

    async def initialize(self) -> Facts:
        info = schema.Implementation(name="python-sdk-client", version="1")
        self.first = await self.agent.initialize(
            protocol_version=acp.PROTOCOL_VERSION, client_capabilities=abilities(), client_info=info
        )
        methods = [method.id for method in self.first.auth_methods or []]
        return {"version": self.first.protocol_version, "methods": methods}

    async def authenticate(self) -> Facts:
        await self.agent.authenticate(method_id=self.first.auth_methods[0].id)
        return {}

    async def new(self) -> Facts:
        made = await self.agent.new_session(cwd=str(self.folder), mcp_servers=[])
        self.session = made.session_id
        modes = [mode.id for mode in made.modes.available_modes] if made.modes else []
        self.modes = [mode for mode in modes if made.modes and mode != made.modes.current_mode_id]
        self.settings = made.config_options or []
        return {"modes": modes, "options": [option.id for option in self.settings]}

    async def updates(self) -> Facts:
        stop = await self.send("/all")  # what came since the session began counts too
        return {"stop": stop, "kinds": self.client.kinds()}

    async def order(self) -> Facts:
        self.client.slow_at_first = True
        stop = await self.prompt("/all")
        return {"stop": stop, "handled": [update.session_update for update in self.client.updates]}

    async def permission_allow(self) -> Facts:
        stop = await self.prompt(f"/edit {self.folder}/poem.txt Sung by one.")
        file = (self.folder / "poem.txt").read_text(encoding="utf-8")
        return {"stop": stop, "options": self.client.options, "calls": self.client.calls, "file": file}

    async def permission_reject(self) -> Facts:
        stop = await self.prompt(f"/edit {self.folder}/poem.txt Sung by nobody.", "reject_once")
        file = (self.folder / "poem.txt").read_text(encoding="utf-8")
        return {"stop": stop, "options": self.client.options, "calls": self.client.calls, "file": file}

    async def files(self) -> Facts:
        stop = await self.prompt(f"/read {self.folder}/notes.txt")
        return {"stop": stop, "calls": self.client.calls, "shown": self.client.shown("second line")}

    async def terminal(self) -> Facts:
        before = len(self.client.terminals)
        stop = await self.prompt("/run echo sung aloud")
        made = list(self.client.terminals.values())[before:]
        output = b"".join(terminal.output for terminal in made).decode()
        return {"stop": stop, "calls": self.client.calls, "output": output}

    async def terminal_race(self) -> Facts:
        stop = await self.prompt_and_cancel("/run sleep 600", self.client.created, hold=True)
        for terminal in self.client.terminals.values():
            await terminal.wait()
        return {"stop": stop, "calls": self.client.calls}

    async def terminal_kill(self) -> Facts:
        stop = await self.prompt_and_cancel("/run sleep 600", self.client.waiting)
        for terminal in self.client.terminals.values():
            await terminal.wait()
        return {"stop": stop, "calls": self.client.calls}

    async def cancel(self) -> Facts:
        return {"stop": await self.prompt_and_cancel("/slow 60", self.client.received)}

    async def set_mode(self) -> Facts:
        await self.agent.set_session_mode(session_id=self.session, mode_id=self.modes[0])
        return {}

    async def set_config_option(self) -> Facts:
        option = next(each for each in self.settings if each.type == "select" and each.category != "mode")
        groups = [getattr(each, "options", [each]) for each in option.options]  # values, or groups of values
        value = next(each.value for group in groups for each in group if each.value != option.current_value)
        answer = await self.agent.set_config_option(session_id=self.session, config_id=option.id, value=value)
        now = next(each.current_value for each in answer.config_options if each.id == option.id) if answer else None
        return {"asked": value, "now": now}

    async def list(self) -> Facts:
        answer = await self.agent.list_sessions()
        return {"mine": [each.cwd for each in answer.sessions if each.session_id == self.session]}

    async def load(self) -> Facts:
        self.client.forget()
        answer = await self.agent.load_session(cwd=str(self.folder), session_id=self.session, mcp_servers=[])
        mode = answer.modes.current_mode_id if answer and answer.modes else None
        if (
            self.is_http
        ):  # its streams are read side by side: the response may be handled before updates that were sent before it
            with suppress(TimeoutError):
                async with asyncio.timeout(LATE):
                    while not self.client.shown("/run echo sung aloud"):
                        self.client.received.clear()
                        await self.client.received.wait()
        kinds, shown = self.client.kinds(), self.client.shown("/run echo sung aloud")
        return {"kinds": kinds, "shown": shown, "mode": mode, "wanted_mode": self.modes[0]}

    async def errors(self) -> Facts:
        block = schema.TextContentBlock(type="text", text="hello")
        codes = {
            "unknown session": await code_of(self.agent.prompt(session_id="nobody", prompt=[block])),
            "unknown method": await code_of(self.agent.ext_method("antiphon/nothing", {})),
            "unknown mode": await code_of(self.agent.set_session_mode(session_id=self.session, mode_id="nonsense")),
            "failing prompt": await code_of(self.prompt("/fail")),
        }
        return {"codes": codes}

    async def afterwards(self) -> Facts:
        stop = await self.prompt("hello")
        return {"stop": stop, "kinds": self.client.kinds()}

    async def resume(self) -> Facts:
        answer = await self.agent.resume_session(cwd=str(self.folder), session_id=self.session, mcp_servers=[])
        return {"mode": answer.modes.current_mode_id if answer.modes else None, "wanted_mode": self.modes[0]}

    async def close(self) -> Facts:
        await self.agent.close_session(session_id=self.session)
        return {}

    async def delete(self) -> Facts:
        delete = getattr(self.agent, "delete_session", None)
        if delete is None:
            raise Lacking("its client has no session/delete")
        await delete(session_id=self.session)
        return await self.list()


STEPS: tuple[Callable[[Scenario], Awaitable[Facts]], ...] = (
    Scenario.initialize, Scenario.authenticate, Scenario.new, Scenario.updates, Scenario.order,
    Scenario.permission_allow, Scenario.permission_reject, Scenario.files, Scenario.terminal, Scenario.terminal_kill, Scenario.terminal_race, Scenario.cancel,
    Scenario.set_mode, Scenario.set_config_option, Scenario.list, Scenario.load, Scenario.resume, Scenario.errors, Scenario.afterwards,
    Scenario.close, Scenario.delete,
)  # fmt: skip


async def code_of(asked: Awaitable[Any]) -> int | None:
    """The code of the error that it ends in, if it does."""
    try:
        await asked
    except acp.RequestError as error:
        return error.code
    return None


@asynccontextmanager
async def connected(client: "Listener", words: list[str]) -> AsyncIterator[Any]:
    """The agent: a command, or an address."""
    if not words[0].startswith(("ws:", "http:")):
        async with acp.spawn_agent_process(
            cast("acp.Client", client), *words, env=os.environ, transport_kwargs={"stderr": None}
        ) as (agent, _):
            yield agent
        return
    transport: Any
    if words[0].startswith("ws:"):
        from acp.ws import create_websocket_stream

        transport = await create_websocket_stream(words[0])
    else:
        from acp.http import client as http

        # Its own client needs the package for HTTP/2. Which httpx it uses depends on its version.
        library: Any = getattr(http, "httpx", None) or getattr(http, "httpx2", None)
        transport = http.create_http_stream(words[0], client=library.AsyncClient(timeout=None))
    agent = acp.connect_to_agent(cast("acp.Client", client), transport)
    try:
        yield agent
    finally:
        await transport.close()


async def play(folder: Path, command: list[str]) -> None:
    client = Listener()
    async with connected(client, command) as agent:
        scenario = Scenario(cast("acp.Agent", agent), client, folder, is_http=command[0].startswith("http:"))
        left_out = os.environ.get("LEFT_OUT", "").split(",")
        for step in [each for each in STEPS if each.__name__ not in left_out]:
            try:
                facts = await asyncio.wait_for(step(scenario), TIMEOUT)
                line: Facts = {"step": step.__name__, "ok": True, "detail": facts}
            except Exception as error:
                words = f"{type(error).__name__}: {error}"
                line = {"step": step.__name__, "ok": False, "detail": {"error": words}}
            print(json.dumps(line), flush=True)
    for terminal in client.terminals.values():
        terminal.kill()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(play(Path(sys.argv[1]), sys.argv[2:]))
