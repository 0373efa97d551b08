"""Commands of a turn: in a terminal of the client, or on this machine; followed, killed, and always given back."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.agent.commands import FinishedCommand, RunningCommand, added_output
from antiphon.agent.turn import AgentTurn
from antiphon.connection.router import Router
from antiphon.errors import Code, LocalProtocolError, RequestError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, only_prompt, playing

CANCELLED = v1.PromptResult(v1.StopReason.CANCELLED)


class Terminals:
    """A client's terminals: the test says what they write and when they end."""

    def __init__(self) -> None:
        self.created: list[v1.CreateTerminal] = []
        self.output = ""
        self.status: v1.ExitStatus | None = None
        self.shows_status = True
        self.ended = asyncio.Event()
        self.released: list[str] = []
        self.release_gate: asyncio.Event | None = None
        self.create_gate: asyncio.Event | None = None
        self.looked = asyncio.Event()
        self.router = Router()
        self.router.on_request(m.CREATE_TERMINAL, self._create)
        self.router.on_request(m.TERMINAL_OUTPUT, self._output)
        self.router.on_request(m.WAIT_FOR_EXIT, self._wait)
        self.router.on_request(m.KILL_TERMINAL, self._kill)
        self.router.on_request(m.RELEASE_TERMINAL, self._release)

    async def _create(self, asked: v1.CreateTerminal) -> v1.CreateTerminalResult:
        self.created.append(asked)
        if self.create_gate is not None:
            await self.create_gate.wait()
        return v1.CreateTerminalResult(f"t{len(self.created)}")

    def _output(self, _: v1.TerminalOutput) -> v1.TerminalOutputResult:
        self.looked.set()
        return v1.TerminalOutputResult(self.output, False, self.status if self.shows_status else None)

    async def _wait(self, _: v1.WaitForExit) -> v1.WaitForExitResult:
        await self.ended.wait()
        assert self.status is not None
        return v1.WaitForExitResult(self.status.exit_code, self.status.signal)

    def _kill(self, _: v1.KillTerminal) -> v1.KillTerminalResult:
        self.end(None, "SIGTERM")
        return v1.KillTerminalResult()

    async def _release(self, asked: v1.ReleaseTerminal) -> v1.ReleaseTerminalResult:
        self.released.append(asked.terminal_id)
        if self.release_gate is not None:
            await self.release_gate.wait()
        return v1.ReleaseTerminalResult()

    def end(self, code: int | None, signal: str | None = None) -> None:
        self.status = v1.ExitStatus(code, signal)
        self.ended.set()


async def test_a_command_runs_in_the_clients_terminal_and_is_given_back() -> None:
    terminals, done = Terminals(), list[FinishedCommand]()

    async def prompt(turn: AgentTurn) -> None:
        async with turn.run(["make", "-j2"], cwd="sub", env={"A": "b"}, output_limit=10) as running:
            assert running.terminal_id == "t1"
            terminals.output = "all good\n"
            terminals.end(0)
            done.append(await running.finish())

    async with playing(only_prompt(prompt), FULL, terminals.router) as editor:
        session = await editor.open()
        await editor.prompt(session)
    assert done == [FinishedCommand("all good\n", 0, None)] and done[0].ok
    env = [v1.EnvVariable("A", "b")]
    assert terminals.created == [v1.CreateTerminal(session, "make", ["-j2"], env, "/w/sub", 10)]
    assert terminals.released == ["t1"]


async def test_a_line_for_the_shell_is_given_to_a_shell() -> None:
    terminals = Terminals()

    async def prompt(turn: AgentTurn) -> None:
        async with turn.run("ls | wc"):
            pass

    async with playing(only_prompt(prompt), FULL, terminals.router) as editor:
        await editor.turn()
    assert (terminals.created[0].command, terminals.created[0].args) == ("/bin/sh", ["-c", "ls | wc"])
    assert terminals.released == ["t1"]


@pytest.mark.parametrize("shows_status", [True, False], ids=["with status", "without status"])
async def test_the_output_of_a_terminal_can_be_followed(shows_status: bool) -> None:
    terminals, pieces = Terminals(), list[str]()
    terminals.shows_status = shows_status
    terminals.output = "one\n"

    async def prompt(turn: AgentTurn) -> None:
        async with turn.run(["x"]) as running:
            async for piece in running:
                pieces.append(piece)
                terminals.output += "two\n"
                if len(pieces) == 2:
                    terminals.end(3)

    async with playing(only_prompt(prompt), FULL, terminals.router) as editor:
        await editor.turn()
    assert "".join(pieces).startswith("one\ntwo\n") and terminals.released == ["t1"]


