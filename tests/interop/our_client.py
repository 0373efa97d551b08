"""Our own client, as its users write one: `python our_client.py FOLDER AGENT…`. The same steps as the peers' programs."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

import antiphon
from antiphon import ResponseError, v1
from antiphon.client.agent import ConnectedAgent
from antiphon.client.files import Files
from antiphon.client.session import ClientSession
from antiphon.client.terminals import Terminals
from antiphon.protocol.methods import Call

TIMEOUT = 20.0
"""Seconds for one step. An agent that is silent for longer has failed it."""

SLOW = 0.2
"""Seconds that a slow consumer takes: other updates are there long before."""

Facts = dict[str, Any]


class RequestLog:
    """What was asked of us."""

    def __init__(self) -> None:
        self.answer = "allow_once"
        self.options: list[str] = []
        self.calls: list[str] = []
        self.output = ""
        self.created = asyncio.Event()
        self.waiting = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    def forget(self, answer: str = "allow_once") -> None:
        self.answer = answer
        self.options, self.calls = [], []
        self.created.clear()
        self.waiting.clear()
        self.go_on.set()

    def permission(self, request: v1.RequestPermission) -> str:
        self.options = sorted(str(option.kind.value) for option in request.options if option.kind)
        return self.answer


class OurFiles(Files):
    """The library's files, with a note of each call."""

    def __init__(self, book: RequestLog) -> None:
        super().__init__(write=True)
        self.book = book

    async def read(self, roots: Any, request: v1.ReadTextFile) -> v1.ReadTextFileResult:
        self.book.calls.append("read")
        return await super().read(roots, request)

    async def write(self, roots: Any, request: v1.WriteTextFile) -> v1.WriteTextFileResult:
        self.book.calls.append("write")
        return await super().write(roots, request)


class OurTerminals(Terminals):
    """The library's terminals, with a note of each call."""

    def __init__(self, book: RequestLog) -> None:
        super().__init__()
        self.book = book

    async def create(self, roots: Any, request: v1.CreateTerminal) -> v1.CreateTerminalResult:
        self.book.calls.append("create")
        made = await super().create(roots, request)
        self.book.created.set()
        await self.book.go_on.wait()
        return made

    async def output(self, request: v1.TerminalOutput) -> v1.TerminalOutputResult:
        self.book.calls.append("output")
        answer = await super().output(request)
        self.book.output = answer.output
        return answer

    async def wait_for_exit(self, request: v1.WaitForExit) -> v1.WaitForExitResult:
        self.book.calls.append("wait")
        self.book.waiting.set()
        return await super().wait_for_exit(request)

    async def kill(self, request: v1.KillTerminal) -> v1.KillTerminalResult:
        self.book.calls.append("kill")
        return await super().kill(request)

    async def release(self, request: v1.ReleaseTerminal) -> v1.ReleaseTerminalResult:
        self.book.calls.append("release")
        return await super().release(request)


def kind(update: v1.Update) -> str:
    return str(json.loads(msgspec.json.encode(update))["sessionUpdate"])


def kinds(updates: Iterable[v1.Update]) -> list[str]:
    return sorted({kind(update) for update in updates})


def shown(updates: Iterable[v1.Update], words: str) -> bool:
    return any(words.encode() in msgspec.json.encode(update) for update in updates)


async def code_of(asked: Awaitable[Any]) -> int | None:
    """The code of the error that it ends in, if it does."""
    try:
        await asked
    except ResponseError as error:
        return error.code
    return None


