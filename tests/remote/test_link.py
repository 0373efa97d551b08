"""A client behind a link to the gateway loses nothing and sees nothing twice, wherever the connection is cut."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from antiphon.connection.bridge import Bridge
from antiphon.errors import ConnectionClosed
from antiphon.protocol.v1.version import V1
from antiphon.remote import link as link_module
from antiphon.remote.link import RemoteLink
from antiphon.remote.paths import PathMap
from antiphon.transports.base import Transport
from antiphon.transports.memory import memory_pair
from antiphon.transports.remote import ConnectionRefused, RemoteAddress
from tests.gateway.peers import DRIVER, RawClient, ScriptedAgent, Stage, stage
from tests.gateway.test_turns import BOB, end
from tests.limits import limit
from tests.waits import until


class Server(RemoteAddress):
    """A way to a hub that can be cut, closed and opened."""

    def __init__(self, place: Stage) -> None:
        super().__init__("ws://host/acp")
        self.place = place
        self.opened: list[Transport] = []
        self.is_up = asyncio.Event()
        self.is_up.set()
        self.refuses: ConnectionClosed | None = None
        self.agent: ScriptedAgent | None = None
        """An agent that is reached without a gateway."""
        self.other: Transport | None = None
        """What the next connection reaches in place of the gateway."""
        self.sent = bytearray()
        """All that was sent to the gateway."""
        self._serving: list[asyncio.Task[None]] = []

    async def open(self) -> Transport:
        if self.refuses is not None:
            raise self.refuses
        await self.is_up.wait()
        if self.agent is not None:
            return await self.agent.start()
        if self.other is not None:
            other, self.other = self.other, None
            return other
        ours, theirs = memory_pair()
        self._serving.append(asyncio.ensure_future(self.place.hub.serve(theirs, DRIVER, "demo")))
        self.opened.append(ours)
        flush = ours.flush

        def record() -> None:
            self.sent += ours.out
            flush()

        ours.flush = record  # type: ignore[method-assign]
        return ours

    async def cut(self, *, stay: bool = False) -> None:
        """Cut the connection that there is; with `stay`, no other is opened until `is_up` is set."""
        if stay:
            self.is_up.clear()
        transport, serving = self.opened[-1], self._serving[-1]
        await transport.close()
        await asyncio.wait([serving])


class Linked:
    """A client, a link and what is behind it."""

    def __init__(self, place: Stage, server: Server, client: RawClient, link: RemoteLink, reports: list[str]) -> None:
        self.place, self.server, self.client, self.link = place, server, client, link
        self.reports = reports
        """What people were shown."""

    @property
    def hub_session(self) -> Any:
        return self.place.hub.agents["demo"].sessions[b"s1"]


@asynccontextmanager
async def linked(
    directory: Path, maps: tuple[tuple[str, str], ...] = (), wait_timeout: float = 30, *, offers_files: bool = False
) -> AsyncIterator[Linked]:
    async with stage(directory) as place:
        server = Server(place)
        ours, theirs = memory_pair()
        reports: list[str] = []
        link = RemoteLink(
            server,
            PathMap(maps),
            report=reports.append,
            delays=(0,),
            wait_timeout=wait_timeout,
            offers_files=offers_files,
        )
        bridge = asyncio.ensure_future(Bridge(theirs, link, version=V1, keep_requests=True).run())
        client = RawClient(None, transport=ours)
        try:
            yield Linked(place, server, client, link, reports)
        finally:
            server.is_up.set()
            await ours.close()
            async with asyncio.timeout(limit()):
                await bridge


async def opened(here: Linked, cwd: Path) -> str:
    await here.client.initialize()
    return await here.client.new(cwd)


OFFER: dict[str, Any] = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}


async def test_the_files_of_the_editor_are_those_of_the_session_where_they_are_offered(tmp_path: Path) -> None:
    async with linked(tmp_path, offers_files=True) as here:
        here.place.hub.client_files = True
        await here.client.initialize(**OFFER)
        session = await here.client.new(tmp_path)
        here.place.agent.request(7, "fs/read_text_file", {"sessionId": session, "path": "/a"})
        here.client.answer((await here.client.asked("fs/read_text_file"))["id"], {"content": "of the editor"})
        await until(lambda: b"of the editor" in b"".join(here.place.agent.lines))


async def test_the_files_and_terminals_of_the_editor_are_not_offered_to_a_gateway(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("of the gateway", encoding="utf-8")
    async with linked(tmp_path) as here:
        here.place.hub.client_files = True
        await here.client.initialize(**OFFER)
        session = await here.client.new(tmp_path)
        here.place.agent.request(7, "fs/read_text_file", {"sessionId": session, "path": str(tmp_path / "a")})
        await until(lambda: b"of the gateway" in b"".join(here.place.agent.lines))
        assert not here.client.requests("fs/read_text_file")


async def test_an_agent_that_asks_for_files_and_terminals_all_the_same_is_refused(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        here.server.agent = agent = ScriptedAgent()
        await here.client.initialize(**OFFER)
        offered = (await agent.got("initialize"))["params"]["clientCapabilities"]
        assert offered == {"fs": {}, "terminal": False}
        session = await here.client.new(tmp_path)
        methods = ("fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/output", "terminal/kill")
        for number, method in enumerate(methods):
            agent.request(f"r{number}", method, {"sessionId": session, "path": "/a", "command": "id"})
        await until(lambda: sum(b'"error"' in line for line in agent.lines) == len(methods))
        assert all(b"--offer-files" in line for line in agent.lines if b'"error"' in line)
        assert not any(here.client.requests(method) for method in methods)


@pytest.mark.parametrize("cut", range(8))
async def test_a_turn_is_seen_once_and_whole_wherever_the_connection_is_cut(tmp_path: Path, cut: int) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        asked = here.client.prompt(session, "work")
        agent = here.place.agent
        id = (await agent.got("session/prompt"))["id"]
        for step in range(7):
            if step == cut:
                await here.server.cut()
            if step == 3:
                agent.ask(9, session)
                here.client.choose(await here.client.asked())
                await until(lambda: b'"id":9,"result"' in b"".join(agent.lines))
            else:
                agent.say(session, f"{step}")
        if cut == 7:
            await here.server.cut(stay=True)
        agent.result(id, {"stopReason": "end_turn"})
        await until(lambda: here.hub_session.row.turn == "")
        here.server.is_up.set()
        assert (await here.client.response(asked))["result"]["stopReason"] == "end_turn"
        assert here.client.texts == ["0", "1", "2", "4", "5", "6"]
        assert len(here.client.requests()) == 1
        assert len(agent.received("session/prompt")) == 1
        assert not any(each.get("method", "").startswith("_antiphon/") for each in here.client.messages)


async def test_a_prompt_that_the_gateway_never_got_is_sent_when_it_is_back(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        await here.server.cut(stay=True)
        asked = here.client.prompt(session, "work")
        here.server.is_up.set()
        await end(here.place)
        assert (await here.client.response(asked))["result"]["stopReason"] == "end_turn"
        assert here.client.texts == []


async def test_a_prompt_that_was_lost_on_its_way_is_sent_again_once(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        transport = here.server.opened[-1]
        transport.flush = lambda: None  # type: ignore[method-assign]
        asked = here.client.prompt(session, "work")
        await until(lambda: b"session/prompt" in transport.out)
        transport.out.clear()
        await here.server.cut()
        await end(here.place)
        assert (await here.client.response(asked))["result"]["stopReason"] == "end_turn"
        assert len(here.place.agent.received("session/prompt")) == 1


@pytest.mark.parametrize(("given", "is_kept"), [("mine", True), ("x" * 65, False)])
async def test_a_prompt_keeps_the_name_that_its_client_gave_it(tmp_path: Path, given: str, is_kept: bool) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        params = {"sessionId": session, "prompt": [], "_meta": {"antiphon": {"prompt": given}}}
        asked = here.client.begin("session/prompt", params)
        await here.place.agent.got("session/prompt")
        assert (here.hub_session.turns.names == [given]) is is_kept
        await here.server.cut()
        await end(here.place)
        assert (await here.client.response(asked))["result"]["stopReason"] == "end_turn"
        assert len(here.place.agent.received("session/prompt")) == 1


async def test_prompts_that_wait_at_the_gateway_are_not_sent_again(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        asked = [here.client.prompt(session, text) for text in ("one", "two")]
        await until(lambda: here.hub_session.turns.queued == 1)
        await here.place.agent.got("session/prompt")
        await here.server.cut()
        await end(here.place)
        await end(here.place, 2)
        for id in asked:
            assert (await here.client.response(id))["result"]["stopReason"] == "end_turn"
        assert len(here.place.agent.received("session/prompt")) == 2 and here.client.texts == []


async def test_an_answer_that_was_given_without_a_connection_reaches_the_agent(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        here.client.prompt(session, "work")
        await here.place.agent.got("session/prompt")
        here.place.agent.ask(9, session)
        request = await here.client.asked()
        await here.server.cut(stay=True)
        here.client.choose(request)
        here.server.is_up.set()
        await until(lambda: b'"id":9,"result"' in b"".join(here.place.agent.lines))
        assert len(here.client.requests()) == 1


async def test_a_request_that_another_client_answered_meanwhile_is_cancelled(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        here.client.prompt(session, "work")
        await here.place.agent.got("session/prompt")
        here.place.agent.ask(9, session)
        request = await here.client.asked()
        await here.server.cut(stay=True)
        bob = await here.place.client(BOB)
        await bob.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        bob.choose(await bob.asked())
        await until(lambda: b'"id":9,"result"' in b"".join(here.place.agent.lines))
        here.server.is_up.set()
        await until(lambda: any(each.get("method") == "$/cancel_request" for each in here.client.messages))
        assert here.client.messages[-1]["params"] == {"requestId": request["id"]}
        assert "answered by bob: allow_once" in here.reports


async def test_people_are_shown_who_answered_in_place_of_them_and_what(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        bob = await here.place.client(BOB)
        await bob.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        here.client.prompt(session, "work")
        await here.place.agent.got("session/prompt")
        here.place.agent.ask(8, session)
        here.client.choose(await here.client.asked())
        await until(lambda: b'"id":8,"result"' in b"".join(here.place.agent.lines))
        here.place.agent.ask(9, session)
        await until(lambda: len(here.client.requests()) == 2 and len(bob.requests()) == 2)
        bob.choose(bob.requests()[-1], "reject_once")
        await until(lambda: here.reports)
        assert here.reports == ["answered by bob: reject_once"]


async def test_what_other_clients_send_is_shown_and_what_it_missed_too(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        bob = await here.place.client(BOB)
        await bob.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        await here.server.cut(stay=True)
        bob.prompt(session, "hello")
        await end(here.place)
        here.server.is_up.set()
        await until(lambda: here.client.texts == ["hello"])


async def test_a_load_shows_all_of_a_session_that_is_followed_already(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        asked = here.client.prompt(session, "work")
        await here.place.agent.got("session/prompt")
        here.place.agent.say(session, "1", "2")
        await end(here.place)
        await here.client.response(asked)
        await here.client.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert here.client.texts == ["1", "2", "work", "1", "2"]
        await here.server.cut()
        here.place.agent.say(session, "3")
        await until(lambda: here.client.texts[5:] == ["3"])


async def test_requests_without_a_connection_wait_and_then_get_an_error(tmp_path: Path) -> None:
    async with linked(tmp_path, wait_timeout=0.05) as here:
        session = await opened(here, tmp_path)
        await here.server.cut(stay=True)
        error = await here.client.refused("session/list", {})
        assert error["data"]["recoverable"] is True and error["data"]["action"] == "reconnect" and error["data"]["hint"]
        here.server.is_up.set()
        await until(lambda: len(here.server.opened) == 2)
        here.place.agent.say(session, "on")
        await until(lambda: here.client.texts == ["on"])


async def test_a_prompt_gets_an_error_when_the_server_stays_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "AWAY_TIMEOUT", 0.05)
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        asked = here.client.prompt(session, "work")
        await here.place.agent.got("session/prompt")
        await here.server.cut(stay=True)
        error = (await here.client.response(asked))["error"]
        assert "the turn goes on there" in error["message"] and error["data"]["recoverable"] is True
        here.server.is_up.set()
        await end(here.place)
        await here.client.request("session/list", {})
        assert len(here.place.agent.received("session/prompt")) == 1


async def test_a_server_that_lets_the_client_in_no_more_ends_the_link(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        asked = here.client.prompt(session, "work")
        await here.place.agent.got("session/prompt")
        here.server.refuses = ConnectionRefused("no", status=401, hint="check the token")
        await here.server.cut()
        error = (await here.client.response(asked))["error"]
        assert error["message"] == "no" and error["data"] == {"hint": "check the token", "recoverable": False}
        await until(lambda: here.client.is_lost)


async def test_an_agent_without_a_gateway_is_initialized_again_and_its_sessions_are_loaded(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        agent = ScriptedAgent()

        def load(params: dict[str, Any]) -> object:
            agent.say(params["sessionId"], "replayed")
            return {}

        agent.answers["session/load"] = load
        here.server.agent = agent
        session = await opened(here, tmp_path)
        asked = here.client.prompt(session, "work")
        await agent.got("session/prompt")
        agent.say(session, "one")
        await until(lambda: here.client.texts == ["one"])
        await agent.crash()
        error = (await here.client.response(asked))["error"]
        assert error["data"]["recoverable"] is True
        loaded = await agent.got("session/load")
        assert loaded["params"] == {"cwd": str(tmp_path), "mcpServers": [], "sessionId": session}
        agent.say(session, "two")
        await until(lambda: here.client.texts == ["one", "two"])
        assert len(agent.received("initialize")) == 2 and len(agent.received("session/prompt")) == 1


async def test_a_link_with_a_first_connection_ends_with_it_where_there_is_no_gateway(tmp_path: Path) -> None:
    agent = ScriptedAgent()
    link = RemoteLink(RemoteAddress("ws://host/acp"), PathMap(), first=await agent.start())
    client = RawClient(None, transport=link)
    link.route(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}', None, UNSET)
    await client.response(1)
    await agent.crash()
    await until(lambda: client.is_lost)
    await link.close()


async def test_a_deleted_session_is_forgotten_and_the_others_go_on(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        first = await opened(here, tmp_path)
        second = await here.client.new(tmp_path)
        await here.server.cut(stay=True)
        await here.place.hub.delete(here.hub_session)
        here.server.is_up.set()
        here.place.agent.say(second, "x")
        await until(lambda: here.client.texts == ["x"])
        assert (
            "no session"
            in (await here.client.refused("session/set_mode", {"sessionId": first, "modeId": "m"}))["message"]
        )


async def test_paths_are_mapped_both_ways_and_a_directory_elsewhere_is_refused(tmp_path: Path) -> None:
    async with linked(tmp_path, (("/home/me/p", str(tmp_path)),)) as here:
        await here.client.initialize()
        session = (await here.client.request("session/new", {"cwd": "/home/me/p", "mcpServers": []}))["sessionId"]
        assert (await here.place.agent.got("session/new"))["params"]["cwd"] == str(tmp_path)
        update = {
            "sessionUpdate": "tool_call",
            "toolCallId": "1",
            "title": "x",
            "locations": [{"path": f"{tmp_path}/a"}],
        }
        here.place.agent.send(
            msgspec.json.encode(
                {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session, "update": update}}
            )
        )
        await until(lambda: here.client.messages[-1].get("method") == "session/update")
        assert here.client.messages[-1]["params"]["update"]["locations"] == [{"path": "/home/me/p/a"}]
        listed = await here.client.request("session/list", {})
        assert [each["cwd"] for each in listed["sessions"]] == ["/home/me/p"]
        error = await here.client.refused("session/new", {"cwd": "/home/me/q", "mcpServers": []})
        assert f"`{tmp_path}`" in error["message"] and f"--map /home/me/q={tmp_path}" in error["data"]["hint"]


async def test_without_a_map_a_directory_outside_of_the_roots_is_refused_with_the_roots(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        await here.client.initialize()
        error = await here.client.refused("session/new", {"cwd": "/home/me/q", "mcpServers": []})
        assert f"it has `{tmp_path}`" in error["message"] and f"--map /home/me/q={tmp_path}" in error["data"]["hint"]


async def test_a_client_gets_the_updates_that_it_asked_for_and_no_others(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        plain, asking = await here.place.client(BOB), await here.place.client(BOB, session={"notices": {}})
        for client in (plain, asking):
            await client.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        notice = {"sessionUpdate": "notice", "title": "Low disk", "severity": "warning"}
        here.place.agent.notify("session/update", {"sessionId": session, "update": notice})
        here.place.agent.say(session, 'a notice: "notice"')
        for client in (here.client, plain, asking):
            await until(lambda client=client: client.texts)  # type: ignore[misc]
        counts = [b"".join(each.frames).count(b"Low disk") for each in (here.client, plain, asking)]
        assert counts == [0, 0, 1]
        late = await here.place.client(BOB)
        await late.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert b"Low disk" not in b"".join(late.frames) and late.texts == ['a notice: "notice"']


async def test_an_update_that_cannot_be_read_keeps_no_client_from_coming_back(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        here.place.agent.say(session, "1")
        await until(lambda: here.client.texts == ["1"])
        await here.server.cut(stay=True)
        here.place.agent.send(b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{')
        await until(lambda: here.hub_session.last == 2)
        here.server.is_up.set()
        here.client.prompt(session, "go on")
        await here.place.agent.got("session/prompt")


@pytest.mark.parametrize("place", ["number", "_meta"])
async def test_the_numbers_of_an_agent_are_not_those_of_events(tmp_path: Path, place: str) -> None:
    async with linked(tmp_path) as here:
        session = await opened(here, tmp_path)
        number = {"number": 1_000_000}
        here.place.agent.request(
            7, "_x/y", {"sessionId": session, **(number if place == "number" else {"_meta": {"antiphon": number}})}
        )
        await here.client.asked("_x/y")
        here.place.agent.say(session, "1")
        await until(lambda: here.client.texts == ["1"])


async def test_a_server_that_is_busy_is_left_alone_for_the_time_that_it_names(tmp_path: Path) -> None:
    async with linked(tmp_path) as here:
        await opened(here, tmp_path)
        here.server.refuses = ConnectionRefused("busy", status=503)
        here.server.refuses.retry_after = 40
        await here.server.cut()
        await until(lambda: any("trying again in 4" in report for report in here.reports))
