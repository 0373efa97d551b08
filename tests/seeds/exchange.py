"""A client in bytes, in front of a real agent process: it sends what a row says, answers what it is asked, and keeps what it receives.

Rows share an agent process where they may: `Agents` starts one for each kind of agent and seed, and each row has a session and a directory
of its own in it. A row about `initialize` or signing in has a process of its own, because both concern the whole connection.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from antiphon.transports.process import ProcessTransport, spawn
from tests.seeds.table import HANG, AgentRow, Sent, differences, filled

__all__ = ["Agents", "Exchange", "exchange_with"]

Json = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]

HELLO: Json = {
    "protocolVersion": 1,
    "clientInfo": {"name": "seeds", "version": "1"},
    "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True},
}

GRANT: Json = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}

COMMANDS: dict[str, list[str]] = {
    "demo": ["--engine", "demo"],
    "joint": ["--engine", "demo", "--engine", f"{sys.executable} -S -m tests.seeds.second"],
    "claude": ["--engine", "claude"],
    "codex": ["--engine", "codex"],
}


class Exchange:
    """One session."""

    def __init__(self, transport: ProcessTransport, row: AgentRow, folder: Path) -> None:
        self.transport = transport
        self.last_id = 0
        self.arrived = asyncio.Event()
        self.begin(row, folder)

    def begin(self, row: AgentRow, folder: Path) -> None:
        """Forget the row before: this one has its own answers and its own directory."""
        cwd = folder / "work"
        cwd.mkdir(exist_ok=True)
        (cwd / "notes.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
        self.row = row
        self.words = {"$CWD": str(cwd), "$FILE": str(cwd / "notes.txt")}
        self.updates: list[Json] = []
        self.asked: list[Json] = []
        self.answers: dict[object, Json] = {}
        self.hanging: list[object] = []

    async def listen(self) -> None:
        """Take what comes, until the agent is gone."""
        while True:
            frame = await self.transport.receive()
            if not isinstance(frame, bytes):
                return
            message: Json = msgspec.json.decode(frame)
            if message.get("method") == "session/update":
                self.updates.append(message["params"])
            elif "method" in message and "id" in message:
                self.asked.append(message)
                await self._answer(message)
            elif "id" in message:
                self.answers[message["id"]] = message
            self.arrived.set()

    async def _answer(self, asked: Json) -> None:
        given = self.row.answers.get(asked["method"], GRANT if asked["method"].endswith("permission") else None)
        if given == HANG:
            self.hanging.append(asked["id"])
            return
        if asked["method"] == "terminal/kill":  # which ends what is waited for
            for id in self.hanging:
                await self.say({"id": id, "result": {"signal": "SIGKILL"}})
        if isinstance(given, dict) and "error" in given:
            await self.say({"id": asked["id"], "error": given["error"]})
        elif asked["method"] in self.row.answers or given is not None:
            await self.say({"id": asked["id"], "result": filled(given, self.words)})
        else:
            await self.say({"id": asked["id"], "error": {"code": -32601, "message": "Method not found"}})

    async def say(self, message: Json) -> None:
        await self.transport.send(msgspec.json.encode({"jsonrpc": "2.0", **message}))

    async def until(self, ready: Any) -> None:
        while not ready():
            self.arrived.clear()
            await self.arrived.wait()

    def has(self, update: Any) -> bool:
        wanted = filled(update, self.words)
        return any(not differences(wanted, each) for each in self.updates)

    async def play(self, sent: Sent, *, inside: bool = False) -> None:
        """Send a message, and check what comes of it. `inside` another one, whose updates still count."""
        params = filled(sent.params, self.words)
        if sent.notify:
            await self.say({"method": sent.method, "params": params})
            return
        self.last_id += 1
        id = self.last_id if sent.id is None else sent.id
        if not inside:
            self.updates.clear()
        await self.say({"id": id, "method": sent.method, "params": params})
        if sent.while_running is not None:
            await self.until(lambda: self.has(sent.updates[0]))
            await self.play(sent.while_running, inside=True)
        await self.until(lambda: id in self.answers)
        answer = self.answers.pop(id)
        if sent.error is not None:
            assert answer.get("error", {}).get("code") == sent.error, (sent.method, answer)
            assert answer["error"]["message"], answer
            return
        assert "error" not in answer, (sent.method, params, answer)
        if isinstance(answer["result"], dict) and "sessionId" in answer["result"]:
            self.words["$SESSION"] = answer["result"]["sessionId"]
        wrong = differences(filled(sent.result, self.words), answer["result"])
        assert not wrong, "\n".join(wrong)
        for update in sent.updates:
            await self.until(lambda update=update: self.has(update))


@asynccontextmanager
async def exchange_with(row: AgentRow, folder: Path, env: dict[str, str]) -> AsyncIterator[Exchange]:
    """A session with the agent of a row, which has been introduced, in a process of its own."""
    whole = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "PYTHONPATH": str(ROOT),
        "ANTIPHON_STATE_DIR": str(folder / "state"),
        "ANTIPHON_CONFIG_DIR": str(folder / "config"),
        **env,
    }
    transport = await spawn([sys.executable, "-m", "antiphon", "agent", *COMMANDS[row.agent]], cwd=folder, env=whole)
    exchange = Exchange(transport, row, folder)
    listening = asyncio.create_task(exchange.listen())
    try:
        if row.hello is not False:
            await exchange.play(Sent("initialize", row.hello or HELLO, {"protocolVersion": 1}))
        yield exchange
    finally:
        await transport.close()
        await listening


def is_about_the_connection(row: AgentRow) -> bool:
    """Return whether a row is about `initialize` or signing in, which concern all sessions of a process."""
    steps = {sent.method for sent in row.steps}
    return (
        row.hello is not None or bool(steps & {"authenticate", "logout"}) or any(s.error == -32000 for s in row.steps)
    )


class Agents:
    """The agent processes that rows share, and the directory of each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._exchanges: dict[tuple[str, str], tuple[Exchange, AsyncExitStack]] = {}

    def folder(self, row: AgentRow) -> Path:
        """Return the directory of the process that this row shares."""
        folder = self._folder / f"{row.agent}-{row.seed}"
        folder.mkdir(exist_ok=True)
        return folder

    @asynccontextmanager
    async def exchange_with(self, row: AgentRow, folder: Path, env: dict[str, str]) -> AsyncIterator[Exchange]:
        """Talk to the agent of a row. After a failure the next row gets a new process."""
        if is_about_the_connection(row):
            async with exchange_with(row, folder, env) as exchange:
                yield exchange
            return
        key = (row.agent, row.seed)
        if key not in self._exchanges:
            stack = AsyncExitStack()
            self._exchanges[key] = await stack.enter_async_context(exchange_with(row, self.folder(row), env)), stack
        exchange, _ = self._exchanges[key]
        exchange.begin(row, folder)
        try:
            yield exchange
        except BaseException:
            await self._close(key)
            raise

    async def close(self) -> None:
        """Close the connections: that ends the processes."""
        for key in list(self._exchanges):
            await self._close(key)

    async def _close(self, key: tuple[str, str]) -> None:
        _, stack = self._exchanges.pop(key)
        await stack.aclose()
