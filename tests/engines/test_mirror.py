"""Mirror terminals: a real client prints what a command had printed, and the command itself never runs there."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent.client import ConnectedClient
from antiphon.agent.turn import AgentTurn
from antiphon.client.terminals import Terminals
from antiphon.connection.connection import Connection
from antiphon.connection.router import Router
from antiphon.engines import events as mirroring
from antiphon.engines.events import MIRROR_BYTES, mirror, mirrors
from antiphon.errors import Code, RequestError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.protocol.v1.version import V1
from antiphon.transports.memory import memory_pair
from tests.agent.editor import FULL, only_prompt, playing

Create = Callable[[v1.CreateTerminal], Coroutine[Any, Any, v1.CreateTerminalResult]]


class Screen:
    """A client's terminals: what they were asked to run, what they showed, and which are given back."""

    def __init__(self, folder: Path) -> None:
        self.terminals = Terminals()
        self.asked: list[v1.CreateTerminal] = []
        self.printed: dict[str, str] = {}
        self.released = asyncio.Event()
        self.router = Router()
        self._roots = [str(folder)]
        self.create: Create = self.really_create
        self.router.on_request(m.CREATE_TERMINAL, lambda asked: self.create(asked))
        self.router.on_request(m.WAIT_FOR_EXIT, self.terminals.wait_for_exit)
        self.router.on_request(m.RELEASE_TERMINAL, self._release)

    async def really_create(self, asked: v1.CreateTerminal) -> v1.CreateTerminalResult:
        self.asked.append(asked)
        return await self.terminals.create(self._roots, asked)

    async def _release(self, asked: v1.ReleaseTerminal) -> v1.ReleaseTerminalResult:
        shown = await self.terminals.output(v1.TerminalOutput(asked.session_id, asked.terminal_id))
        self.printed[asked.terminal_id] = shown.output
        given_back = await self.terminals.release(asked)
        self.released.set()
        return given_back


@asynccontextmanager
async def shown(folder: Path, screen: Screen, output: str, exit_code: int | None = 0) -> AsyncIterator[dict[str, Any]]:
    """What the tool call of a command shows."""

    async def prompt(turn: AgentTurn) -> None:
        await mirror(turn.session, "call", output, exit_code)

    async with playing(only_prompt(prompt), FULL, screen.router) as editor:
        await editor.turn(str(folder))
        [update] = editor.updates("tool_call_update")
        assert update["toolCallId"] == "call"
        [content] = update["content"]
        yield content
        await screen.terminals.close()


@pytest.mark.parametrize("output", ["two\nlines\n", "$(touch ran) `touch ran` %s\\n\\e[1m é", "-n", "--help"])
async def test_a_terminal_prints_exactly_what_was_captured(tmp_path: Path, output: str) -> None:
    screen = Screen(tmp_path)
    async with shown(tmp_path, screen, output) as content:
        assert content["type"] == "terminal"
        await screen.released.wait()
        assert screen.printed == {content["terminalId"]: output}
    [asked] = screen.asked
    assert (asked.command, asked.args) == ("printf", ["%s", output])
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize(
    "output", ["x" * (MIRROR_BYTES + 1), "é" * MIRROR_BYTES, "a\0b", ""], ids=["long", "long in bytes", "null", "none"]
)
async def test_output_that_no_terminal_can_print_is_text(tmp_path: Path, output: str) -> None:
    screen = Screen(tmp_path)
    async with shown(tmp_path, screen, output) as content:
        assert content["type"] == "content"
    assert not screen.asked


async def test_the_text_has_how_the_command_ended(tmp_path: Path) -> None:
    async with shown(tmp_path, Screen(tmp_path), "", 3) as content:
        assert content["content"]["text"] == "There was no output.\nIt ended with exit code 3."


async def test_a_client_that_refuses_gets_the_output_as_text(tmp_path: Path) -> None:
    screen = Screen(tmp_path)

    async def refuse(asked: v1.CreateTerminal) -> v1.CreateTerminalResult:
        raise RequestError(Code.INVALID_PARAMS, "the user said no")

    screen.create = refuse
    async with shown(tmp_path, screen, "```\nhello\n```") as content:
        assert content["content"]["text"] == "````\n```\nhello\n```\n````"


async def test_a_terminal_that_comes_too_late_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirroring, "CREATE_WAIT", 0.01)
    screen, asked_user = Screen(tmp_path), asyncio.Event()

    async def ask_first(asked: v1.CreateTerminal) -> v1.CreateTerminalResult:
        await asked_user.wait()
        return await screen.really_create(asked)

    screen.create = ask_first
    async with shown(tmp_path, screen, "hello") as content:
        assert content["content"]["text"] == "```\nhello\n```"
        asked_user.set()
        await screen.released.wait()


@pytest.mark.parametrize(("value", "on"), [("1", True), ("0", False), ("", False), (None, False)])
async def test_terminals_are_mirrored_for_users_that_ask_for_it(
    value: str | None, on: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is None:
        monkeypatch.delenv(mirroring.VARIABLE, raising=False)
    else:
        monkeypatch.setenv(mirroring.VARIABLE, value)
    seen = list[bool]()

    def prompt(turn: AgentTurn) -> None:
        seen.append(mirrors(turn.session.client))

    for capabilities, expected in ((FULL, on), (v1.ClientCapabilities(), False)):
        async with playing(only_prompt(prompt), capabilities) as editor:
            await editor.turn()
        assert seen.pop() is expected


def test_a_client_without_capabilities_has_no_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(mirroring.VARIABLE, "1")
    client = ConnectedClient(Connection(memory_pair()[0], version=V1))
    assert not mirrors(client)
