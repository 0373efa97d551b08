"""Workers of a fleet: sessions are opened over the broker, move when a worker is gone, and wait for their machine where they must."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from antiphon.errors import AcpError
from antiphon.fleet.control import WorkerControl, WorkerRequest
from antiphon.fleet.owner import Hello, placement_of
from antiphon.fleet.records.formats import owner_subject
from antiphon.fleet.worker.summaries import STATE, UNKNOWN_KEPT, LiveSummary, SessionSummaries, StateMessage
from antiphon.fleet.worker.worker import NAME_FILE
from antiphon.gateway.base import AccessRole, Principal
from antiphon.journal.owner import NoOwner, Placement
from antiphon.transports.base import Transport
from antiphon.transports.process import ProcessTransport
from tests.fleet.workers import INTERVAL, LEASE, PlayedWorker, WorkerFleet, worker_fleet
from tests.gateway.peers import DRIVER, QUICK, RawClient, ScriptedAgent, demo
from tests.gateway.test_attachments import numbers
from tests.gateway.test_moves import events, notices
from tests.gateway.test_turns import attach
from tests.limits import limit
from tests.waits import until


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[WorkerFleet]:
    async with asyncio.timeout(limit()), worker_fleet(tmp_path) as found:
        yield found


async def end(worker: PlayedWorker, count: int = 1) -> None:
    prompt = await worker.agent.got("session/prompt", count)
    worker.agent.result(prompt["id"], {"stopReason": "end_turn"})


async def running(fleet: WorkerFleet, worker: PlayedWorker) -> tuple[RawClient, str, str]:
    """Let a turn run; return the client, the session and its key."""
    client = await fleet.client(worker)
    session = await client.new(fleet.directory)
    client.prompt(session, "work")
    await worker.agent.got("session/prompt")
    worker.agent.say(session, "half")
    await until(lambda: "half" in client.texts)
    return client, session, worker.session(session).key


async def test_a_session_is_placed_opened_and_prompted_over_the_broker(fleet: WorkerFleet) -> None:
    one = await fleet.start("one")
    placed = await fleet.owner.place(Placement("demo", str(fleet.directory)))
    assert placed.name == one.name and one.name.startswith("one.")
    client = await fleet.client(one)
    session = await client.new(fleet.directory)
    asked = client.prompt(session, "work")
    await one.agent.got("session/prompt")
    one.agent.say(session, "done")
    await end(one)
    assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
    key = one.session(session).key
    assert await fleet.owner.find(key) == one.name
    assert [event[:1] for event in await fleet.events(key)] == [b"T", b"P", b"{", b"E"]
    home = placement_of(await fleet.row(one, session)).home
    assert home is not None and (home.worker, home.host) == (one.name, "here")


async def test_a_connection_for_an_agent_that_a_worker_does_not_have_is_refused(fleet: WorkerFleet) -> None:
    one = await fleet.start("one")
    with pytest.raises(NoOwner, match="has no agent `codex`"):
        await fleet.owner.connect(one.name, Hello(DRIVER, "codex"))


# Fail-over.


async def test_a_turn_whose_worker_is_cut_off_is_interrupted_and_the_session_goes_on_elsewhere(
    fleet: WorkerFleet,
) -> None:
    one, two = await fleet.start("one"), await fleet.start("two")
    client, session, key = await running(fleet, one)
    seen = numbers(client)
    fleet.server.cut(one.broker)
    one.agent.say(session, "of a zombie")
    await until(lambda: two.session(session) is not None)
    assert await fleet.owner.find(key) == two.name
    again = await fleet.client(two)
    await attach(again, session, seen[-1])
    await until(lambda: events(again, "turn_ended"))
    [moved], [ended] = events(again, "moved"), events(again, "turn_ended")
    assert (moved["from"], moved["to"]) == (one.name, two.name) and ended["interrupted"] is True
    assert "moved to worker" in notices(again)[0]["title"] and "`one`" in notices(again)[0]["description"]
    fleet.server.mend(one.broker)
    assert (await one.agent.got("session/cancel"))["params"] == {"sessionId": session}
    one.agent.result((await one.agent.got("session/prompt"))["id"], {"stopReason": "cancelled"})
    await until(lambda: one.session(session) is None)
    assert not any(b"zombie" in event for event in await fleet.events(key))
    assert seen + numbers(again) == list(range(1, len(await fleet.events(key)) + 1))
    two.agent.answers["session/load"] = lambda params: {}
    more = again.prompt(session, "more")
    await end(two)
    assert (await again.response(more))["result"]["stopReason"] == "end_turn"
    assert len(one.agent.received("session/prompt")) == 1, "a prompt is never sent again"


async def test_a_worker_that_stands_still_longer_than_its_lease_loses_its_sessions(fleet: WorkerFleet) -> None:
    """Its connection stays, and what it did not read waits for it: as of a process that was stopped."""
    one, two = await fleet.start("one"), await fleet.start("two")
    client, session, key = await running(fleet, one)
    fleet.server.freeze(one.broker)
    one.agent.say(session, "of a zombie")
    await until(lambda: two.session(session) is not None)
    fleet.server.thaw(one.broker)
    await one.agent.got("session/cancel")
    one.agent.result((await one.agent.got("session/prompt"))["id"], {"stopReason": "cancelled"})
    await until(lambda: one.session(session) is None and client.is_lost)
    assert not any(b"zombie" in event for event in await fleet.events(key))
    await until(lambda: one.name in two.worker.members.workers)
    assert await fleet.owner.find(key) == two.name, "it is a member again, without the session"


async def test_the_sessions_of_a_dead_worker_are_shared_among_the_others(fleet: WorkerFleet) -> None:
    one = await fleet.start("one")
    others = [await fleet.start(name) for name in ("two", "three")]
    client = await fleet.client(one)
    sessions = [await client.new(fleet.directory) for _ in range(20)]
    fleet.server.cut(one.broker)
    await until(lambda: all(any(each.session(session) for each in others) for session in sessions))
    counts = [each.worker.orphans.adopted for each in others]
    assert sum(counts) == 20 and min(counts) > 0
    keys = [session.key for each in others for session in each.worker.hub.agents["demo"].sessions.values()]
    assert len(set(keys)) == 20
    for key in keys:
        assert sum(event.startswith(b"M") for event in await fleet.events(key)) == 1


@pytest.mark.parametrize("data", [b"{", b'{"worker": "\xff"}'], ids=["cut", "no text"])
async def test_a_damaged_record_of_an_owner_keeps_no_other_session_from_being_taken(
    fleet: WorkerFleet, data: bytes
) -> None:
    one, two = await fleet.start("one"), await fleet.start("two")
    client = await fleet.client(one)
    session = await client.new(fleet.directory)
    await two.broker.append(owner_subject("0" * 32), data)
    fleet.server.cut(one.broker)
    await until(lambda: two.session(session) is not None)


async def test_a_worker_that_is_started_again_takes_its_sessions_back_before_its_lease_is_over(
    fleet: WorkerFleet,
) -> None:
    two = await fleet.start("two", host="there")
    one = await fleet.start("one")
    _, session, key = await running(fleet, one)
    fleet.server.cut(one.broker)  # killed: only the name that it left in its directory is known
    directory = fleet.directory / "data" / "again"
    directory.mkdir()
    (directory / NAME_FILE).write_bytes(msgspec.json.encode({"name": one.name}))
    again = await fleet.start("one", data="again")
    assert not fleet.members.is_alive(one.name), "before the lease is over"
    await until(lambda: again.session(session) is not None)
    assert two.session(session) is None and await fleet.owner.find(key) == again.name
    client = await fleet.client(again)
    await attach(client, session, 0)
    await until(lambda: events(client, "turn_ended"))
    assert events(client, "turn_ended")[0]["interrupted"] is True


async def test_a_session_whose_directory_is_on_one_machine_waits_for_it_and_says_so(fleet: WorkerFleet) -> None:
    elsewhere = await fleet.start("elsewhere", host="there")
    async with fleet.running("one") as one:
        _, session, key = await running(fleet, one)
        row = await fleet.row(one, session)
        await until(lambda: one.name in fleet.members.workers)
        fleet.server.cut(one.broker)
        await until(lambda: one.name not in fleet.members.workers)
        await until(lambda: elsewhere.worker.orphans.waiting == 1)
        async with asyncio.timeout(limit()):
            while await fleet.owner.find(key) is not None:  # noqa: ASYNC110 - this process stood still, so all have a fresh lease
                await asyncio.sleep(0.02)
        with pytest.raises(NoOwner, match=r"waits for its machine: .* is on `here` alone"):
            await fleet.owner.place(placement_of(row))
        assert elsewhere.session(session) is None
        neighbour = await fleet.start("neighbour")
        await until(lambda: neighbour.session(session) is not None)
        await until(lambda: elsewhere.worker.orphans.waiting == 0)
        fleet.server.mend(one.broker)


@pytest.mark.slow
async def test_records_are_not_read_again_and_again_while_a_session_waits(
    fleet: WorkerFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = await fleet.start("elsewhere", host="there")
    client, _, _ = await running(fleet, elsewhere)
    async with fleet.running("one") as one:
        await running(fleet, one)
        fleet.server.cut(one.broker)
        await until(lambda: elsewhere.worker.orphans.waiting == 1)
        looks: list[str] = []
        lasts = elsewhere.broker.lasts

        async def counted(pattern: str) -> Any:
            looks.append(pattern)
            return await lasts(pattern)

        monkeypatch.setattr(elsewhere.broker, "lasts", counted)
        beats = elsewhere.worker.heartbeat._count
        await until(lambda: elsewhere.worker.heartbeat._count > beats + 3 * LEASE / INTERVAL)
        await client.transport.close()  # its beats differ from now on
        await until(lambda: not elsewhere.worker.hub.counts()["clients"])
        beats = elsewhere.worker.heartbeat._count
        await until(lambda: elsewhere.worker.heartbeat._count > beats + LEASE / INTERVAL)
        assert len(looks) <= 1, "one look may have been under way"
        fleet.server.mend(one.broker)


async def test_a_session_in_a_shared_workspace_moves_to_another_machine(fleet: WorkerFleet) -> None:
    for name in ("a", "b"):
        (fleet.directory / name / "site").mkdir(parents=True)
    one = await fleet.start("one", host="a", roots=(), workspaces={"all": str(fleet.directory / "a")})
    two = await fleet.start("two", host="b", roots=(), workspaces={"all": str(fleet.directory / "b")})
    client = await fleet.client(one)
    session = await client.new(fleet.directory / "a" / "site")
    fleet.server.cut(one.broker)
    await until(lambda: two.session(session) is not None)
    assert two.session(session).row.cwd == str(fleet.directory / "b" / "site")
    again = await fleet.client(two)
    await attach(again, session, 0)
    await until(lambda: notices(again))
    assert "on `b`" in notices(again)[0]["title"]


async def test_a_session_whose_shared_directory_is_not_mounted_is_left_to_others(fleet: WorkerFleet) -> None:
    (fleet.directory / "a").mkdir()
    one = await fleet.start("one", host="a", roots=(), workspaces={"all": str(fleet.directory / "a")})
    two = await fleet.start("two", host="b", roots=(), workspaces={"all": str(fleet.directory / "nowhere")})
    _, session, _ = await _new(fleet, one, fleet.directory / "a")
    fleet.server.cut(one.broker)
    await until(lambda: two.worker.orphans._refused)
    assert two.session(session) is None
    (fleet.directory / "b").mkdir()
    three = await fleet.start("three", host="c", roots=(), workspaces={"all": str(fleet.directory / "b")})
    await until(lambda: three.session(session) is not None)


async def _new(fleet: WorkerFleet, worker: PlayedWorker, directory: Path) -> tuple[RawClient, str, str]:
    client = await fleet.client(worker)
    session = await client.new(directory)
    return client, session, worker.session(session).key


async def test_a_session_that_a_client_opens_at_a_worker_that_does_not_have_it_is_found_elsewhere(
    fleet: WorkerFleet,
) -> None:
    one, two = await fleet.start("one"), await fleet.start("two")
    _, session, _ = await running(fleet, one)
    client = await fleet.client(two)
    refused = await client.refused("_antiphon/session/attach", {"sessionId": session, "after": 0})
    assert refused["data"]["action"] == "find the owner" and refused["data"]["recoverable"] is True


# The broker.


async def test_agents_go_on_while_the_broker_is_away_and_nothing_is_lost_or_stored_twice(fleet: WorkerFleet) -> None:
    one = await fleet.start("one")
    client, session, key = await running(fleet, one)
    fleet.server.stop()
    texts = [f"word {number} " for number in range(200)]
    one.agent.say(session, *texts[:100])
    await asyncio.sleep(LEASE * 1.5)
    one.agent.say(session, *texts[100:])
    await end(one)
    fleet.server.start()
    await until(lambda: not one.session(session).row.turn)
    again = await fleet.client(one)
    await attach(again, session, numbers(client)[-1])
    await until(lambda: events(again, "turn_ended"))
    assert [text for text in again.texts if text.startswith("word")] == texts
    assert "interrupted" not in events(again, "turn_ended")[0]
    assert numbers(client) + numbers(again) == list(range(1, len(await fleet.events(key)) + 1))


async def test_an_agent_that_sends_much_while_the_broker_is_away_is_not_read_on(fleet: WorkerFleet) -> None:
    limits = msgspec.structs.replace(QUICK, uncommitted=20_000)
    one = await fleet.start("one", limits=limits)
    _, session, key = await running(fleet, one)
    fleet.server.stop()
    for _ in range(100):
        one.agent.say(session, "x" * 1000)
        await asyncio.sleep(0)
    assert one.agent.transport is not None
    await until(lambda: one.agent.transport is not None and one.agent.transport.unsent > 20_000)
    assert one.worker.hub.agents["demo"].uncommitted < 60_000
    fleet.server.start()
    await until(lambda: one.agent.transport is not None and one.agent.transport.unsent == 0)
    await until(lambda: one.worker.hub.agents["demo"].uncommitted == 0)
    assert sum(b"xxxx" in event for event in await fleet.events(key)) == 100


async def test_a_worker_ends_while_the_broker_is_away(fleet: WorkerFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    from antiphon.fleet.worker import worker as module
    from antiphon.gateway import hub

    monkeypatch.setattr(module, "CLOSE_LIMIT", 0.3)
    monkeypatch.setattr(hub, "STORE_LIMIT", 0.1)
    async with fleet.running("one") as one:
        _, session, _ = await running(fleet, one)
        fleet.server.stop()
        one.agent.say(session, "never stored")
    fleet.server.start()


# Draining.


async def test_a_worker_that_is_asked_to_drain_hands_over_its_sessions_and_leaves(fleet: WorkerFleet) -> None:
    two = await fleet.start("two")
    async with fleet.running("one") as one:
        client, session, key = await running(fleet, one)
        idle_client, idle_session, idle_key = await _new(fleet, one, fleet.directory)
        await until(lambda: one.name in fleet.members.workers)
        answer = await WorkerControl(fleet.broker).ask(one.name, WorkerRequest("drain"))
        assert answer == {"draining": True, "turns": 1}
        await one.worker.asked_to_end.wait()
        draining = asyncio.ensure_future(one.worker.drain())
        await until(lambda: idle_client.is_lost)
        await until(lambda: fleet.members.workers[one.name].draining)
        placed = await fleet.owner.place(placement_of(await fleet.row(two, idle_session)))
        assert placed.name == two.name
        with pytest.raises(NoOwner, match="about to end"):
            await fleet.owner.connect(one.name, Hello(DRIVER, "demo"))
        assert await fleet.owner.find(idle_key) is None and await fleet.owner.find(key) == one.name
        one.agent.say(session, " and the rest")
        await end(one)
        await draining
        await until(lambda: client.is_lost)
        assert client.texts[-1] == " and the rest"
    await until(lambda: one.name not in fleet.members.workers)
    assert await fleet.owner.find(key) is None
    again = await fleet.client(two)
    await attach(again, session, 0)
    await until(lambda: events(again, "turn_ended"))
    assert "interrupted" not in events(again, "turn_ended")[0]


async def test_a_worker_that_is_hurried_interrupts_the_turns_that_run(fleet: WorkerFleet) -> None:
    two = await fleet.start("two")
    hurry = asyncio.Event()
    async with fleet.running("one") as one:
        _, session, _ = await running(fleet, one)
        draining = asyncio.ensure_future(one.worker.drain(hurry))
        await until(lambda: one.worker.hub.is_draining)
        hurry.set()
        await draining
    again = await fleet.client(two)
    await attach(again, session, 0)
    await until(lambda: events(again, "turn_ended"))
    assert "the worker was stopped" in events(again, "turn_ended")[0]["error"]["message"]


# What other processes learn of it.


async def test_gateways_learn_which_sessions_run_and_wait(fleet: WorkerFleet) -> None:
    one = await fleet.start("one")
    early = SessionSummaries(fleet.broker, fleet.members)
    changed: list[str] = []
    early.changed = changed.append
    client, session, key = await running(fleet, one)
    await until(lambda: (found := early.get(key)) is not None and found.is_running and not found.waiting)
    one.agent.ask(1, session)
    await client.asked()
    await until(lambda: (found := early.get(key)) is not None and found.waiting == 1)
    late = SessionSummaries(fleet.broker, fleet.members)
    await until(lambda: late.get(key) == early.get(key))
    client.choose(client.requests()[-1])
    await until(lambda: (found := early.get(key)) is not None and found.waiting == 0)
    await end(one)
    await until(lambda: early.get(key) is None and late.get(key) is None)
    assert set(changed) == {key}
    client.prompt(session, "more")
    await until(lambda: early.get(key) is not None)
    fleet.server.cut(one.broker)
    await until(lambda: early.get(key) is None)
    for each in (early, late):
        each.close()


async def test_the_summaries_of_workers_that_never_send_a_beat_are_not_all_kept(fleet: WorkerFleet) -> None:
    one = await fleet.start("one")
    fleet.members.lease = 60.0  # a thousand messages take a while where the machine is busy
    summaries = SessionSummaries(fleet.broker, fleet.members)
    _, _, key = await running(fleet, one)
    await until(lambda: summaries.get(key) is not None)
    for number in range(10 * UNKNOWN_KEPT):
        name = f"unknown.{number}"
        message = StateMessage(name, {f"session-{number}": LiveSummary(1, 0, is_running=True)})
        one.broker.publish(STATE + name, msgspec.json.encode(message))
    await until(lambda: summaries.get(f"session-{10 * UNKNOWN_KEPT - 1}") is not None)
    kept = [number for number in range(10 * UNKNOWN_KEPT) if summaries.get(f"session-{number}") is not None]
    assert kept == [*range(9 * UNKNOWN_KEPT, 10 * UNKNOWN_KEPT)] and summaries.get(key) is not None
    summaries.close()


async def test_the_prompts_of_a_revoked_token_that_wait_are_dropped_at_every_worker(fleet: WorkerFleet) -> None:
    one = await fleet.start("one")
    client, session, _ = await running(fleet, one)
    guest = await fleet.client(one, Principal("guest", AccessRole.DRIVE, token_id="7"))
    waits = guest.prompt(session, "later")
    await until(lambda: one.session(session).turns.queued == 1)
    WorkerControl(fleet.broker).revoked("7", "its token was revoked")
    assert "revoked" in (await guest.response(waits))["error"]["message"]
    await end(one)
    await client.response(3)


async def test_a_worker_says_how_it_is(fleet: WorkerFleet) -> None:
    one = await fleet.start("one", labels=("gpu",), slots=7)
    _, session, key = await running(fleet, one)
    control = WorkerControl(fleet.broker)
    status = await control.ask(one.name, WorkerRequest("status"))
    state: Any = status["worker"]
    assert (state["name"], state["labels"], state["slots"], state["turns"]) == (one.name, ["gpu"], 7, 1)
    assert status["sessions"] == [key] and status["health"] == "ok"
    with pytest.raises(AcpError, match="does not know `dance`"):
        await control.ask(one.name, WorkerRequest("dance"))
    assert await control.has_directories(one.name, [str(fleet.directory)])
    for missing in ("no", "a\0b", "a" * 10_000):
        assert not await control.has_directories(one.name, [str(fleet.directory / missing)])
    (fleet.directory / "site").mkdir()
    listed = await control.ask(one.name, WorkerRequest("list", (str(fleet.directory),)))
    assert listed["path"] == str(fleet.directory) and "site" in msgspec.convert(listed["directories"], list[str])
    with pytest.raises(AcpError, match="outside"):
        await control.ask(one.name, WorkerRequest("list", ("/etc",)))
    assert session


async def test_a_new_session_is_placed_where_its_directory_exists(fleet: WorkerFleet) -> None:
    """Two machines have a root of the same name; here a worker that answers for another one stands for the second."""
    one, two = await fleet.start("one", host="a"), await fleet.start("two", host="b")
    (fleet.directory / "site").mkdir()

    async def nothing(request: WorkerRequest) -> dict[str, object]:
        return {"exist": False}

    wanted = Placement("demo", str(fleet.directory / "site"))
    one.worker.answers["directories"] = nothing
    assert (await fleet.owner.place(wanted)).name == two.name

    async def broken(request: WorkerRequest) -> dict[str, object]:
        raise AcpError("the disk of this machine cannot be read")

    one.worker.answers["directories"] = broken
    for _ in range(3):
        assert (await fleet.owner.place(wanted)).name == two.name
    one.worker.answers["directories"] = two.worker.answers["directories"] = nothing
    with pytest.raises(NoOwner, match="does not exist at any of"):
        await fleet.owner.place(wanted)


async def test_a_directory_that_a_client_names_by_a_link_is_placed_where_it_leads_to(fleet: WorkerFleet) -> None:
    (fleet.directory / "real" / "site").mkdir(parents=True)
    (fleet.directory / "link").symlink_to("real")
    one = await fleet.start("one", host="a", roots=(str(fleet.directory / "real"),))
    (fleet.directory / "other").mkdir()
    await fleet.start("two", host="b", roots=(str(fleet.directory / "other"),))
    linked = fleet.directory / "link" / "site"
    assert (await fleet.owner.place(Placement("demo", str(linked)))).name == one.name
    client = await fleet.client(one)
    row = await fleet.row(one, await client.new(linked))
    assert row.cwd == str(fleet.directory / "real" / "site")
    for missing in (str(fleet.directory / "link" / "none"), "/etc"):
        with pytest.raises(NoOwner, match=f"has a root above `{missing}`"):
            await fleet.owner.place(Placement("demo", missing))


async def test_slots_are_sessions_in_use_and_idle_ones_make_room(fleet: WorkerFleet) -> None:
    one = await fleet.start("one", slots=2)
    first, second = await fleet.client(one), await fleet.client(one)
    for client in (first, second):
        await client.new(fleet.directory)
    await until(lambda: fleet.members.workers[one.name].used == 2)
    with pytest.raises(NoOwner, match="all slots are taken"):
        await fleet.owner.place(Placement("demo", str(fleet.directory)))
    third = await fleet.client(one)
    assert (
        "too many sessions"
        in (await third.refused("session/new", {"cwd": str(fleet.directory), "mcpServers": []}))["message"]
    )
    await first.leave()
    await until(lambda: fleet.members.workers[one.name].used == 1)
    assert (await fleet.owner.place(Placement("demo", str(fleet.directory)))).name == one.name
    with pytest.raises(NoOwner, match="all slots are taken"):  # what was placed counts before the next beat says it
        await fleet.owner.place(Placement("demo", str(fleet.directory)))
    assert await third.new(fleet.directory)


# Isolation.


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at processes in /proc")
@pytest.mark.parametrize("taken", [False, True])
async def test_an_agent_of_a_worker_that_is_cut_off_is_stopped_and_goes_on_unless_its_session_was_taken(
    fleet: WorkerFleet, taken: bool
) -> None:
    started: list[ProcessTransport] = []

    async def source() -> Transport:
        transport = await demo(fleet.directory)
        assert isinstance(transport, ProcessTransport)
        started.append(transport)
        return transport

    one = await fleet.start("one", source=source)
    two = await fleet.start("two")
    client = await fleet.client(one)
    session = await client.new(fleet.directory)
    client.prompt(session, "/permission")
    await client.asked()
    pid = started[0].pid
    await until(lambda: one.worker.isolation is not None and one.worker.isolation._others)
    if not taken:
        two.worker.hub.is_draining = True  # it could take the session, and does not
    fleet.server.cut(one.broker)
    await until(lambda: state_of(pid) == "T")
    if taken:
        await until(lambda: two.session(session) is not None)
        fleet.server.mend(one.broker)
        await until(lambda: started[0].status is not None)
        await until(lambda: one.session(session) is None)
    else:
        fleet.server.mend(one.broker)
        await until(lambda: state_of(pid) != "T")
        assert one.session(session) is not None
        again = await fleet.client(one)
        await attach(again, session, 0)
        again.choose(await again.asked())
        await until(lambda: events(again, "turn_ended"))
        assert "interrupted" not in events(again, "turn_ended")[0]


async def test_an_agent_whose_sessions_no_other_worker_can_take_goes_on_without_the_broker(fleet: WorkerFleet) -> None:
    one, two = await fleet.start("one"), await fleet.start("two", host="there")
    _, session, _ = await running(fleet, one)
    assert one.worker.isolation is not None
    await until(lambda: one.worker.isolation is not None and one.worker.isolation._others)
    assert not one.worker.isolation._may_move(one.session(session))
    neighbour = await fleet.start("neighbour")
    await until(lambda: one.worker.isolation is not None and one.worker.isolation._may_move(one.session(session)))
    assert two.name and neighbour.name and isinstance(one.agent, ScriptedAgent)


async def test_two_sessions_go_to_two_workers_while_the_first_is_being_opened(fleet: WorkerFleet) -> None:
    one, two = await fleet.start("one"), await fleet.start("two")
    placement = Placement("demo", str(fleet.directory))
    first = await fleet.owner.place(placement)
    beats = {each.name: each.beat for each in fleet.members.workers.values()}
    await until(lambda: all(each.beat > beats[each.name] for each in fleet.members.workers.values()))
    second = await fleet.owner.place(placement)  # the beats that came meanwhile do not have the first one
    assert {first.name, second.name} == {one.name, two.name}