async def test_a_client_that_cannot_wait_ends_the_following_with_its_refusal() -> None:
    terminals = Terminals()

    def refuse(_: v1.WaitForExit) -> v1.WaitForExitResult:
        raise RequestError(Code.INTERNAL_ERROR, "Internal error", "no")

    terminals.router.on_request(m.WAIT_FOR_EXIT, refuse)

    async def prompt(turn: AgentTurn) -> None:
        async with turn.run(["x"]) as running:
            with pytest.raises(RequestRefused):
                async for _ in running:
                    pass

    async with playing(only_prompt(prompt), FULL, terminals.router) as editor:
        await editor.turn()
    assert terminals.released == ["t1"]


async def test_killing_keeps_the_output() -> None:
    terminals, done = Terminals(), list[FinishedCommand]()
    terminals.output = "so far"

    async def prompt(turn: AgentTurn) -> None:
        async with turn.run(["x"]) as running:
            await running.kill()
            done.append(await running.finish())

    async with playing(only_prompt(prompt), FULL, terminals.router) as editor:
        await editor.turn()
    assert done == [FinishedCommand("so far", None, "SIGTERM")] and not done[0].ok


@pytest.mark.parametrize("slow", [False, True], ids=["quick client", "client that does not answer the release"])
@pytest.mark.parametrize("doing", ["waiting", "following"])
async def test_a_cancelled_turn_gives_its_terminal_back_and_is_not_held_up(doing: str, slow: bool) -> None:
    terminals = Terminals()
    terminals.release_gate = asyncio.Event()
    if not slow:
        terminals.release_gate.set()

    async def prompt(turn: AgentTurn) -> None:
        async with turn.run(["x"]) as running:
            await turn.say("begun")
            if doing == "waiting":
                await running.finish()
            async for _ in running:
                pass

    async with playing(only_prompt(prompt), FULL, terminals.router) as editor:
        session = await editor.open()
        turn = editor.prompt(session)
        await editor.until("begun")
        editor.cancel(session)
        assert await turn == CANCELLED
        assert terminals.released == ["t1"]
        terminals.release_gate.set()


async def test_a_terminal_that_is_created_while_the_turn_is_cancelled_is_given_back() -> None:
    terminals = Terminals()
    terminals.create_gate = asyncio.Event()
    released = asyncio.Event()

    def release(asked: v1.ReleaseTerminal) -> v1.ReleaseTerminalResult:
        terminals.released.append(asked.terminal_id)
        released.set()
        return v1.ReleaseTerminalResult()

    terminals.router.on_request(m.RELEASE_TERMINAL, release)

    async def prompt(turn: AgentTurn) -> None:
        async with turn.run(["x"]):
            raise AssertionError("not reached")

    async with playing(only_prompt(prompt), FULL, terminals.router) as editor:
        session = await editor.open()
        turn = editor.prompt(session)
        await editor.until("ask:terminal/create")
        editor.cancel(session)
        assert await turn == CANCELLED
        terminals.create_gate.set()
        await released.wait()
    assert terminals.released == ["t1"]


async def test_a_command_that_is_not_running_has_a_hint_how_to_run_it() -> None:
    async def prompt(turn: AgentTurn) -> None:
        running = turn.run(["x"])
        with pytest.raises(LocalProtocolError, match=r"use `async with turn\.run"):
            await running.output()
        with pytest.raises(LocalProtocolError, match="there is no command to run"):
            turn.run([])

    for capabilities in (FULL, None):
        async with playing(only_prompt(prompt), capabilities) as editor:
            await editor.turn()


# On this machine.


async def here(work: "Callable[[AgentTurn], Any]", cwd: Path) -> Any:
    """What a turn makes of it with a client that has no terminals."""
    results: list[Any] = []

    async def prompt(turn: AgentTurn) -> None:
        results.append(await work(turn))

    async with playing(only_prompt(prompt)) as editor:
        await editor.turn(str(cwd))
    return results[0]


async def test_without_terminals_a_command_runs_on_this_machine(tmp_path: Path) -> None:
    async def work(turn: AgentTurn) -> tuple[FinishedCommand, FinishedCommand, str | None]:
        async with turn.run("basename $PWD; echo $A; exit 3", env={"A": "b"}) as running:
            first = await running.finish()
        async with turn.run([sys.executable, "-c", "print('x' * 100)"], output_limit=10) as running:
            second = await running.finish()
        return first, second, running.terminal_id

    first, second, terminal_id = await here(work, tmp_path)
    assert first == FinishedCommand(f"{tmp_path.name}\nb\n", 3, None)
    assert second.truncated and second.ok and second.output == "x" * 9 + "\n"
    assert terminal_id is None


