"""Agents that do not respond: every verb of the client has a timeout, and everything can still be used after it."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon.client import sync
from antiphon.client.agent import ConnectedAgent
from antiphon.client.connect import connect
from antiphon.client.link import Retry
from antiphon.client.session import ClientSession
from antiphon.connection.router import Router
from antiphon.errors import Code, RequestError, RequestTimeout
from antiphon.protocol import v1
from antiphon.protocol.methods import Call, extension_call
from antiphon.protocol.v1 import methods as m
from tests.client import troubles as t
from tests.client.agents import ROOT, Scripted, connected
from tests.rows import each_row

SOON = 0.02
CAPABLE = v1.AgentCapabilities(
    load_session=True,
    session_capabilities=v1.SessionCapabilities(
        list=v1.ListSupport(),
        delete=v1.DeleteSupport(),
        close=v1.CloseSupport(),
        resume=v1.ResumeSupport(),
        fork=v1.ForkSupport(),
    ),
    auth=v1.AgentAuthCapabilities(logout=v1.LogoutSupport()),
)
WELCOME = v1.InitializeResult(1, agent_capabilities=CAPABLE, auth_methods=[v1.AgentAuth("key", "A key")])
OFFER = v1.NewSessionResult(
    "s",
    modes=v1.ModeState("a", [v1.Mode("a", "A")]),
    models=v1.ModelState([v1.SessionModel("x", "X")], "x"),
    config_options=[v1.SelectConfig(id="o", name="O", current_value="1", options=[v1.SelectOption("1", "One")])],
)
Verb = Callable[[ConnectedAgent, ClientSession, Any], Awaitable[object]]


async def _listed(agent: ConnectedAgent, given: Any) -> list[v1.SessionInfo]:
    return [info async for info in agent.list_sessions(**given)]


PING = extension_call("_test/ping")

VERBS: dict[str, tuple[Call[Any, Any], Verb]] = {
    "new_session": (m.NEW_SESSION, lambda agent, _, given: agent.new_session("/", **given)),
    "load_session": (m.LOAD_SESSION, lambda agent, _, given: agent.load_session("old", "/", **given)),
    "resume_session": (m.RESUME_SESSION, lambda agent, _, given: agent.resume_session("old", "/", **given)),
    "fork_session": (m.FORK_SESSION, lambda agent, _, given: agent.fork_session("old", "/", **given)),
    "list_sessions": (m.LIST_SESSIONS, lambda agent, _, given: _listed(agent, given)),
    "delete_session": (m.DELETE_SESSION, lambda agent, _, given: agent.delete_session("old", **given)),
    "request_extension": (PING, lambda agent, _, given: agent.request_extension("_test/ping", **given)),
    "logout": (m.LOGOUT, lambda agent, _, given: agent.logout(**given)),
    "set_mode": (m.SET_MODE, lambda _, session, given: session.set_mode("a", **given)),
    "set_model": (m.SET_MODEL, lambda _, session, given: session.set_model("x", **given)),
    "set_config_option": (m.SET_CONFIG_OPTION, lambda _, session, given: session.set_config_option("o", "1", **given)),
    "close": (m.CLOSE_SESSION, lambda _, session, given: session.close(**given)),
}
"""The verbs that have a timeout by default."""

WITHOUT: dict[str, tuple[Call[Any, Any], Verb]] = {
    "authenticate": (m.AUTHENTICATE, lambda agent, _, given: agent.authenticate("key", **given)),
    "prompt": (m.PROMPT, lambda _, session, given: session.prompt("hi", **given)),
}
"""The verbs that have one only if it is given: a person signs in, and a turn takes as long as its work."""

ONLY_IN_VERSION_2 = ("cancel_tool_call", "cancel_terminal", "wait_idle")
"""Verbs that an agent of version 1 is not sent. They take a timeout: test_work.py."""

BOUNDED_OTHERWISE = {
    "close": "of the agent: the ladder that ends its process",
    "cancel": "cancel_grace",
    "notify_extension": "a notification: it has no response, and waits while the agent is slow to read",
}
"""Verbs that wait for the agent and take no timeout."""


async def _never(_: object) -> Any:
    await asyncio.Event().wait()


def _silent(*silent: Call[Any, Any]) -> Router:
    """An agent that does not respond to these methods, and to the others at once."""
    router = Router()
    router.on_request(m.INITIALIZE, lambda _: WELCOME)
    router.on_request(m.NEW_SESSION, lambda _: OFFER)
    router.on_request(m.PROMPT, lambda _: v1.PromptResult(v1.StopReason.END_TURN))
    for call in silent:
        router.on_request(call, _never)
    if m.PROMPT in silent:
        cancelled = asyncio.Event()

        async def work(_: v1.Prompt) -> v1.PromptResult:
            await cancelled.wait()
            return v1.PromptResult(v1.StopReason.CANCELLED)

        router.on_request(m.PROMPT, work)
        router.on_notice(m.CANCEL, lambda _: cancelled.set())
    return router


@each_row("name", [*VERBS, *WITHOUT])
async def test_a_verb_fails_in_time_and_the_connection_can_still_be_used(name: str) -> None:
    call, verb = (VERBS | WITHOUT)[name]
    router, opened = _silent(call), iter([OFFER])
    if call is m.NEW_SESSION:
        router.on_request(call, lambda asked: next(opened, None) or _never(asked))
    async with connected(router) as (agent, _):
        session = await agent.new_session("/")
        with pytest.raises(RequestTimeout, match=call.name) as caught:
            await verb(agent, session, {"timeout": SOON})
        assert caught.value.timeout == SOON and "\nhint: " in str(caught.value)
        after = VERBS["list_sessions" if name != "list_sessions" else "logout"]
        router.on_request(m.LIST_SESSIONS, lambda _: v1.ListSessionsResult([]))
        router.on_request(m.LOGOUT, lambda _: v1.LogoutResult())
        assert not await after[1](agent, session, {})


async def test_the_timeout_of_the_connection_counts_for_all_but_a_turn_and_a_sign_in() -> None:
    calls = [call for call, _ in (VERBS | WITHOUT).values() if call is not m.NEW_SESSION]
    router, opened = _silent(*calls), iter([OFFER, OFFER])
    router.on_request(m.NEW_SESSION, lambda asked: next(opened, None) or _never(asked))
    async with connected(router, timeout=1) as (agent, _):
        session, closing = await agent.new_session("/"), await agent.new_session("/")
        endless = [asyncio.ensure_future(_of(verb(agent, session, {}))) for _, verb in WITHOUT.values()]
        bounded = [verb(agent, closing if name == "close" else session, {}) for name, (_, verb) in VERBS.items()]
        errors = await asyncio.gather(*bounded, return_exceptions=True)
        assert [(type(error), getattr(error, "timeout", None)) for error in errors] == [(RequestTimeout, 1)] * len(
            VERBS
        )
        assert not any(work.done() for work in endless)
        for work in endless:
            work.cancel()


async def _of(work: Awaitable[object]) -> object:
    return await work


def test_every_verb_of_the_client_is_in_these_tables_and_takes_a_timeout() -> None:
    for kind in (ConnectedAgent, ClientSession, sync.SyncAgent, sync.SyncSession):
        for name, function in inspect.getmembers(kind, inspect.isfunction):
            sends = any(
                word in inspect.getsource(function) for word in ("request(", ".ask(", "_ask(", "sign_in(", ".run(")
            )
            if name.startswith("_") or not sends or name in BOUNDED_OTHERWISE:
                continue
            known = name in VERBS | WITHOUT or name in ONLY_IN_VERSION_2
            assert known, f"{kind.__name__}.{name} waits for the agent: give it a row"
            taken = inspect.signature(function).parameters
            assert "timeout" in taken or "options" in taken, f"{kind.__name__}.{name} takes no timeout"
    assert "timeout" in sync.ConnectOptions.__annotations__


def test_the_client_without_async_takes_what_the_other_takes() -> None:
    assert inspect.signature(sync.connect).parameters.keys() == inspect.signature(connect).parameters.keys()


# A turn.


async def test_a_turn_that_takes_too_long_is_cancelled_and_the_next_one_works(tmp_path: Path) -> None:
    script = Scripted(t.Cancellable, tmp_path)
    async with script.connect() as agent:
        session = await agent.new_session()
        turn = session.prompt("cancelled", timeout=SOON)
        with pytest.raises(RequestTimeout, match="session/prompt"):
            await turn
        with pytest.raises(RequestTimeout):
            _ = turn.result
        assert "> cancelled" in session.transcript.plain()
        again = session.prompt("cancelled")
        await anext(again)
        assert (await again.cancel()).stop_reason == v1.StopReason.CANCELLED
    assert script.received.count("session/cancel") == 2


async def test_the_timeout_of_a_turn_counts_while_it_waits_to_be_sent_again() -> None:
    router, asked = _silent(), list[object]()

    def refuse(prompt: object) -> v1.PromptResult:
        asked.append(prompt)
        raise RequestError(Code.SESSION_EXPIRED, "Session expired")

    router.on_request(m.PROMPT, refuse)
    async with connected(router, retry=Retry((3600,))) as (agent, _):
        session = await agent.new_session("/")
        with pytest.raises(RequestTimeout, match="session/prompt"):
            await session.prompt("hi", timeout=SOON)
        assert len(asked) == 1


async def test_a_turn_that_ends_in_time_is_as_without_a_timeout() -> None:
    async with connected(_silent()) as (agent, _):
        session = await agent.new_session("/")
        assert (await session.prompt("hi", timeout=3600)).stop_reason == v1.StopReason.END_TURN


def test_the_client_without_async_has_the_same_timeouts(tmp_path: Path) -> None:
    with sync.connect(Scripted(t.IgnoresCancel, tmp_path).command, cwd=ROOT, timeout=3600, cancel_grace=SOON) as agent:
        turn = agent.new_session().prompt("hi", timeout=SOON)
        with pytest.raises(RequestTimeout, match="session/prompt"):
            _ = turn.result
