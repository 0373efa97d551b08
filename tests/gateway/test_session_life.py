"""The life of sessions in memory: who holds them, what their last events are, and that nothing of them stays behind."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from antiphon.gateway.base import GatewaySession
from antiphon.gateway.session import HubSession
from antiphon.journal.base import Lease
from antiphon.store.errors import StoreError
from tests.gateway.peers import QUICK, MemoryRows, RawClient, Stage, stage, stored_stage
from tests.gateway.test_attachments import numbers
from tests.gateway.test_reopening import where
from tests.gateway.test_requests import begun
from tests.gateway.test_turns import attach, end
from tests.waits import idle, until

MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}


def sessions(place: Stage) -> list[HubSession]:
    """The sessions that are in memory."""
    return [*place.hub.agents["demo"].sessions.values()]


def kinds(place: Stage, key: str = "key0") -> str:
    """The kinds of the events of a session."""
    return b"".join(event[:1] for event in place.journal.events[key]).decode()


async def closed(place: Stage, tmp_path: Path, client: RawClient) -> str:
    """A session with one turn that is stored and not in memory."""
    session = await begun(place, tmp_path, client)
    await end(place)
    await until(lambda: kinds(place).endswith("E"))
    await client.request("session/close", {"sessionId": session})
    assert not sessions(place)
    return session


class SlowRows(MemoryRows):
    """Rows whose jobs wait while `gate` is closed."""

    gate: asyncio.Event

    async def create(
        self,
        agent: str,
        session_id: str,
        cwd: str,
        directories: tuple[str, ...] = (),
        owner: str = "",
        *,
        hidden: bool = False,
    ) -> GatewaySession:
        await self.gate.wait()
        return await super().create(agent, session_id, cwd, directories, owner, hidden=hidden)

    async def find(self, agent: str, session_id: str) -> GatewaySession | None:
        await self.gate.wait()
        return await super().find(agent, session_id)


def slow(place: Stage) -> asyncio.Event:
    """Let the rows wait; the event lets them go on."""
    place.rows.__class__ = SlowRows
    gate = place.rows.gate = asyncio.Event()  # type: ignore[attr-defined]
    return gate


# Clients that have left.


async def test_a_client_that_leaves_while_its_session_is_stored_is_not_attached_to_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        stored = slow(place)
        client.begin("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        await until(lambda: sessions(place))
        await client.leave()
        stored.set()
        await until(lambda: place.rows.rows)
        await idle()
        assert not sessions(place)[0].in_use and place.hub.counts()["attachments"] == 0


async def test_a_client_that_is_being_closed_and_attaches_again_leaves_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        await client.new(tmp_path)
        [theirs] = place.hub._clients
        theirs.close_soon("the test says so")
        sessions(place)[0].attach(theirs, 0).start()
        assert client.serving is not None
        await client.serving
        assert place.hub.counts()["attachments"] == 0 and client.is_lost


@pytest.mark.parametrize("method", ["session/load", "session/resume", "_antiphon/session/attach"])
async def test_a_client_that_leaves_while_a_session_is_read_leaves_nothing_in_memory(
    tmp_path: Path, method: str
) -> None:
    async with stage(tmp_path) as place:
        session = await closed(place, tmp_path, await place.client())
        client = await place.client()
        read = slow(place)
        client.begin(method, where(session, tmp_path))
        await idle()
        await client.leave()
        read.set()
        await idle()
        assert not sessions(place)
        assert await place.journal.claim("key0") is not None, "its lease is released"


async def test_the_prompt_of_a_client_that_leaves_while_its_session_is_read_goes_on(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.answers["session/load"] = lambda params: {}
        session = await closed(place, tmp_path, await place.client())
        client = await place.client()
        read = slow(place)
        client.prompt(session, "more")
        await idle()
        await client.leave()
        read.set()
        await place.agent.got("session/prompt", 2)
        assert place.hub.counts()["attachments"] == 0
        await end(place, 2)
        await until(lambda: kinds(place) == "TPETPE")


async def test_a_session_that_was_read_while_its_agent_never_started_leaves_memory_with_its_client(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as place:
        session = await closed(place, tmp_path, await place.client())

    class Broken(type(place.agent)):  # type: ignore[misc]
        async def start(self) -> object:
            raise StoreError("it does not start")

    place.agent = Broken()
    async with stage(tmp_path, earlier=place) as again:
        client = await again.client()
        await client.request("session/load", where(session, tmp_path))
        assert client.texts == ["work"]
        await client.leave()
        assert not sessions(again)


# Sessions that are being opened or closed.


async def test_a_prompt_behind_a_detach_that_released_the_session_is_run(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.answers["session/load"] = lambda params: {}
        session = await closed(place, tmp_path, await place.client())
        client = await place.client()
        detached = client.begin("_antiphon/session/detach", {"sessionId": session})
        asked = client.prompt(session, "more")
        await client.response(detached)
        await end(place, 2)
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"


async def test_a_prompt_that_arrives_while_the_session_is_closed_runs_after_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.capabilities = {"loadSession": True, "sessionCapabilities": {"close": {}}}
        place.agent.answers["session/load"] = lambda params: {}
        one, two = await place.client(), await place.client()
        session = await begun(place, tmp_path, one)
        await end(place)
        await two.request("session/resume", where(session, tmp_path))
        one.begin("session/close", {"sessionId": session})
        there = (await place.agent.got("session/close"))["id"]
        asked, own = two.prompt(session, "more"), one.prompt(session, "mine")
        await idle()
        assert len(place.agent.received("session/prompt")) == 1
        place.agent.result(there, {})
        await end(place, 2)
        assert (await two.response(asked))["result"]["stopReason"] == "end_turn"
        assert "closed" in (await one.response(own))["error"]["message"]
        assert kinds(place) == "TPETPE" and not place.rows.rows["key0"].turn


async def test_a_session_that_cannot_be_found_for_an_error_of_ours_is_not_made_anew(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        session = await closed(place, tmp_path, await place.client())

        async def broken(agent: str, session_id: str) -> None:
            del place.rows.find  # only once
            raise ValueError("a mistake of ours")

        place.rows.find = broken  # type: ignore[method-assign]
        other = await place.client()
        error = await other.refused("session/load", where(session, tmp_path))
        assert error["code"] == -32603 and not place.agent.received("session/load")


async def test_a_load_that_the_agent_answers_after_the_session_was_closed_and_read_again_is_not_recorded(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as place:
        client, other = await place.client(), await place.client()
        session = await closed(place, tmp_path, client)
        await other.request("session/resume", where(session, tmp_path))
        other.prompt(session, "two")
        opened = await place.agent.got("session/load")
        await other.request("session/close", {"sessionId": session})
        await client.request("session/load", where(session, tmp_path))
        place.agent.say(session, "replayed")
        place.agent.result(opened["id"], {})
        asked = client.prompt(session, "three")
        await end(place, 2)
        await client.response(asked)
        assert kinds(place) == "TPETPE" and len(place.agent.received("session/load")) == 1
        assert client.texts == ["work"]


async def test_a_failed_fork_leaves_neither_a_session_nor_a_part_of_its_history(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.capabilities = {"loadSession": True, "sessionCapabilities": {"fork": {}}}
        place.agent.answers["session/fork"] = lambda params: {"sessionId": "forked"}
        client = await place.client()
        session = await begun(place, tmp_path, client)
        await end(place)
        await until(lambda: kinds(place).endswith("E"))
        append = place.journal.append

        async def broken(lease: Lease, events: object, at: float = 0.0) -> int:
            raise StoreError("the disk is full", hint="free some")

        place.journal.append = broken  # type: ignore[method-assign]
        assert "disk" in (await client.refused("session/fork", where(session, tmp_path)))["message"]
        place.journal.append = append  # type: ignore[method-assign]
        await until(lambda: [*place.rows.rows] == ["key0"])
        assert [each.id for each in sessions(place)] == [session]


async def test_settings_that_change_while_the_session_is_stored_are_kept(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        claim, stored = place.journal.claim, asyncio.Event()

        async def slow_claim(session: str, previous: int | None = None, *, by: str = "") -> Lease:
            await stored.wait()
            return await claim(session, previous, by=by)

        place.journal.claim = slow_claim  # type: ignore[method-assign]
        asked = client.begin("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        await until(lambda: place.rows.rows)
        update = {"sessionUpdate": "session_info_update", "title": "named"}
        place.agent.notify("session/update", {"sessionId": "s1", "update": update})
        await until(lambda: sessions(place)[0].row.title == "named")
        stored.set()
        await client.response(asked)
        assert place.rows.rows["key0"].title == "named"


async def test_a_session_that_leaves_memory_is_opened_again_when_its_last_events_are_stored(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        place.journal.gate.clear()
        place.agent.say(session, "last")
        await until(lambda: sessions(place)[0].recorded == 3)
        place.hub.forget(sessions(place)[0])
        other = await place.client()
        asked = other.begin("session/load", where(session, tmp_path))
        await idle()
        place.journal.gate.set()
        assert "result" in await other.response(asked)
        assert other.texts == ["work", "last"]


async def test_a_load_beside_a_new_session_under_the_same_id_waits_for_the_new_one(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client, other = await place.client(), await place.client()
        session = await closed(place, tmp_path, client)
        gate = slow(place)
        loaded = other.begin("session/load", where(session, tmp_path))
        await idle()
        place.agent.sessions = 0
        opened = client.begin("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        await until(lambda: sessions(place))
        gate.set()
        assert (await client.response(opened))["result"]["sessionId"] == session
        assert "result" in await other.response(loaded)
        assert other.texts == [] and [each.key for each in sessions(place)] == ["key1"]


# Responses.


async def test_a_client_that_detached_gets_the_response_to_its_prompt(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client(numbers=True)
        session = await client.new(tmp_path)
        asked = client.prompt(session, "work")
        await place.agent.got("session/prompt")
        await client.request("_antiphon/session/detach", {"sessionId": session})
        place.agent.say(session, "unseen")
        await end(place)
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        await attach(client, session, 2)
        await until(lambda: numbers(client) == [1, 2, 3, 4])
        assert client.texts == ["work", "unseen"]
        assert len([each for each in client.messages if each.get("id") == asked and "result" in each]) == 1


async def test_a_slow_client_that_goes_on_behind_the_end_of_its_turn_gets_the_response(tmp_path: Path) -> None:
    async with stage(tmp_path, msgspec.structs.replace(QUICK, unsent=100)) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        asked = client.prompt(session, "work")
        await place.agent.got("session/prompt")
        client.transport.pause()
        place.agent.say(session, *("x" * 100_000 for _ in range(20)))
        await until(lambda: kinds(place).count("{") == 20)
        place.agent.say(session, "missed")
        await end(place)
        await until(lambda: kinds(place).endswith("E"))
        await idle()
        resumed = client.begin("session/resume", where(session, tmp_path))
        await idle()
        client.transport.resume()
        await client.response(resumed)
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        assert "missed" not in client.texts


async def test_nothing_waits_for_a_prompt_that_could_not_be_stored(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.answers["session/set_mode"] = lambda params: {}
        client = await place.client()
        session = await client.new(tmp_path)
        here = sessions(place)[0]
        place.journal.gate.clear()
        asked = client.prompt(session, "work")
        await until(lambda: here.recorded == 2)
        chosen = client.begin("session/set_mode", {"sessionId": session, "modeId": "code"})
        settled = asyncio.create_task(here.settled())
        await idle()
        place.journal.broken = StoreError("the disk is full", hint="free some")
        place.journal.gate.set()
        assert "disk" in (await client.response(asked))["error"]["message"]
        assert (await client.response(chosen))["result"] == {}
        await settled


async def test_a_load_that_ends_with_the_gateway_keeps_no_other_from_the_session(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        session = await closed(place, tmp_path, await place.client())
        process = place.hub.agents["demo"]
        process.with_session(session, lambda _: None)
        for task in (*place.hub.tasks,):
            task.cancel()  # before it has begun
        async with process.alone(session):
            assert not sessions(place)


# The last events.


@pytest.mark.parametrize("turn", [True, False])
async def test_a_request_that_waits_is_resolved_in_the_journal_before_its_session_is_closed(
    tmp_path: Path, turn: bool
) -> None:
    async with stage(tmp_path) as place:
        client, other = await place.client(numbers=True), await place.client(numbers=True)
        session = await client.new(tmp_path)
        if turn:
            client.prompt(session, "work")
            await place.agent.got("session/prompt")
        place.agent.ask(7, session)
        await client.asked()
        await attach(other, session, 0)
        await client.request("session/close", {"sessionId": session})
        expected = "TPREA" if turn else "RA"
        assert kinds(place) == expected
        assert numbers(other) == [*range(1, len(expected) + 1)]
        outcome = next(each["result"] for each in map(msgspec.json.decode, place.agent.lines) if each.get("id") == 7)
        assert outcome == {"outcome": {"outcome": "cancelled"}}


async def test_what_was_recorded_while_the_last_events_were_stored_is_stored_before_the_lease_is_released(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        place.journal.gate.clear()
        place.agent.say(session, "one")
        here = sessions(place)[0]
        await until(lambda: here.recorded == 3)
        place.agent.say(session, "two")
        await until(lambda: here.recorded == 4)
        place.hub.forget(here)
        await idle()
        assert not here.released.is_set()
        place.journal.gate.set()
        await here.released.wait()
        assert kinds(place) == "TP{{"
        assert await place.journal.claim("key0") is not None


async def test_a_turn_whose_session_left_memory_is_interrupted_when_the_session_is_read_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client, other = await place.client(), await place.client(numbers=True)
        session = await begun(place, tmp_path, client)
        place.hub.forget(sessions(place)[0])
        await attach(other, session, 0)
        await until(lambda: numbers(other) == [1, 2, 3])
        assert kinds(place) == "TPE" and not place.rows.rows["key0"].turn


async def test_a_session_whose_id_is_given_to_another_one_ends_in_order(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        asked = client.prompt(session, "work")
        await place.agent.got("session/prompt")
        place.agent.sessions = 0
        assert await client.new(tmp_path) == session
        assert "interrupted" in (await client.response(asked))["error"]["message"]
        await until(lambda: kinds(place) == "TPE" and not place.rows.rows["key0"].turn)
        assert place.rows.rows["key0"].archived


async def test_one_session_that_cannot_be_changed_keeps_no_gateway_from_its_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        place.hub.forget(sessions(place)[0])
        await until(lambda: place.rows.rows["key0"].turn)
    place.journal.broken = StoreError("the disk is full", hint="free some")
    async with stage(tmp_path, earlier=place) as again:
        assert "not recorded as interrupted" in caplog.text
        again.journal.broken = None
        client = await again.client(numbers=True)
        await attach(client, session, 0)
        await until(lambda: numbers(client) == [1, 2, 3])


# Settings.


@pytest.mark.parametrize(
    ("method", "params", "shown"),
    [
        ("session/set_mode", {"modeId": "code"}, ("modes", "currentModeId", "code")),
        ("session/set_model", {"modelId": "large"}, ("models", "currentModelId", "large")),
        ("session/set_config_option", {"configId": "c", "value": "v"}, ("configOptions", 0, {"id": "c"})),
    ],
)
async def test_a_setting_is_stored_with_the_response_to_its_request(
    tmp_path: Path, method: str, params: dict[str, object], shown: tuple[str, object, object]
) -> None:
    async with stored_stage(tmp_path) as place:
        opened = {"sessionId": "s1", "modes": MODES, "models": {"currentModelId": "small", "availableModels": []}}
        place.agent.answers[method] = lambda params: {"configOptions": [{"id": "c"}]} if "configId" in params else {}
        client = await place.client()
        place.agent.answers["session/new"] = lambda params: opened
        await client.new(tmp_path)
        await client.request(method, {"sessionId": "s1", **params})
        row = await place.data.find("demo", "s1")
        assert row is not None
        part, name, value = shown
        state = msgspec.json.decode(row.state)[part]
        assert state[name] == value


# Sessions that nothing uses.


async def test_a_session_that_nothing_uses_is_closed_after_a_time(tmp_path: Path) -> None:
    async with stage(tmp_path, msgspec.structs.replace(QUICK, session_idle=0.02)) as place:
        place.agent.capabilities = {"loadSession": True, "sessionCapabilities": {"close": {}}}
        place.agent.answers |= {"session/load": lambda params: {}, "session/close": lambda params: {}}
        client = await place.client()
        unused, used, empty = [await client.new(tmp_path) for _ in range(3)]
        for count, session in enumerate((unused, used), 1):
            asked = client.prompt(session, "work")
            await end(place, count)
            await client.response(asked)
        for session in (unused, empty):
            await client.request("_antiphon/session/detach", {"sessionId": session})
        await until(lambda: {each.id for each in sessions(place)} == {used})
        await place.agent.got("session/close", 2)
        closed = [each["params"]["sessionId"] for each in place.agent.received("session/close")]
        assert sorted(closed) == [unused, empty]
        await client.request("session/load", where(unused, tmp_path))
        assert client.texts == ["work"]


async def test_a_session_that_the_agent_cannot_close_stays_open(tmp_path: Path) -> None:
    async with stage(tmp_path, msgspec.structs.replace(QUICK, session_idle=1.0)) as place:
        client = await place.client()
        await begun(place, tmp_path, client)
        await end(place)
        await until(lambda: kinds(place).endswith("E"))
        await client.leave()
        place.hub.agents["demo"].close_unused(0)
        assert len(sessions(place)) == 1
