"""A link with sessions that its client attaches itself, and links that share a client: each event once, whatever connection it comes on."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from antiphon.codes import FIND_OWNER
from antiphon.errors import RequestError
from antiphon.gateway.hub import Hub
from antiphon.remote.link import RemoteLink
from antiphon.remote.paths import PathMap
from tests.gateway.peers import RawClient, Stage, stage
from tests.gateway.test_turns import end
from tests.remote.test_link import Linked, Server, linked
from tests.waits import idle, until

ATTACH = "_antiphon/session/attach"


def numbers(client: RawClient) -> list[int]:
    """The numbers of all events that a client was given, those in responses included."""
    found = []
    for message in client.messages:
        for part in (message.get("params"), message.get("result")):
            if isinstance(part, dict):
                meta = (part.get("_meta") or {}).get("antiphon") or {}
                number = meta.get("number", part.get("number") if "method" in message else None)
                found += [number] if number else []
    return found


async def attached(here: Linked, cwd: Path) -> str:
    """Initialize a client with numbers, and have it attach to a session of another client."""
    other = await here.place.client()
    session = await other.new(cwd)
    await here.client.initialize(numbers=True)
    await here.client.request(ATTACH, {"sessionId": session})
    return session


async def test_a_session_that_the_client_attached_itself_is_attached_again_after_the_last_event(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await attached(here, tmp_path)
        here.place.agent.say(session, "one", "two")
        await until(lambda: here.client.texts == ["one", "two"])
        await here.server.cut(stay=True)
        here.place.agent.say(session, "three")
        await until(lambda: here.hub_session.last == 3)
        here.server.is_up.set()
        here.place.agent.say(session, "four")
        await until(lambda: len(here.client.texts) == 4)
        assert here.client.texts == ["one", "two", "three", "four"]
        assert numbers(here.client) == [1, 2, 3, 4]


async def test_a_client_that_goes_back_is_given_again_what_it_asked_for(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await attached(here, tmp_path)
        here.place.agent.say(session, "one", "two", "three")
        await until(lambda: len(here.client.texts) == 3)
        await here.client.request(ATTACH, {"sessionId": session, "after": 1})
        await until(lambda: len(here.client.texts) == 5)
        await here.server.cut()
        here.place.agent.say(session, "four")
        await until(lambda: len(here.client.texts) == 6)
        assert numbers(here.client) == [1, 2, 3, 2, 3, 4]


async def test_an_attach_whose_connection_is_lost_is_sent_again(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        other = await here.place.client()
        session = await other.new(tmp_path)
        await here.client.initialize(numbers=True)
        transport = here.server.opened[-1]
        transport.flush = lambda: None  # type: ignore[method-assign]
        asked = here.client.begin(ATTACH, {"sessionId": session})
        await until(lambda: b"attach" in transport.out)
        transport.out.clear()
        await here.server.cut()
        assert (await here.client.response(asked))["result"]["number"] == 0
        here.place.agent.say(session, "on")
        await until(lambda: here.client.texts == ["on"])


async def test_a_session_that_the_client_detached_is_not_attached_again(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await attached(here, tmp_path)
        await here.client.request("_antiphon/session/detach", {"sessionId": session})
        await here.server.cut()
        await here.client.request("session/list", {})
        here.place.agent.say(session, "on")
        await until(lambda: here.hub_session.last == 1)
        await idle()
        assert here.client.texts == []


async def test_the_prompts_that_wait_are_sent_anew_to_a_client_whose_connection_was_lost(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await attached(here, tmp_path)
        await here.server.cut(stay=True)
        bob = await here.place.client()
        bob.prompt(session, "one")
        bob.prompt(session, "two")
        await until(lambda: here.hub_session.turns.queued == 1)
        here.server.is_up.set()
        queues: Callable[[], list[Any]] = lambda: [  # noqa: E731 - looked at again and again
            each["params"]["queue"] for each in here.client.messages if each.get("method") == "_antiphon/session/queue"
        ]
        await until(lambda: queues() and [each["text"] for each in queues()[-1]] == ["two"])


async def test_a_load_of_which_nothing_has_come_is_sent_again(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        other = await here.place.client()
        session = await other.new(tmp_path)
        here.place.agent.say(session, "one")
        await until(lambda: here.hub_session.last == 1)
        await here.client.initialize()
        transport = here.server.opened[-1]
        transport.flush = lambda: None  # type: ignore[method-assign]
        asked = here.client.begin("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        await until(lambda: b"session/load" in transport.out)
        transport.out.clear()
        await here.server.cut()
        assert "result" in await here.client.response(asked)
        assert here.client.texts == ["one"]


async def test_a_session_that_is_loaded_again_is_replayed_whole_with_its_messages_merged(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        params = {"protocolVersion": 1, "clientCapabilities": {}, "_meta": {"antiphon": {"merged": True}}}
        await here.client.request("initialize", params)
        session = await here.client.new(tmp_path)
        here.place.agent.say(session, "a", "b", "c")
        await until(lambda: here.client.texts == ["a", "b", "c"])
        await here.client.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert here.client.texts == ["a", "b", "c", "abc"]


async def test_a_prompt_in_a_session_that_was_never_opened_gets_its_response_on_another_connection(
    tmp_path: Path,
) -> None:
    async with linked(tmp_path) as here:
        other = await here.place.client()
        session = await other.new(tmp_path)
        await here.client.initialize()
        asked = here.client.prompt(session, "work")
        await here.place.agent.got("session/prompt")
        await here.server.cut()
        here.place.agent.say(session, "on")
        await end(here.place)
        assert (await here.client.response(asked))["result"]["stopReason"] == "end_turn"
        assert here.client.texts == ["on"]
        assert len(here.place.agent.received("session/prompt")) == 1


# A link that is one of several of a client.

HELLO = b'{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}'


class Several:
    """Links to one hub that share a client, and what it gets from each."""

    def __init__(self, place: Stage, ids: Iterator[int]) -> None:
        self.place = place
        self.ids = ids
        self.servers: list[Server] = []
        self.links: list[RemoteLink] = []

    def link(self) -> RawClient:
        """Make another link. What is returned is the client's view of it."""
        server = Server(self.place)
        link = RemoteLink(server, PathMap(), delays=(0,), offers_files=True, hello=HELLO, ids=self.ids)
        self.servers.append(server)
        self.links.append(link)
        return Viewed(link)


