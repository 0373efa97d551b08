"""What a turn and a session can send: text, thoughts, content, plans, usage, notices, commands, titles."""

from typing import Any

import pytest

from antiphon.agent.agent import Agent
from antiphon.agent.session import AgentSession
from antiphon.agent.turn import AgentTurn
from antiphon.errors import Code, LocalProtocolError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.methods import Call
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, only_prompt, playing

IMAGE = v1.ImageBlock("aGk=", "image/png")


async def updates_of(prompt: Any, capabilities: v1.ClientCapabilities | None = None) -> list[dict[str, Any]]:
    async with playing(only_prompt(prompt), capabilities) as editor:
        await editor.turn()
    return editor.updates()


async def test_text_thoughts_and_content_are_sent_in_order() -> None:
    async def prompt(turn: AgentTurn) -> None:
        await turn.think("hm")
        await turn.think(IMAGE)
        await turn.say("**yes**")
        await turn.say(IMAGE)
        await turn.say(v1.ResourceLink("f", "file:///f"))

    updates = [(each["sessionUpdate"], each["content"]["type"]) for each in await updates_of(prompt)]
    assert updates == [
        ("agent_thought_chunk", "text"),
        ("agent_thought_chunk", "image"),
        ("agent_message_chunk", "text"),
        ("agent_message_chunk", "image"),
        ("agent_message_chunk", "resource_link"),
    ]


@pytest.mark.parametrize("done", range(4))
async def test_a_plan_of_plain_texts_knows_how_far_it_is(done: int) -> None:
    async def prompt(turn: AgentTurn) -> None:
        await turn.plan("a", "b", "c", done=done)

    entries = (await updates_of(prompt))[0]["entries"]
    statuses = (["completed"] * 3)[:done] + (["in_progress", "pending", "pending"])[: 3 - done]
    assert [(entry["content"], entry["status"]) for entry in entries] == list(zip("abc", statuses, strict=True))


async def test_a_plan_may_be_finer_and_be_taken_back() -> None:
    entry = v1.PlanEntry("x", v1.PlanPriority.HIGH, v1.PlanStatus.PENDING)

    async def prompt(turn: AgentTurn) -> None:
        await turn.plan(entry, "y", done=1)
        await turn.plan()

    plans = [each["entries"] for each in await updates_of(prompt)]
    assert plans[0][0] == {"content": "x", "priority": "high", "status": "pending"}
    assert plans[1] == []


async def test_usage_with_and_without_a_price() -> None:
    async def prompt(turn: AgentTurn) -> None:
        await turn.usage(10, 100)
        await turn.usage(20, 100, 0.5)
        await turn.usage(20, 100, 1, "EUR")

    updates = await updates_of(prompt)
    assert [(each["used"], each["size"], each.get("cost")) for each in updates] == [
        (10, 100, None),
        (20, 100, {"amount": 0.5, "currency": "USD"}),
        (20, 100, {"amount": 1, "currency": "EUR"}),
    ]


async def test_a_notice_is_text_for_clients_that_show_none() -> None:
    async def prompt(turn: AgentTurn) -> None:
        await turn.session.notice("Slow", "the disk is full", v1.NoticeSeverity.WARNING)
        await turn.session.notice("Slow")

    updates = await updates_of(prompt, FULL)
    assert [(each["sessionUpdate"], each["severity"]) for each in updates] == [
        ("notice", "warning"),
        ("notice", "info"),
    ]
    assert [(each["title"], each.get("description")) for each in updates] == [
        ("Slow", "the disk is full"),
        ("Slow", None),
    ]
    assert [each["content"]["text"] for each in await updates_of(prompt)] == ["Slow: the disk is full\n", "Slow\n"]