async def test_a_command_of_this_machine_can_be_followed(tmp_path: Path) -> None:
    (tmp_path / "go").touch()

    async def work(turn: AgentTurn) -> list[str]:
        pieces = []
        line = "printf 'größe\\n'; while [ -e go ]; do sleep 0.01; done; echo two"
        async with turn.run(line) as running:
            async for piece in running:
                pieces.append(piece)
                (tmp_path / "go").unlink(missing_ok=True)
        return pieces

    assert await here(work, tmp_path) == ["größe\n", "two\n"]


async def test_a_command_of_this_machine_can_be_killed(tmp_path: Path) -> None:
    async def work(turn: AgentTurn) -> FinishedCommand:
        async with turn.run("echo begun; exec sleep 60") as running:
            async for _ in running:
                break
            await running.kill()
            return await running.finish()

    assert await here(work, tmp_path) == FinishedCommand("begun\n", None, "SIGTERM")


async def test_leaving_the_block_ends_a_command_of_this_machine_also_on_cancel() -> None:
    seen: list[RunningCommand] = []

    async def prompt(turn: AgentTurn) -> None:
        async with turn.run("exec sleep 60") as running:
            seen.append(running)
            await turn.say("begun")
            await running.wait()

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open("/")
        turn = editor.prompt(session)
        await editor.until("begun")
        editor.cancel(session)
        assert await turn == CANCELLED
        assert (await seen[0].output()).exit_status == v1.ExitStatus(None, "SIGTERM")


async def test_a_program_that_does_not_exist_is_a_clear_error(tmp_path: Path) -> None:
    async def work(turn: AgentTurn) -> str:
        with pytest.raises(RequestRefused) as failure:
            async with turn.run(["no-such-program"]):
                pass
        return str(failure.value)

    assert "hint: " in await here(work, tmp_path)


async def test_a_tool_call_runs_a_command_live_or_shows_what_it_wrote(tmp_path: Path) -> None:
    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("Run it", v1.ToolKind.EXECUTE) as call:
            await call.run("echo hello")
        async with turn.tool("Run it", v1.ToolKind.EXECUTE) as call:
            await call.run("true")

    terminals = Terminals()
    terminals.end(0)
    async with playing(only_prompt(prompt), FULL, terminals.router) as editor:
        await editor.turn()
    shown = [each["content"] for each in editor.updates("tool_call_update") if "content" in each]
    assert shown == [[{"type": "terminal", "terminalId": each}] for each in ("t1", "t2")]
    async with playing(only_prompt(prompt)) as editor:
        await editor.turn(str(tmp_path))
    shown = [each["content"] for each in editor.updates("tool_call_update") if "content" in each]
    assert shown == [[{"type": "content", "content": {"type": "text", "text": "hello\n"}}]]
    raw = [each["rawOutput"] for each in editor.updates() if "rawOutput" in each]
    assert [(each["exitCode"], each["signal"]) for each in raw] == [(0, None)] * 2


@given(st.lists(st.text(max_size=300), max_size=8), st.integers(300, 600))
def test_a_follower_of_a_cut_output_misses_nothing(pieces: list[str], kept: int) -> None:
    """Whatever was cut off in the meantime had been seen: no piece is longer than what is kept."""
    numbered = [f"{place}{piece}{place}\n" for place, piece in enumerate(pieces)]
    before, followed, whole = "", "", ""
    for piece in numbered:
        whole += piece
        now = whole[-kept:]
        followed += added_output(before, now)
        before = now
    assert followed == whole


def test_an_output_that_repeats_itself_is_compared_in_time() -> None:
    before = "ab" * 500_000
    assert added_output(before, before[2:] + "end") == "end"
    assert added_output("a" * 1_000_000, "a" * 999_999 + "b").endswith("b")


async def test_a_client_that_never_answers_the_release_of_a_terminal_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("antiphon.agent.commands.RELEASE_GRACE", 0.05)
    router = Router()
    never = asyncio.Event()

    async def release(_: v1.ReleaseTerminal) -> v1.ReleaseTerminalResult:
        await never.wait()
        return v1.ReleaseTerminalResult()

    router.on_request(m.CREATE_TERMINAL, lambda _: v1.CreateTerminalResult("t"))
    router.on_request(m.WAIT_FOR_EXIT, lambda _: v1.WaitForExitResult(0))
    router.on_request(m.TERMINAL_OUTPUT, lambda _: v1.TerminalOutputResult("", False, v1.ExitStatus(0)))
    router.on_request(m.RELEASE_TERMINAL, release)

    async def prompt(turn: AgentTurn) -> None:
        async with turn.run("true") as running:
            await running.finish()

    async with playing(only_prompt(prompt), FULL, router) as editor:
        assert (await editor.turn()).stop_reason == v1.StopReason.END_TURN
        never.set()