class Viewed(RawClient):
    """A client over a link without a bridge between."""

    def __init__(self, link: RemoteLink) -> None:
        super().__init__(None, transport=link)
        self.link = link

    def send(self, frame: bytes) -> None:
        message = msgspec.json.decode(frame)
        session = (message.get("params") or {}).get("sessionId")
        self.link.route(frame, session, UNSET if "method" in message else message["id"])


@asynccontextmanager
async def several(directory: Path) -> AsyncIterator[Several]:
    async with stage(directory) as place:
        found = Several(place, count(1))
        try:
            yield found
        finally:
            await asyncio.gather(*(link.close() for link in found.links))


async def test_a_link_that_was_given_the_greeting_of_its_client_answers_it_to_no_one(tmp_path: Path) -> None:
    async with several(tmp_path) as here:
        client = here.link()
        session = await client.new(tmp_path)
        here.place.agent.say(session, "on")
        await until(lambda: client.texts == ["on"])
        await here.servers[0].cut()
        here.place.agent.say(session, "and on")
        await until(lambda: client.texts == ["on", "and on"])
        assert [each["id"] for each in client.messages if "id" in each] == [1]


async def test_the_requests_of_agents_on_two_links_of_a_client_have_different_ids(tmp_path: Path) -> None:
    async with several(tmp_path) as here:
        clients = [here.link(), here.link()]
        sessions = [await client.new(tmp_path) for client in clients]
        for client, session in zip(clients, sessions, strict=True):
            client.prompt(session, "work")
        await here.place.agent.got("session/prompt", 2)
        for place, session in enumerate(sessions):
            here.place.agent.ask(place, session)
        asked = [await client.asked() for client in clients]
        assert sorted(each["id"] for each in asked) == [1, 2]
        for client, request in zip(clients, asked, strict=True):
            client.choose(request)
        await until(lambda: sum(b"allow_once" in line for line in here.place.agent.lines) == 2)


async def test_a_request_that_a_server_refuses_because_another_has_the_session_is_sent_to_that_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with several(tmp_path) as here:
        other = await here.place.client()
        session = await other.new(tmp_path)
        await other.request("session/close", {"sessionId": session})
        refused = 0
        opened = Hub.open_stored

        async def open_stored(self: Hub, *given: Any) -> Any:
            nonlocal refused
            refused += 1
            if refused < 3:
                raise RequestError(-32603, "another has it", {"recoverable": True, "action": FIND_OWNER})
            return await opened(self, *given)

        monkeypatch.setattr(Hub, "open_stored", open_stored)
        client = here.link()
        found = await client.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert found == {} and len(here.servers[0].opened) == 3


async def test_a_greeting_that_is_refused_for_good_is_the_answer_to_what_waits(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        link = RemoteLink(Server(place), PathMap(), delays=(0,), offers_files=True, hello=HELLO.replace(b"{}", b"[]"))
        client = Viewed(link)
        error = await client.refused("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert error["code"] == -32602 and "cannot be read" in error["message"]
        await link.close()