class Scenario:
    """The steps, in order. Each returns what was seen."""

    def __init__(self, agent: ConnectedAgent, book: RequestLog, folder: Path) -> None:
        self.agent = agent
        self.book = book
        self.folder = folder
        self.session: ClientSession
        self.mode = ""
        self.before: list[v1.Update] = []
        """What came before the first turn."""

    async def prompt(self, words: str, answer: str = "allow_once") -> tuple[str, list[v1.Update]]:
        self.book.forget(answer)
        turn = self.session.prompt(words)
        updates = [update async for update in turn]
        return str(turn.result.stop_reason.value), updates

    async def initialize(self) -> Facts:
        """It is over: an agent that spoke any other version would not have been connected to."""
        return {"version": 1, "methods": [getattr(method, "id", "") for method in self.agent.auth_methods]}

    async def authenticate(self) -> Facts:
        await self.agent.authenticate(getattr(self.agent.auth_methods[0], "id", ""))
        return {}

    async def new(self) -> Facts:
        self.session = await self.agent.new_session(self.folder, on_update=self.before.append)
        modes = self.session.modes
        found = [mode.id for mode in modes.available_modes] if modes else []
        self.mode = next(mode for mode in found if modes and mode != modes.current_mode_id)
        return {"modes": found, "options": [getattr(option, "id", "") for option in self.session.config_options or []]}

    async def updates(self) -> Facts:
        stop, updates = await self.prompt("/all")
        return {"stop": stop, "kinds": kinds([*self.before, *updates])}

    async def order(self) -> Facts:
        """Updates are taken one by one, so a consumer that is slow at first has the others wait."""
        self.book.forget()
        turn = self.session.prompt("/all")
        taken = [await anext(turn)]
        await asyncio.sleep(SLOW)
        taken += [update async for update in turn]
        return {"stop": str(turn.result.stop_reason.value), "handled": [kind(update) for update in taken]}

    async def edit(self, words: str, answer: str) -> Facts:
        stop, _ = await self.prompt(f"/edit {self.folder}/poem.txt {words}", answer)
        file = (self.folder / "poem.txt").read_text(encoding="utf-8")
        return {"stop": stop, "options": self.book.options, "calls": self.book.calls, "file": file}

    async def permission_allow(self) -> Facts:
        return await self.edit("Sung by one.", "allow_once")

    async def permission_reject(self) -> Facts:
        return await self.edit("Sung by nobody.", "reject_once")

    async def files(self) -> Facts:
        stop, updates = await self.prompt(f"/read {self.folder}/notes.txt")
        return {"stop": stop, "calls": self.book.calls, "shown": shown(updates, "second line")}

    async def terminal(self) -> Facts:
        stop, _ = await self.prompt("/run echo sung aloud")
        return {"stop": stop, "calls": self.book.calls, "output": self.book.output}

    async def terminal_kill(self) -> Facts:
        self.book.forget()
        reading = asyncio.ensure_future(self.session.prompt("/run sleep 600"))
        await self.book.waiting.wait()
        await self.session.cancel()
        return {"stop": str((await reading).stop_reason.value), "calls": self.book.calls}

    async def terminal_race(self) -> Facts:
        """The terminal is only handed out once the cancellation is on its way."""
        self.book.forget()
        self.book.go_on.clear()
        reading = asyncio.ensure_future(self.session.prompt("/run sleep 600"))
        await self.book.created.wait()
        cancelling = asyncio.ensure_future(self.session.cancel())
        await asyncio.sleep(0)  # it is sent before `cancel` first waits
        self.book.go_on.set()
        await cancelling
        return {"stop": str((await reading).stop_reason.value), "calls": self.book.calls}

    async def cancel(self) -> Facts:
        turn = self.session.prompt("/slow 60")
        await anext(turn)
        return {"stop": str((await turn.cancel()).stop_reason.value)}

    async def set_mode(self) -> Facts:
        await self.session.set_mode(self.mode)
        return {}

    async def set_config_option(self) -> Facts:
        settings = [each for each in self.session.config_options or [] if isinstance(each, v1.SelectConfig)]
        option = next(each for each in settings if each.category is not v1.ConfigCategory.MODE)
        groups = [each.options if isinstance(each, v1.SelectGroup) else [each] for each in option.options]
        value = next(each.value for group in groups for each in group if each.value != option.current_value)
        await self.session.set_config_option(option.id, value)
        changed = [each for each in self.session.config_options or [] if isinstance(each, v1.SelectConfig)]
        return {"asked": value, "now": next(each.current_value for each in changed if each.id == option.id)}

    async def list(self) -> Facts:
        return {"mine": [each.cwd async for each in self.agent.list_sessions() if each.session_id == self.session.id]}

    async def load(self) -> Facts:
        updates: list[v1.Update] = []
        self.session = await self.agent.load_session(self.session.id, self.folder, on_update=updates.append)
        mode = self.session.modes.current_mode_id if self.session.modes else None
        replayed = shown(updates, "/run echo sung aloud")
        return {"kinds": kinds(updates), "shown": replayed, "mode": mode, "wanted_mode": self.mode}

    async def resume(self) -> Facts:
        session = await self.agent.resume_session(self.session.id, self.folder)
        self.session = session
        return {"mode": session.modes.current_mode_id if session.modes else None, "wanted_mode": self.mode}

    async def errors(self) -> Facts:
        connection = self.agent.connection
        nobody = v1.Prompt("nobody", [v1.TextBlock("hello")])
        nothing = Call("_antiphon/nothing", v1.Logout, v1.LogoutResult)
        unfinished = Call("session/new", v1.Logout, v1.NewSessionResult)
        prompt = Call("session/prompt", v1.Prompt, v1.PromptResult)
        codes = {
            "unknown session": await code_of(connection.request(prompt, nobody)),
            "unknown method": await code_of(connection.request(nothing, v1.Logout())),
            "unknown mode": await code_of(self.session.set_mode("nonsense")),
            "missing params": await code_of(connection.request(unfinished, v1.Logout())),
            "failing prompt": await code_of(self.prompt("/fail")),
        }
        return {"codes": codes}

    async def afterwards(self) -> Facts:
        stop, updates = await self.prompt("hello")
        return {"stop": stop, "kinds": kinds(updates)}

    async def close(self) -> Facts:
        await self.session.close()
        return {}

    async def delete(self) -> Facts:
        await self.agent.delete_session(self.session.id)
        return await self.list()


STEPS: tuple[Callable[[Scenario], Awaitable[Facts]], ...] = (
    Scenario.initialize, Scenario.authenticate, Scenario.new, Scenario.updates, Scenario.order,
    Scenario.permission_allow, Scenario.permission_reject, Scenario.files, Scenario.terminal, Scenario.terminal_kill, Scenario.terminal_race, Scenario.cancel,
    Scenario.set_mode, Scenario.set_config_option, Scenario.list, Scenario.load, Scenario.resume, Scenario.errors,
    Scenario.afterwards, Scenario.close, Scenario.delete,
)  # fmt: skip


async def play(folder: Path, command: "list[str]") -> None:
    book = RequestLog()
    remote = "://" in command[0]
    async with antiphon.connect(
        command[0] if remote else command,
        cwd=None if remote else folder,
        permission=book.permission,
        files=OurFiles(book),
        terminals=OurTerminals(book),
    ) as agent:
        scenario = Scenario(agent, book, folder)
        for step in STEPS:
            try:
                facts = await asyncio.wait_for(step(scenario), TIMEOUT)
                line: Facts = {"step": step.__name__, "ok": True, "detail": facts}
            except Exception as error:
                line = {"step": step.__name__, "ok": False, "detail": {"error": f"{type(error).__name__}: {error}"}}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    asyncio.run(play(Path(sys.argv[1]), sys.argv[2:]))
