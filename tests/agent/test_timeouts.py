"""Clients that do not respond: every verb of a turn that waits for one has a timeout, and the turn goes on after it."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from antiphon.agent.commands import InTerminal, OnThisMachine, RunningCommand
from antiphon.agent.questions import UserQuestions
from antiphon.agent.tools import LiveCall
from antiphon.agent.turn import AgentTurn
from antiphon.connection.router import Router
from antiphon.errors import RequestTimeout
from antiphon.protocol import v1
from antiphon.protocol.methods import Call
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, only_prompt, playing
from tests.rows import each_row

SOON = 0.02
CALL = v1.ToolCallPatch("call", title="Call")


async def _in_terminal(turn: AgentTurn, work: "Callable[[RunningCommand], Awaitable[object]]") -> object:
    async with turn.run(["make"]) as running:
        return await work(running)


async def _permitted(turn: AgentTurn) -> object:
    async with turn.tool("Look") as call:
        return await call.permitted(timeout=SOON)


async def _run(turn: AgentTurn) -> object:
    async with turn.tool("Look") as call:
        return await call.run(["make"], timeout=SOON)


VERBS: "dict[str, tuple[Call[Any, Any], Callable[[AgentTurn], Awaitable[object]]]]" = {
    "ask_permission": (m.REQUEST_PERMISSION, lambda turn: turn.ask_permission(CALL, timeout=SOON)),
    "permitted": (m.REQUEST_PERMISSION, _permitted),
    "run": (m.WAIT_FOR_EXIT, _run),
    "ask": (m.CREATE_ELICITATION, lambda turn: turn.ask("Who?", timeout=SOON, name=v1.StringProperty())),
    "choose": (m.CREATE_ELICITATION, lambda turn: turn.choose("Which?", ["a", "b"], timeout=SOON)),
    "visit": (m.CREATE_ELICITATION, lambda turn: turn.visit("Look", "https://example.org", timeout=SOON)),
    "read": (m.READ_TEXT_FILE, lambda turn: turn.read("a.txt", timeout=SOON)),
    "write": (m.WRITE_TEXT_FILE, lambda turn: turn.write("a.txt", "text", timeout=SOON)),
    "output": (m.TERMINAL_OUTPUT, lambda turn: _in_terminal(turn, lambda it: it.output(timeout=SOON))),
    "wait": (m.WAIT_FOR_EXIT, lambda turn: _in_terminal(turn, lambda it: it.wait(timeout=SOON))),
    "finish": (m.WAIT_FOR_EXIT, lambda turn: _in_terminal(turn, lambda it: it.finish(timeout=SOON))),
    "kill": (m.KILL_TERMINAL, lambda turn: _in_terminal(turn, lambda it: it.kill(timeout=SOON))),
}


async def _never(_: object) -> Any:
    await asyncio.Event().wait()


def _silent(call: Call[Any, Any]) -> Router:
    router = Router()
    router.on_request(m.CREATE_TERMINAL, lambda _: v1.CreateTerminalResult("t"))
    router.on_request(m.RELEASE_TERMINAL, lambda _: v1.ReleaseTerminalResult())
    router.on_request(call, _never)
    return router


@each_row("name", VERBS)
async def test_a_verb_fails_in_time_and_the_turn_goes_on(name: str) -> None:
    call, verb = VERBS[name]

    async def prompt(turn: AgentTurn) -> None:
        with pytest.raises(RequestTimeout, match=call.name) as caught:
            await verb(turn)
        assert "\nhint: " in str(caught.value)
        await turn.say("still here")

    async with playing(only_prompt(prompt), FULL, _silent(call)) as editor:
        assert (await editor.turn()).stop_reason == v1.StopReason.END_TURN
        assert "still here" in editor.order and "$/cancel_request" in editor.order


async def test_a_command_on_this_machine_has_the_same_timeout() -> None:
    async def prompt(turn: AgentTurn) -> None:
        async with turn.run(["sleep", "60"]) as running:
            with pytest.raises(RequestTimeout, match=r"`sleep` did not .* within 0.02 seconds"):
                await running.wait(timeout=SOON)
            await running.kill()
            assert (await running.finish(timeout=20)).signal is not None

    async with playing(only_prompt(prompt), v1.ClientCapabilities()) as editor:
        assert (await editor.turn("/")).stop_reason == v1.StopReason.END_TURN


def test_every_verb_that_waits_for_the_client_takes_a_timeout() -> None:
    for kind in (UserQuestions, AgentTurn, RunningCommand, InTerminal, OnThisMachine, LiveCall):
        for name, function in inspect.getmembers(kind, inspect.isfunction):
            source = inspect.getsource(function)
            if not name.startswith("_") and any(
                word in source
                for word in (
                    "self.request(",
                    "_stage.request(",
                    "abstract",
                    ".ask_permission(",
                    "= await running.finish(",
                )
            ):
                assert name in VERBS, f"{kind.__name__}.{name} waits for the client: give it a row"
                assert "timeout" in inspect.signature(function).parameters, f"{kind.__name__}.{name} takes no timeout"


async def test_a_failed_request_cancels_itself_at_the_client_that_did_not_respond() -> None:
    async def prompt(turn: AgentTurn) -> None:
        await turn.read("a.txt", timeout=SOON)

    async with playing(only_prompt(prompt), FULL, _silent(m.READ_TEXT_FILE)) as editor:
        with pytest.raises(Exception, match=r"did not respond to `fs/read_text_file` within 0.02 seconds"):
            await editor.turn()
