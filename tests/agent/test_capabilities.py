"""What is advertised is what is there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent.agent import _HOOKS, Agent, Hooks
from antiphon.agent.session import AgentSession
from antiphon.agent.turn import AgentTurn
from antiphon.errors import Code, LocalProtocolError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.methods import Call
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import playing
from tests.rows import each_row

HELLO = Path(__file__).parents[2] / "examples" / "hello.py"

# hook → what it adds to the capabilities, as JSON; a question that only an agent with this hook answers.
ADVERTISED: dict[str, tuple[Callable[[v1.AgentCapabilities], object], Call[Any, Any], Any]] = {
    "load_session": (lambda it: it.load_session or None, m.LOAD_SESSION, v1.LoadSession("s", "/w", [])),
    "list_sessions": (lambda it: it.session_capabilities.list, m.LIST_SESSIONS, v1.ListSessions()),
    "resume_session": (lambda it: it.session_capabilities.resume, m.RESUME_SESSION, v1.ResumeSession("s", "/w")),
    "fork_session": (lambda it: it.session_capabilities.fork, m.FORK_SESSION, v1.ForkSession("s", "/w")),
    "delete_session": (lambda it: it.session_capabilities.delete, m.DELETE_SESSION, v1.DeleteSession("s")),
    "logout": (lambda it: it.auth.logout, m.LOGOUT, v1.Logout()),
}


def filled(hook: str, form: str) -> Agent:
    """An agent with one hook, as a class or decorated, `def` or `async def`."""

    def plain(*_: object) -> object:
        return [] if hook == "list_sessions" else None

    async def waiting(*_: object) -> object:
        return plain()

    function: Any = waiting if "async" in form else plain
    function.__name__ = hook
    if "class" in form:
        made: Agent = type("Mine", (Agent,), {hook: function})()
        return made
    agent = Agent("mine")
    agent.on(function)
    return agent


FORMS = ["class, def", "class, async", "decorated, def", "decorated, async"]


@each_row("form", FORMS)
@each_row("hook", ADVERTISED)
async def test_a_hook_that_is_filled_in_is_advertised_and_answers(hook: str, form: str) -> None:
    agent = filled(hook, form)
    async with playing(agent) as editor:
        advertised = (await editor.introduce()).agent_capabilities
        assert [name for name, (look, _, _) in ADVERTISED.items() if look(advertised) is not None] == [hook]
        _, call, question = ADVERTISED[hook]
        assert isinstance(await editor.connection.request(call, question), call.result)


@pytest.mark.parametrize("hook", ADVERTISED)
async def test_a_hook_that_is_not_filled_in_is_an_unknown_method(hook: str) -> None:
    async with playing(Agent("bare")) as editor:
        assert ADVERTISED[hook][0]((await editor.introduce()).agent_capabilities) is None
        with pytest.raises(RequestRefused) as refusal:
            await editor.connection.request(ADVERTISED[hook][1], ADVERTISED[hook][2])
        assert refusal.value.code == Code.METHOD_NOT_FOUND


@each_row("form", FORMS)
@each_row("hook", sorted(set(_HOOKS) - set(ADVERTISED)))
async def test_hooks_that_every_agent_has_change_nothing_that_is_advertised(hook: str, form: str) -> None:
    assert filled(hook, form).capabilities == Agent("bare").capabilities


async def test_a_method_that_overrides_another_agents_hook_is_a_hook() -> None:
    class First(Agent):
        def load_session(self, session: AgentSession) -> None: ...

    class Second(First):
        pass

    assert Second().capabilities.load_session
    assert Second().info.name == "second"


def test_a_misspelt_hook_is_an_error_that_lists_the_right_names() -> None:
    agent = Agent("typo")

    def promt(turn: AgentTurn) -> None: ...

    with pytest.raises(LocalProtocolError, match=r"no hook `promt`\nhint: name the function prompt, new_session"):
        agent.on(promt)


def test_a_decorated_function_stays_what_it_is() -> None:
    agent = Agent("x")

    def prompt(turn: AgentTurn) -> None: ...

    assert agent.on(prompt) is prompt


@pytest.mark.parametrize(("name", "word"), [("takes", "video"), ("mcp", "ftp"), ("takes", "text")])
def test_a_kind_that_does_not_exist_is_an_error(name: str, word: str) -> None:
    with pytest.raises(LocalProtocolError, match=rf"`{name}` has no `{word}`\nhint: it may hold"):
        Agent("x", **{name: (word,)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("takes", "advertised"),
    [
        ((), v1.PromptCapabilities()),
        (("image",), v1.PromptCapabilities(image=True)),
        (("audio", "resource"), v1.PromptCapabilities(audio=True, embedded_context=True)),
    ],
)
async def test_what_a_prompt_may_hold_is_advertised(takes: tuple[str, ...], advertised: v1.PromptCapabilities) -> None:
    async with playing(Agent("x", takes=takes, mcp=("sse",))) as editor:
        capabilities = (await editor.introduce()).agent_capabilities
        assert capabilities.prompt_capabilities == advertised
        assert capabilities.mcp_capabilities == v1.McpCapabilities(sse=True)


async def test_an_agent_sends_its_name_and_its_protocol_version() -> None:
    async with playing(Agent("x", "1.2", title="The X")) as editor:
        answer = await editor.connection.request(m.INITIALIZE, v1.Initialize(7))
        assert (answer.protocol_version, answer.agent_info) == (1, v1.Implementation("x", "1.2", "The X"))


async def test_a_way_to_sign_in_by_terminal_is_offered_to_clients_that_open_one() -> None:
    ways: list[v1.AuthMethod] = [v1.AgentAuth(id="key", name="Key"), v1.TerminalAuth(id="tty", name="In a terminal")]
    async with playing(Agent("x", auth_methods=ways)) as editor:
        assert [way.id for way in (await editor.introduce()).auth_methods if not isinstance(way, v1.Unknown)] == ["key"]
        able = v1.ClientCapabilities(auth=v1.AuthCapabilities(terminal=True))
        assert len((await editor.introduce(able)).auth_methods) == 2


def test_hello_world_has_at_most_twenty_lines() -> None:
    assert len(HELLO.read_text(encoding="utf-8").splitlines()) <= 20


def test_every_hook_has_a_sentence() -> None:
    assert all(getattr(Hooks, name).__doc__ for name in _HOOKS)
