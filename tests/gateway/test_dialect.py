"""A client written from the OpenCode-derived page alone, over a WebSocket to `antiphon serve`. It reads no field that the page does not have."""

import json
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.sync.client import ClientConnection

from antiphon.gateway.clients.dialect import OpenCodeDialect
from antiphon.rpc.envelope import Request
from tests.gateway.peers import RawClient, Stage, demo, stage
from tests.gateway.processes import Gateway, running
from tests.gateway.test_turns import end
from tests.limits import limit
from tests.waits import until

Json = dict[str, Any]
ABOUT = {
    "protocolVersion": 1,
    "clientInfo": {"name": "page"},
    "clientCapabilities": {"prompt": {"image": False}, "mcp": {"transport": {"http": True}}},
}


class PageClient:
    """Newline-delimited JSON over a WebSocket, in the words of the page."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._arrived: deque[Json] = deque()
        self._id = 0
        self.texts: dict[str, dict[str, list[str]]] = {}
        """What was sent in each session, by part: the deltas in the order of their indexes."""
        self.calls: dict[str, Json] = {}
        self.plans: list[Json] = []
        self.decide = "once"

    def begin(self, *requests: tuple[str, Json]) -> list[int]:
        """Send requests in one frame, each on a line."""
        first = self._id + 1
        lines = []
        for method, params in requests:
            self._id += 1
            lines.append(json.dumps({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}))
        self._socket.send("\n".join(lines) + "\n")
        return list(range(first, self._id + 1))

    def response(self, id: int) -> Json:
        """Read until the response to a request, and answer what is asked on the way."""
        while True:
            message = self.next()
            if message.get("id") == id and "method" not in message:
                return message

    def next(self) -> Json:
        while not self._arrived:
            text = self._socket.recv(timeout=limit())
            self._arrived.extend(json.loads(line) for line in str(text).split("\n") if line)
        message = self._arrived.popleft()
        if message.get("method") == "session/update":
            self._updated(message["params"])
        elif message.get("method") == "session/request_permission":
            asked = message["params"]
            assert asked["permissionId"] and asked["title"] and asked["kind"] in ("edit", "execute", "delete", "other")
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"decision": self.decide}}
            self._socket.send(json.dumps(answer) + "\n")
        return message

    def call(self, method: str, params: Json) -> Json:
        """Send a request and return its result."""
        found = self.response(self.begin((method, params))[0])
        assert "result" in found, found
        result: Json = found["result"]
        return result

    def _updated(self, params: Json) -> None:
        if "contentChunk" in params:
            chunk = params["contentChunk"]
            part = self.texts.setdefault(params["sessionId"], {}).setdefault(chunk["id"], [])
            assert chunk["index"] == len(part), "a piece is missing, or there twice"
            part.append(chunk["delta"])
        if "toolCall" in params:
            call = params["toolCall"]
            self.calls[call["toolCallId"]] = {**self.calls.get(call["toolCallId"], {}), **call}
        if "plan" in params:
            self.plans.append(params["plan"])

    def texts_of(self, session: str) -> list[str]:
        return ["".join(part) for part in self.texts.get(session, {}).values()]


@contextmanager
def page_client(gateway: Gateway, how: str = "password") -> Iterator[PageClient]:
    """A client that has signed in without a header."""
    with gateway.open_socket({}) as socket:
        client = PageClient(socket)
        offered = client.call("initialize", ABOUT)
        assert offered["protocolVersion"] == 1 and offered["agentInfo"]["name"] and how in offered["authMethods"]
        client.call("authenticate", {"method": how, "password" if how == "password" else "token": gateway.token})
        yield client


def prompt(session: str, text: str) -> tuple[str, Json]:
    return "session/prompt", {"sessionId": session, "content": [{"type": "text", "text": text}]}


@pytest.mark.slow  # it starts a gateway
def test_a_client_that_knows_the_page_alone_prompts_permits_cancels_loads_and_has_two_sessions(tmp_path: Path) -> None:
    with running(tmp_path) as gateway:
        cwd = {"cwd": str(gateway.directory / "root")}
        with page_client(gateway) as client:
            made = client.call("session/new", cwd)
            first = made["sessionId"]
            assert all(mode["id"] and mode["name"] for mode in made.get("modes", []))
            assert client.call(*prompt(first, "/many 20"))["stopReason"] == "end_turn"
            assert client.texts_of(first) == ["".join(f"{number} " for number in range(20))]
            assert client.call(*prompt(first, "/plan"))["stopReason"] == "end_turn"
            assert {step["status"] for step in client.plans[-1]["steps"]} == {"completed"}
            assert client.call(*prompt(first, "/permission"))["stopReason"] == "end_turn"
            assert any(call["status"] == "completed" for call in client.calls.values())
            client.decide = "reject"
            assert client.call(*prompt(first, "/permission"))["stopReason"]
            assert any(call["status"] == "failed" for call in client.calls.values())
            second = client.call("session/new", cwd)["sessionId"]
            both = client.begin(prompt(first, "/many 5"), prompt(second, "/many 6"))
            assert [client.response(id)["result"]["stopReason"] for id in both] == ["end_turn"] * 2
            assert client.texts_of(second) == ["0 1 2 3 4 5 "]
            slow = client.begin(prompt(second, "/slow 1000"))[0]
            while len(client.texts_of(second)) < 2:
                client.next()
            client.begin(("session/cancel", {"sessionId": second}))
            assert client.response(slow)["result"]["stopReason"] == "cancelled"
            before = client.texts_of(first)
        with page_client(gateway, "oauth") as client:
            assert client.call("session/load", {"sessionId": first})["sessionId"] == first
            assert client.texts_of(first) == before
            assert client.call(*prompt(first, "/many 3"))["stopReason"] == "end_turn"


async def started(place: Stage) -> RawClient:
    client = RawClient(place.hub)
    place.clients.append(client)
    await client.request("initialize", ABOUT)
    return client


async def test_an_agent_that_knows_the_schema_alone_gets_its_words(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await started(place)
        session = (await client.request("session/new", {"cwd": str(tmp_path)}))["sessionId"]
        assert (await place.agent.got("session/new"))["params"]["mcpServers"] == []
        client.begin(*prompt(session, "hello"))
        assert (await place.agent.got("session/prompt"))["params"]["prompt"] == [{"type": "text", "text": "hello"}]
        await end(place)


@pytest.mark.slow  # it starts the demo, which answers a request in the words of the page in those words
async def test_modes_that_an_agent_sent_in_the_words_of_the_page_are_those_of_the_schema_for_other_clients(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, source=lambda: demo(tmp_path)) as place:
        client = await started(place)
        made = await client.request("session/new", {"cwd": str(tmp_path), "modeId": "default"})
        session, modes = made["sessionId"], made["modes"]
        await client.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
        loaded = await (await started(place)).request("session/load", {"sessionId": session})
        assert (loaded["modes"], loaded["currentModeId"]) == (modes, "plan")
        other = await place.client()
        loaded = await other.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert loaded["modes"] == {"availableModes": modes, "currentModeId": "plan"}


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"decision": "once"}, {"outcome": "selected", "optionId": "yes"}),
        ({"decision": "always"}, {"outcome": "selected", "optionId": "yes"}),
        ({"decision": "reject"}, {"outcome": "selected", "optionId": "no"}),
        ({"decision": "perhaps"}, {"outcome": "selected", "optionId": "no"}),
        ({"decision": "once", "cancelled": True}, {"outcome": "cancelled"}),
        ({"outcome": {"outcome": "selected", "optionId": "yes"}}, {"outcome": "selected", "optionId": "yes"}),
    ],
)
async def test_a_decision_selects_an_option_that_allows_no_more(tmp_path: Path, answer: Json, outcome: Json) -> None:
    async with stage(tmp_path) as place:
        client = await started(place)
        session = (await client.request("session/new", {"cwd": str(tmp_path)}))["sessionId"]
        client.begin(*prompt(session, "hello"))
        await place.agent.got("session/prompt")
        options = [
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_always"},
        ]
        call = {"toolCallId": "c", "title": "Do it", "kind": "execute"}
        params = {"sessionId": session, "toolCall": call, "options": options}
        place.agent.request("p", "session/request_permission", params)
        asked = await client.asked()
        assert {key: asked["params"][key] for key in ("title", "kind", "toolCallId")} == {
            "title": "Do it", "kind": "execute", "toolCallId": "c",
        }  # fmt: skip
        assert asked["params"]["toolCall"] == call and asked["params"]["options"] == options, "beside the schema's"
        client.answer(asked["id"], answer)
        await until(lambda: any(b'"outcome"' in line for line in place.agent.lines))
        found = next(msgspec.json.decode(line) for line in place.agent.lines if b'"outcome"' in line)
        assert found["id"] == "p" and found["result"]["outcome"] == outcome


async def test_only_words_of_the_agent_become_its_text_and_unknown_fields_stay(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await started(place)
        session = (await client.request("session/new", {"cwd": str(tmp_path)}))["sessionId"]

        def update(kind: str, **fields: Any) -> bytes:
            params = {"sessionId": session, "update": {"sessionUpdate": kind, **fields}, "z": 1}
            return msgspec.json.encode({"jsonrpc": "2.0", "method": "session/update", "params": params})

        text = {"type": "text", "text": "x"}
        frames = [
            update("agent_thought_chunk", content=text),
            update("agent_message_chunk", content=text, messageId="m", future=[1.0]),
            update("agent_message_chunk", content=text, messageId="m"),
            update("tool_call_update", toolCallId="c", content=[{"type": "diff", "path": "/a", "newText": "n"}]),
            update("current_mode_update", currentModeId="plan"),
        ]
        place.agent.send(*frames)
        await until(lambda: len([each for each in client.messages if each.get("method") == "session/update"]) == 5)
        got = [each["params"] for each in client.messages if each.get("method") == "session/update"]
        assert [params["z"] for params in got] == [1] * 5 and got[1]["update"]["future"] == [1.0]
        assert "contentChunk" not in got[0]
        assert [params["contentChunk"] for params in got[1:3]] == [
            {"id": "m", "index": 0, "delta": "x"}, {"id": "m", "index": 1, "delta": "x"},
        ]  # fmt: skip
        assert got[3]["toolCall"] == {"toolCallId": "c", "content": [], "diff": {"path": "/a", "newContent": "n"}}
        assert got[4]["currentModeId"] == "plan"


def test_the_end_of_a_turn_does_not_cut_the_message_of_another_session() -> None:
    dialect = OpenCodeDialect()

    def chunk(number: int) -> Json:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}
        params = {"sessionId": "b", "update": update}
        frame = msgspec.json.encode({"jsonrpc": "2.0", "method": "session/update", "params": params})
        sent: Json = msgspec.json.decode(dialect.sent(frame, "b", msgspec.UNSET, number))
        return sent["params"]["contentChunk"]  # type: ignore[no-any-return]

    first = chunk(1)
    request = msgspec.json.encode({"sessionId": "a", "content": []})
    line = b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":%b}' % request
    dialect.received(Request(7, "session/prompt", msgspec.Raw(request)), line)
    dialect.sent(b'{"jsonrpc":"2.0","id":7,"result":{"stopReason":"end_turn"}}', "a", 7, 2)
    assert chunk(3) == {"id": first["id"], "index": 1, "delta": "x"}


@pytest.mark.parametrize(
    "params",
    [{}, {"clientCapabilities": {"fs": {"readTextFile": True}}}, {"clientCapabilities": {"prompt": None}}, [], 1],
)
def test_a_client_of_the_schema_is_not_taken_for_one_of_the_page(params: object) -> None:
    assert not OpenCodeDialect.is_spoken(msgspec.json.encode(params))
