"""What a client sends around a lost connection reaches the agent in order, once, or not at all; and a link knows when to stop trying."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from antiphon.errors import ConnectionClosed
from antiphon.remote import link as link_module
from antiphon.remote.link import RemoteLink
from antiphon.remote.paths import PathMap
from antiphon.transports.base import Transport
from antiphon.transports.memory import MemoryTransport, memory_pair
from antiphon.transports.remote import ConnectionRefused, RemoteAddress
from tests.gateway.peers import RawClient
from tests.gateway.test_turns import BOB, end
from tests.remote.test_link import Linked, linked, opened
from tests.waits import idle, until


def lose_what_is_sent(here: Linked) -> Transport:
    """Let nothing of what is sent from now on reach the gateway."""
    transport = here.server.opened[-1]
    transport.flush = lambda: None  # type: ignore[method-assign]
    return transport


async def lost(here: Linked, transport: Transport, word: bytes) -> None:
    """Wait until something was sent that the gateway does not get, then cut the connection. Another is not opened yet."""
    await until(lambda: word in transport.out)
    transport.out.clear()
    await here.server.cut(stay=True)


def order(lines: Iterable[bytes]) -> list[Any]:
    """What was sent in the session: modes, prompts and cancellations."""
    found = []
    for message in map(msgspec.json.decode, lines):
        if message.get("method") == "session/prompt":
            found.append(message["params"]["prompt"][0]["text"])
        elif message.get("method") in ("session/set_mode", "session/cancel"):
            found.append(message["params"].get("modeId", "cancel"))
    return found


async def test_a_prompt_that_was_lost_and_is_cancelled_before_it_could_be_sent_again_is_never_sent(
    tmp_path: Path,
) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        transport = lose_what_is_sent(here)
        asked = here.client.prompt(session, "work")
        await lost(here, transport, b"session/prompt")
        here.client.notify("session/cancel", {"sessionId": session})
        next_one = here.client.prompt(session, "next")
        here.server.is_up.set()
        assert (await here.client.response(asked))["result"] == {"stopReason": "cancelled"}
        await end(here.place)
        assert (await here.client.response(next_one))["result"]["stopReason"] == "end_turn"
        assert order(here.place.agent.lines) == ["next"]


async def test_a_prompt_that_waits_for_a_connection_is_answered_at_once_when_it_is_cancelled(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        await here.server.cut(stay=True)
        asked = here.client.prompt(session, "work")
        here.client.notify("session/cancel", {"sessionId": session})
        assert (await here.client.response(asked))["result"] == {"stopReason": "cancelled"}
        here.server.is_up.set()
        await here.client.request("session/list", {})
        assert order(here.place.agent.lines) == []


async def test_a_cancellation_without_a_connection_does_not_end_the_turn_of_another_client(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        transport = lose_what_is_sent(here)
        asked = here.client.prompt(session, "mine")
        await lost(here, transport, b"session/prompt")
        bob = await here.place.client(BOB)
        await bob.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        theirs = bob.prompt(session, "theirs")
        await here.place.agent.got("session/prompt")
        here.client.notify("session/cancel", {"sessionId": session})
        here.server.is_up.set()
        assert (await here.client.response(asked))["result"] == {"stopReason": "cancelled"}
        await here.client.request("session/list", {})
        await end(here.place)
        assert (await bob.response(theirs))["result"]["stopReason"] == "end_turn"
        assert order(here.place.agent.lines) == ["theirs"]


def cancellation(method: str, session: str, asked: int) -> dict[str, object]:
    """The params of a notification that cancels a prompt: by its session, or by the id of its request."""
    return {"sessionId": session} if method == "session/cancel" else {"requestId": asked}


@pytest.mark.parametrize("method", ["session/cancel", "$/cancel_request"])
async def test_a_cancellation_that_was_lost_is_sent_again_before_what_came_after_it(
    tmp_path: Path, method: str
) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        asked = here.client.prompt(session, "work")
        await here.place.agent.got("session/prompt")
        transport = lose_what_is_sent(here)
        here.client.notify(method, cancellation(method, session, asked))
        await lost(here, transport, b"cancel")
        next_one = here.client.prompt(session, "next")
        here.server.is_up.set()
        await here.place.agent.got("session/cancel")
        await end(here.place, reason="cancelled")
        assert (await here.client.response(asked))["result"]["stopReason"] == "cancelled"
        await end(here.place, 2)
        assert (await here.client.response(next_one))["result"]["stopReason"] == "end_turn"
        assert order(here.place.agent.lines) == ["work", "cancel", "next"]


async def test_prompts_that_wait_at_the_gateway_are_cancelled_from_another_connection(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        asked = [here.client.prompt(session, text) for text in ("one", "two")]
        await until(lambda: here.hub_session.turns.queued == 1)
        await here.place.agent.got("session/prompt")
        await here.server.cut()
        here.client.notify("session/cancel", {"sessionId": session})
        assert (await here.client.response(asked[1]))["result"]["stopReason"] == "cancelled"
        await end(here.place, reason="cancelled")
        assert (await here.client.response(asked[0]))["result"]["stopReason"] == "cancelled"
        assert order(here.place.agent.lines) == ["one", "cancel"]


@pytest.mark.parametrize("method", ["session/cancel", "$/cancel_request"])
async def test_a_turn_that_is_cancelled_without_a_connection_is_cancelled_at_the_agent(
    tmp_path: Path, method: str
) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        asked = here.client.prompt(session, "work")
        await here.place.agent.got("session/prompt")
        await here.server.cut(stay=True)
        here.client.notify(method, cancellation(method, session, asked))
        here.server.is_up.set()
        await here.place.agent.got("session/cancel")
        await end(here.place, reason="cancelled")
        assert (await here.client.response(asked))["result"]["stopReason"] == "cancelled"


async def test_what_is_sent_again_and_what_waited_keep_the_order_of_the_client(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        here.place.agent.answers["session/set_mode"] = lambda params: {}
        transport = lose_what_is_sent(here)
        first = here.client.begin("session/set_mode", {"sessionId": session, "modeId": "plan"})
        asked = here.client.prompt(session, "work")
        await lost(here, transport, b"session/prompt")
        here.server.sent.clear()
        last = here.client.begin("session/set_mode", {"sessionId": session, "modeId": "default"})
        here.server.is_up.set()
        await here.client.response(first)
        await here.client.response(last)
        await end(here.place)
        await here.client.response(asked)
        assert order(bytes(here.server.sent).splitlines()) == ["plan", "work", "default"]


async def test_a_request_of_the_agent_in_a_session_that_was_deleted_is_cancelled(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        asked = here.client.prompt(session, "work")
        await here.place.agent.got("session/prompt")
        here.place.agent.ask(9, session)
        request = await here.client.asked()
        await here.server.cut(stay=True)
        await here.place.hub.delete(here.hub_session)
        here.server.is_up.set()
        assert "no session" in (await here.client.response(asked))["error"]["message"]
        cancelled = [each["params"] for each in here.client.messages if each.get("method") == "$/cancel_request"]
        assert cancelled == [{"requestId": request["id"]}]


async def test_a_session_whose_load_was_lost_is_not_shown_to_a_client_that_got_an_error(tmp_path: Path) -> None:
    async with linked(tmp_path, wait_timeout=0.05) as here:
        bob = await here.place.client(BOB)
        session = await bob.new(tmp_path)
        await here.client.initialize()
        transport = lose_what_is_sent(here)
        asked = here.client.begin("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        await lost(here, transport, b"session/load")
        assert (await here.client.response(asked))["error"]["data"]["recoverable"] is True
        here.server.is_up.set()
        await here.client.request("session/list", {})
        bob.prompt(session, "work")
        await end(here.place)
        await idle()
        assert here.client.texts == []


# When to stop.


class Refusing(RemoteAddress):
    """A server whose connections are lost for a reason with the first message, as those over HTTP are."""

    def __init__(self, why: ConnectionClosed) -> None:
        super().__init__("http://host/acp")
        self.opened = 0
        self._why = why

    async def open(self) -> Transport:
        self.opened += 1
        ours, theirs = memory_pair()
        theirs.attach(_Refusal(ours, self._why))
        return ours


class _Refusal:
    def __init__(self, transport: Transport, why: ConnectionClosed) -> None:
        self._transport, self._why = transport, why

    def block_received(self, block: object) -> None:
        self._transport._lose(self._why)

    def connection_lost(self, error: Exception) -> None:
        pass


HELLO = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'


async def test_a_server_that_refuses_the_first_message_for_good_is_not_tried_again() -> None:
    server = Refusing(ConnectionRefused("no", status=401, hint="check the token"))
    link = RemoteLink(server, PathMap(), delays=(0,))
    client = RawClient(None, transport=link)
    link.route(HELLO, None, UNSET)
    error = (await client.response(1))["error"]
    assert error["message"] == "no" and error["data"] == {"hint": "check the token", "recoverable": False}
    assert client.is_lost and server.opened == 1
    await link.close()


async def test_a_server_that_refuses_to_be_initialized_again_ends_the_link_with_its_reason(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        asked = here.client.prompt(session, "work")
        await here.place.agent.got("session/prompt")
        ours, theirs = memory_pair()
        refusal = {"code": -32602, "message": "no such version", "data": {"hint": "use version 2"}}
        theirs.attach(_Answering(theirs, {"error": refusal}))
        here.server.other = ours
        await here.server.cut()
        error = (await here.client.response(asked))["error"]
        assert "no such version" in error["message"] and error["data"]["hint"] == "use version 2"
        await until(lambda: here.client.is_lost)


class _Answering:
    """Answers every request with the same."""

    def __init__(self, transport: MemoryTransport, answer: dict[str, object] | None) -> None:
        self._transport, self._answer = transport, answer

    def block_received(self, block: object) -> None:
        assert isinstance(block, bytes)
        if self._answer is not None:
            for line in block.splitlines():
                id = msgspec.json.decode(line).get("id")
                self._transport.out += msgspec.json.encode({"jsonrpc": "2.0", "id": id, **self._answer}) + b"\n"
            self._transport.flush_soon()

    def connection_lost(self, error: Exception) -> None:
        pass


async def test_a_server_that_says_nothing_is_left_for_another_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        monkeypatch.setattr(link_module, "OPEN_TIMEOUT", 0.05)
        ours, theirs = memory_pair()
        theirs.attach(_Answering(theirs, None))
        here.server.other = ours
        await here.server.cut()
        await until(lambda: len(here.server.opened) == 2)
        here.place.agent.say(session, "on")
        await until(lambda: here.client.texts == ["on"])


@pytest.mark.parametrize("early", [True, False], ids=["before the connection", "on the connection"])
async def test_a_server_that_wants_a_token_is_named_with_what_to_do_and_not_tried_again(early: bool) -> None:
    ours, theirs = memory_pair()
    theirs.attach(_Answering(theirs, {"result": {"protocolVersion": 1, "_meta": {"antiphon": {"wantsToken": True}}}}))

    class Unopened(RemoteAddress):
        async def open(self) -> Transport:
            if early:
                await is_asked.wait()
            return ours

    is_asked = asyncio.Event()
    link = RemoteLink(Unopened("ws://host/acp"), PathMap(), delays=(0,))
    client = RawClient(None, transport=link)
    if not early:
        await idle()
    link.route(HELLO, None, UNSET)
    is_asked.set()
    error = (await client.response(1))["error"]
    assert error["message"] == "`host` wants its token"
    assert "--token-file" in error["data"]["hint"] and error["data"]["recoverable"] is False
    await until(lambda: client.is_lost)
    await link.close()


async def test_a_message_that_is_nested_too_deep_does_not_end_the_connection(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        await opened(here, tmp_path)
        deep = b'{"jsonrpc":"2.0","method":"x","params":%b}' % (b"[" * 100_000 + b"]" * 100_000)
        here.link.line_received(deep)
        await until(lambda: deep in here.client.frames)
