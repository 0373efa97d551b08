"""Sessions that move between the hubs of workers: adopted, lost, handed over, continued by an agent that does not know them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from antiphon.gateway.base import GatewaySession
from antiphon.gateway.hub import Hub
from antiphon.gateway.moves import adoption, context
from antiphon.gateway.moves.context import with_context
from antiphon.gateway.settings import HubSettings
from antiphon.journal.owner import NoOwner, SessionHome
from tests.gateway.peers import QUICK, HubClients, MemoryJournal, MemoryRows, RawClient, ScriptedAgent
from tests.gateway.test_attachments import numbers
from tests.gateway.test_turns import attach, end
from tests.limits import limit
from tests.waits import idle, until

WHY = "worker `one` does not answer any more"


class Place:
    """The place of a hub, whose directories are those of its machine, below a directory that all machines have elsewhere."""

    def __init__(self, worker: str, host: str, shared: Path | None) -> None:
        self.worker = worker
        self.host = host
        self.shared = shared

    def home_of(self, directories: Sequence[str]) -> SessionHome:
        return SessionHome(self.worker, self.host, {} if self.shared is None else {"all": str(self.shared)})

    def localized(self, row: GatewaySession) -> GatewaySession:
        home = HubSettings(row.state).home
        if home.host in ("", self.host):
            return row
        if self.shared is None or "all" not in home.workspaces:
            raise NoOwner("it is not here", hint="look elsewhere")
        return msgspec.structs.replace(row, cwd=row.cwd.replace(home.workspaces["all"], str(self.shared)))


class Fleet:
    """Hubs of several workers over the same stores."""

    def __init__(self) -> None:
        self.journal = MemoryJournal()
        self.rows = MemoryRows(self.journal)

    @asynccontextmanager
    async def worker(
        self, name: str, directory: Path, host: str = "here", shared: Path | None = None
    ) -> AsyncIterator[HubClients]:
        agent = ScriptedAgent()
        place = Place(name, host, shared)
        hub = Hub({"demo": agent.start}, self.rows, self.journal, roots=[str(directory)], limits=QUICK, place=place)
        async with asyncio.timeout(limit()), hub:
            found = HubClients(hub, agent)
            try:
                yield found
            finally:
                await found.leave()

    def epoch(self, key: str = "key0") -> int:
        return self.journal.leases[key].epoch

    @property
    def row(self) -> GatewaySession:
        return self.rows.rows["key0"]


def events(client: RawClient, name: str) -> list[dict[str, Any]]:
    return [each["params"] for each in client.messages if each.get("method") == f"_antiphon/session/{name}"]


def notices(client: RawClient) -> list[dict[str, Any]]:
    updates = [each["params"]["update"] for each in client.messages if each.get("method") == "session/update"]
    return [each for each in updates if each["sessionUpdate"] == "notice"]


async def running(worker: HubClients, directory: Path) -> tuple[RawClient, str, int]:
    """Let a turn run that has got as far as a permission request."""
    client = await worker.client(numbers=True)
    session = await client.new(directory)
    asked = client.prompt(session, "work")
    await worker.agent.got("session/prompt")
    worker.agent.say(session, "half")
    worker.agent.ask(1, session)
    await client.asked()
    return client, session, asked


def adopted(fleet: Fleet, worker: HubClients) -> Any:
    """Have a worker adopt the session, as it does when the other one is taken for dead."""
    assert worker.hub.moves is not None
    return worker.hub.moves.adopt(fleet.row, fleet.epoch(), WHY)


# Adoption.


async def test_a_session_whose_worker_is_gone_goes_on_at_another_one(tmp_path: Path) -> None:
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one, fleet.worker("two", tmp_path) as two:
        client, session, _ = await running(one, tmp_path)
        seen = numbers(client)
        assert await adopted(fleet, two)
        again = await two.client(numbers=True)
        state = await attach(again, session, seen[-1])
        assert state["turn"] is None and state["requests"] == [] and not again.requests()
        await until(lambda: events(again, "turn_ended"))
        [moved] = events(again, "moved")
        assert (moved["from"], moved["to"], moved["interrupted"]) == ("one", "two", True)
        [shown] = notices(again)
        assert shown["title"] == "This session moved to worker `two`" and "interrupted" in shown["description"]
        assert shown["description"].startswith("Worker `one` does not answer any more.") and shown["severity"] == "info"
        [ended] = events(again, "turn_ended")
        assert ended["interrupted"] is True and "does not answer" in ended["error"]["message"]
        assert len(events(again, "resolved")) == 1
        assert seen + numbers(again) == list(range(1, len(fleet.journal.events["key0"]) + 1)), "no gap, nothing twice"
        two.agent.answers["session/load"] = lambda params: {}
        more = again.prompt(session, "more")
        await end(two)
        assert (await again.response(more))["result"]["stopReason"] == "end_turn"
        [prompt] = two.agent.received("session/prompt")
        assert prompt["params"]["prompt"] == [{"type": "text", "text": "more"}], "the agent knows the session"


async def test_the_worker_that_was_only_cut_off_stores_nothing_more_and_ends_its_turn(tmp_path: Path) -> None:
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one, fleet.worker("two", tmp_path) as two:
        client, session, _ = await running(one, tmp_path)
        await adopted(fleet, two)
        stored = len(fleet.journal.events["key0"])
        one.agent.say(session, "of a zombie")
        await one.agent.got("session/cancel")
        one.agent.result((await one.agent.got("session/prompt"))["id"], {"stopReason": "cancelled"})
        await until(lambda: client.is_lost)
        assert len(fleet.journal.events["key0"]) == stored and "of a zombie" not in client.texts
        assert not [each for each in client.messages if each.get("id") == 3], "no response: the other worker has it"
        assert one.hub.agents["demo"].session_of(session) is None
        await idle()
        assert one.agent.starts == 1, "an agent that confirms goes on with its other sessions"


async def test_an_agent_that_does_not_end_a_turn_of_a_lost_session_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adoption, "END_LIMIT", 0.05)
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one, fleet.worker("two", tmp_path) as two:
        _, session, _ = await running(one, tmp_path)
        other = await one.client()
        second = await other.new(tmp_path)
        asked = other.prompt(second, "of another session")
        await one.agent.got("session/prompt", 2)
        await adopted(fleet, two)
        assert one.hub.moves is not None
        one.hub.moves.lost("key0")
        error = (await other.response(asked))["error"]
        assert "another worker has one of its sessions" in error["message"]
        assert one.hub.agents["demo"].session_of(session) is None


async def test_a_session_that_is_lost_is_closed_at_an_agent_that_can(tmp_path: Path) -> None:
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one, fleet.worker("two", tmp_path) as two:
        one.agent.capabilities = {"loadSession": True, "sessionCapabilities": {"close": {}}}
        client = await one.client()
        session = await client.new(tmp_path)
        await adopted(fleet, two)
        assert one.hub.moves is not None
        one.hub.moves.lost("key0")
        one.hub.moves.lost("no such key")
        assert (await one.agent.got("session/close"))["params"] == {"sessionId": session}
        one.agent.result((await one.agent.got("session/close"))["id"], {})
        await until(lambda: client.is_lost)
        assert one.agent.starts == 1


async def test_of_two_workers_that_adopt_a_session_one_gets_it(tmp_path: Path) -> None:
    fleet = Fleet()
    async with (
        fleet.worker("one", tmp_path) as one,
        fleet.worker("two", tmp_path) as two,
        fleet.worker("three", tmp_path) as three,
    ):
        _, session, _ = await running(one, tmp_path)
        assert sorted(await asyncio.gather(adopted(fleet, two), adopted(fleet, three))) == [False, True]
        assert sum(event.startswith(b"M") for event in fleet.journal.events["key0"]) == 1
        loser = three if two.hub.agents["demo"].session_of(session) is not None else two
        late = await loser.client(numbers=True)
        refused = await late.refused("_antiphon/session/attach", {"sessionId": session, "after": 0})
        assert refused["data"]["recoverable"] is True, "the client looks for its worker again"


async def test_a_session_is_adopted_once_where_a_client_opens_it_at_the_same_time(tmp_path: Path) -> None:
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one, fleet.worker("two", tmp_path) as two:
        client, session, _ = await running(one, tmp_path)
        again = await two.client(numbers=True)
        adopting = asyncio.ensure_future(adopted(fleet, two))
        await attach(again, session, numbers(client)[-1])
        assert await adopting
        await until(lambda: events(again, "turn_ended"))
        assert len(events(again, "moved")) == 1


async def test_a_session_in_which_nothing_ran_moves_without_a_warning(tmp_path: Path) -> None:
    fleet = Fleet()
    async with (
        fleet.worker("one", tmp_path) as one,
        fleet.worker("two", tmp_path, host="there", shared=tmp_path) as two,
    ):
        assert one.hub.moves is not None
        one.hub.moves.place.shared = tmp_path  # type: ignore[attr-defined]
        client = await one.client(numbers=True)
        session = await client.new(tmp_path)
        client.prompt(session, "work")
        await end(one)
        await until(lambda: not fleet.row.turn and fleet.row.updated)
        await adopted(fleet, two)
        again = await two.client(numbers=True)
        await attach(again, session, 0)
        await until(lambda: notices(again))
        [shown] = notices(again)
        assert shown["severity"] == "info" and shown["title"] == "This session moved to worker `two` on `there`"
        assert "interrupted" not in events(again, "moved")[0]
        assert HubSettings(fleet.row.state).home == SessionHome("two", "there", {"all": str(tmp_path)})


async def test_a_session_that_was_released_in_order_is_opened_at_another_worker_of_the_machine_without_a_word(
    tmp_path: Path,
) -> None:
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one, fleet.worker("two", tmp_path) as two:
        client = await one.client()
        session = await client.new(tmp_path)
        client.prompt(session, "work")
        await end(one)
        await until(lambda: not fleet.row.turn and fleet.row.updated)
        await one.hub.drain(1)
        again = await two.client(numbers=True)
        await attach(again, session, 0)
        assert not events(again, "moved") and not notices(again)


async def test_a_turn_that_the_row_does_not_know_is_found_in_the_journal(tmp_path: Path) -> None:
    """A row may be older than the events that were stored behind it."""
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one, fleet.worker("two", tmp_path) as two:
        client, session, _ = await running(one, tmp_path)
        fleet.rows.rows["key0"] = msgspec.structs.replace(fleet.row, turn="")
        await adopted(fleet, two)
        again = await two.client(numbers=True)
        await attach(again, session, numbers(client)[-1])
        await until(lambda: events(again, "turn_ended"))
        assert events(again, "turn_ended")[0]["interrupted"] is True


async def test_a_session_whose_directory_is_not_here_is_not_claimed(tmp_path: Path) -> None:
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one, fleet.worker("two", tmp_path, host="there") as two:
        await running(one, tmp_path)
        before = fleet.epoch()
        with pytest.raises(NoOwner):
            await adopted(fleet, two)
        assert fleet.epoch() == before


async def test_a_session_in_a_shared_workspace_has_its_directory_where_that_is(tmp_path: Path) -> None:
    fleet = Fleet()
    here, there = tmp_path / "here", tmp_path / "there"
    for each in (here, there):
        (each / "site").mkdir(parents=True)
    async with (
        fleet.worker("one", tmp_path, host="a", shared=here) as one,
        fleet.worker("two", tmp_path, host="b", shared=there) as two,
    ):
        _, session, _ = await running(one, here / "site")
        await adopted(fleet, two)
        client = await two.client()
        await client.request("session/load", {"sessionId": session, "cwd": "/", "mcpServers": []})
        client.prompt(session, "more")
        assert (await two.agent.got("session/load"))["params"]["cwd"] == str(there / "site")
        assert fleet.row.cwd == str(there / "site")


# An agent that does not know the session.


def refuse(worker: HubClients, request: dict[str, Any], code: int = -32002) -> None:
    error = {"code": code, "message": "no such session"}
    worker.agent.send(msgspec.json.encode({"jsonrpc": "2.0", "id": request["id"], "error": error}))


async def moved(fleet: Fleet, one: HubClients, two: HubClients, directory: Path) -> tuple[RawClient, str]:
    """Move a session that had one turn."""
    client = await one.client()
    session = await client.new(directory)
    client.prompt(session, "find the answer")
    await one.agent.got("session/prompt")
    one.agent.say(session, "it is 42")
    await end(one)
    await until(lambda: not fleet.row.turn and fleet.row.updated)
    await adopted(fleet, two)
    again = await two.client(numbers=True)
    await attach(again, session, 0)
    return again, session


@pytest.mark.parametrize("loads", [True, False])
async def test_an_agent_that_does_not_know_the_session_gets_the_transcript_with_its_first_prompt(
    tmp_path: Path, loads: bool
) -> None:
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one, fleet.worker("two", tmp_path) as two:
        two.agent.capabilities = {"loadSession": loads}
        two.agent.answers["session/new"] = lambda params: {"sessionId": "renamed"}
        client, session = await moved(fleet, one, two, tmp_path)
        asked = client.prompt(session, "and why?")
        if loads:
            refuse(two, await two.agent.got("session/load"))
        prompt = (await two.agent.got("session/prompt"))["params"]
        assert prompt["sessionId"] == "renamed"
        before, own = prompt["prompt"]
        assert own == {"type": "text", "text": "and why?"}
        for part in ("find the answer", "it is 42", "transcript", "Do not repeat"):
            assert part in before["text"]
        assert "its newest part" not in before["text"] and "and why?" not in before["text"]
        two.agent.say("renamed", "because")
        await end(two)
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        assert notices(client)[-1]["title"] == "The agent goes on in a new session of its own"
        assert [text for text in client.texts if "transcript" in text] == [], "people see what they wrote"
        client.prompt(session, "thanks")
        assert (await two.agent.got("session/prompt", 2))["params"]["prompt"] == [{"type": "text", "text": "thanks"}]
        assert all(b"renamed" not in frame for frame in client.frames)


async def test_an_agent_that_ends_in_the_first_turn_gets_the_transcript_again(tmp_path: Path) -> None:
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one, fleet.worker("two", tmp_path) as two:
        two.agent.answers["session/new"] = lambda params: {"sessionId": f"renamed{two.agent.starts}"}
        client, session = await moved(fleet, one, two, tmp_path)
        asked = client.prompt(session, "and why?")
        refuse(two, await two.agent.got("session/load"))
        await two.agent.got("session/prompt")
        await two.agent.crash()
        assert "interrupted" in (await client.response(asked))["error"]["message"]
        client.prompt(session, "once more")
        refuse(two, await two.agent.got("session/load", 2))
        prompt = (await two.agent.got("session/prompt", 2))["params"]
        assert prompt["sessionId"] == "renamed2"
        assert [len(prompt["prompt"]), "it is 42" in prompt["prompt"][0]["text"]] == [2, True]


async def test_an_agent_that_wants_its_user_to_sign_in_first_gets_no_new_session(tmp_path: Path) -> None:
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one, fleet.worker("two", tmp_path) as two:
        client, session = await moved(fleet, one, two, tmp_path)
        asked = client.prompt(session, "and why?")
        refuse(two, await two.agent.got("session/load"), -32000)
        assert (await client.response(asked))["error"]["code"] == -32000
        assert not two.agent.received("session/new")


async def test_an_agent_that_refuses_a_session_which_it_had_here_does_not_lose_it(tmp_path: Path) -> None:
    """Once it has opened a session that moved, a refusal is an error that may pass, and no reason to begin anew."""
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one, fleet.worker("two", tmp_path) as two:
        two.agent.answers["session/load"] = lambda params: {}
        client, session = await moved(fleet, one, two, tmp_path)
        client.prompt(session, "more")
        await end(two)
        await two.agent.crash()
        del two.agent.answers["session/load"]
        asked = client.prompt(session, "again")
        refuse(two, await two.agent.got("session/load", 2))
        assert "cannot be continued" in (await client.response(asked))["error"]["message"]


async def test_the_newest_part_of_a_long_session_is_kept_as_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "CHARACTERS", 2000)
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one, fleet.worker("two", tmp_path) as two:
        two.agent.capabilities = {}
        client = await one.client()
        session = await client.new(tmp_path)
        for number in range(8):
            client.prompt(session, f"question {number}")
            await one.agent.got("session/prompt", number + 1)
            one.agent.say(session, f"answer {number} " + "x" * 300)
            await end(one, number + 1)
        await until(lambda: not fleet.row.turn)
        await adopted(fleet, two)
        again = await two.client()
        await again.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        again.prompt(session, "more")
        text = (await two.agent.got("session/prompt"))["params"]["prompt"][0]["text"]
        assert "its newest part" in text and "answer 7" in text and "question 1" not in text
        assert len(text) < 2000 + 600
        assert text.partition("]\n\n")[2].startswith("## "), "it begins with a whole message"


def test_a_block_is_put_in_front_of_a_prompt() -> None:
    line = b'{"id":1,"params":{"sessionId":"s","prompt":[{"type":"text","text":"[a]"}]}}'
    assert msgspec.json.decode(with_context(line, b'{"b":1}'))["params"]["prompt"] == [
        {"b": 1},
        {"type": "text", "text": "[a]"},
    ]
    empty = b'{"id":1,"params":{"sessionId":"s","prompt":[ ]}}'
    assert msgspec.json.decode(with_context(empty, b'{"b":1}'))["params"]["prompt"] == [{"b": 1}]
    assert with_context(b'{"id":1,"params":{}}', b"{}") == b'{"id":1,"params":{}}'


# Draining.


async def test_a_worker_that_drains_hands_over_idle_sessions_at_once_and_others_behind_their_turn(
    tmp_path: Path,
) -> None:
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one, fleet.worker("two", tmp_path) as two:
        idle_client, busy_client = await one.client(), await one.client(numbers=True)
        idle_session = await idle_client.new(tmp_path)
        busy = await busy_client.new(tmp_path)
        asked = busy_client.prompt(busy, "work")
        await one.agent.got("session/prompt")
        waits = busy_client.prompt(busy, "later")
        await until(lambda: one.hub.agents["demo"].sessions[busy.encode()].turns.queued == 1)
        draining = asyncio.ensure_future(one.hub.drain())
        await until(lambda: idle_client.is_lost and "key0" not in fleet.journal.leases)
        assert not draining.done() and not busy_client.is_lost
        await end(one)
        await draining
        assert (await busy_client.response(asked))["result"]["stopReason"] == "end_turn"
        await until(lambda: busy_client.is_lost and not fleet.journal.leases)
        unanswered = [each for each in busy_client.messages if each.get("id") == waits]
        assert not unanswered, "a prompt that waits is sent again by its client, to the next worker"
        again = await two.client(numbers=True)
        for session in (idle_session, busy):
            await attach(again, session, 0)
        assert not [each for each in again.messages if "interrupted" in str(each)]


async def test_a_worker_that_stops_before_a_turn_ends_records_it_as_interrupted(tmp_path: Path) -> None:
    fleet = Fleet()
    async with fleet.worker("two", tmp_path) as two:
        async with fleet.worker("one", tmp_path) as one:
            client, session, asked = await running(one, tmp_path)
            await one.hub.drain(0.01)
            await one.hub.close()
            assert "the worker was stopped" in (await client.response(asked))["error"]["message"]
        assert not fleet.journal.leases
        again = await two.client(numbers=True)
        await attach(again, session, 0)
        await until(lambda: events(again, "turn_ended"))
        assert len(events(again, "turn_ended")) == 1


async def test_the_hub_of_a_worker_leaves_the_sessions_of_others_alone_when_it_starts(tmp_path: Path) -> None:
    fleet = Fleet()
    async with fleet.worker("one", tmp_path) as one:
        await running(one, tmp_path)
        stored = len(fleet.journal.events["key0"])
        async with fleet.worker("two", tmp_path):
            assert len(fleet.journal.events["key0"]) == stored and fleet.row.turn