async def test_commands_and_titles_are_sent_by_the_session() -> None:
    class Offering(Agent):
        async def new_session(self, session: AgentSession) -> None:
            await session.offer(v1.Command("help", "Show help"))
            await session.entitle("Work", "2026-01-01T00:00:00Z")
            await session.entitle(None)

    async with playing(Offering()) as editor:
        await editor.open()
        await editor.until(lambda: len(editor.updates()) == 3)
    commands, title, gone = editor.updates()
    assert commands["availableCommands"] == [{"name": "help", "description": "Show help"}]
    assert (title["title"], title["updatedAt"]) == ("Work", "2026-01-01T00:00:00Z")
    assert gone["title"] is None and "updatedAt" not in gone


async def test_the_agent_knows_its_client() -> None:
    seen: list[AgentSession] = []

    class Looking(Agent):
        def new_session(self, session: AgentSession) -> None:
            seen.append(session)

    async with playing(Looking(), introduced=False) as editor:
        info = v1.Implementation("zed", "1")
        await editor.connection.request(m.INITIALIZE, v1.Initialize(1, FULL, info))
        await editor.open()
        client = seen[0].client
        assert client.info == info and client.capabilities == FULL
        able = [client.reads_files, client.writes_files, client.runs_commands, client.shows_forms, client.opens_pages]
        assert all([*able, client.shows_notices, client.shows_compaction, client.shows_booleans])
        await editor.introduce()
        able = [client.reads_files, client.writes_files, client.runs_commands, client.shows_forms, client.opens_pages]
        assert not any([*able, client.shows_notices, client.shows_compaction, client.shows_booleans])


PING: "Call[Any, Any]" = Call("_mine/ping", dict, dict, side="agent")


@pytest.mark.parametrize("form", ["def", "async def"])
async def test_an_extension_gets_plain_values_and_answers_with_them(form: str) -> None:
    agent = Agent("x")

    async def later(params: Any) -> Any:
        return {"got": params}

    agent.extension("_mine/ping")(later if form == "async def" else lambda params: {"got": params})
    async with playing(agent) as editor:
        assert await editor.connection.request(PING, {"a": [1]}) == {"got": {"a": [1]}}
        raw = b'{"jsonrpc":"2.0","id":"bare","method":"_mine/ping"}\n'
        editor.connection.transport.out += raw
        editor.connection.transport.flush()
        await editor.until(lambda: editor.received[-1].get("id") == "bare")
        assert editor.received[-1]["result"] == {"got": {}}


async def test_an_unknown_extension_is_an_unknown_method() -> None:
    async with playing(Agent("x")) as editor:
        with pytest.raises(RequestRefused) as refusal:
            await editor.connection.request(PING, {})
        assert refusal.value.code == Code.METHOD_NOT_FOUND


def test_an_extension_may_not_take_a_name_of_the_protocol() -> None:
    with pytest.raises(LocalProtocolError, match="`session/prompt` is a name of the protocol\nhint: extensions begin"):
        Agent("x").extension("session/prompt")


async def test_signing_in_by_a_method_on_offer_and_no_other() -> None:
    signed: list[str] = []

    class Locked(Agent):
        auth_methods = (v1.AgentAuth(id="key", name="Key"),)

        async def authenticate(self, method_id: str) -> None:
            signed.append(method_id)

        def logout(self) -> None:
            signed.clear()

    async with playing(Locked()) as editor:
        await editor.connection.request(m.AUTHENTICATE, v1.Authenticate("key"))
        assert signed == ["key"]
        with pytest.raises(RequestRefused, match="no method `magic` to sign in; on offer: `key`") as refusal:
            await editor.connection.request(m.AUTHENTICATE, v1.Authenticate("magic"))
        assert refusal.value.code == Code.INVALID_PARAMS
        await editor.connection.request(m.LOGOUT, v1.Logout())
        assert signed == []
    async with playing(Agent("open")) as editor:
        with pytest.raises(RequestRefused, match="nothing to sign in to"):
            await editor.connection.request(m.AUTHENTICATE, v1.Authenticate("key"))
