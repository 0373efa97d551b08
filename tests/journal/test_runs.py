"""What only the journal of a gateway promises: appends that do not wait, rows that hold runs, nothing behind a gap."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from sqlite3 import Connection, IntegrityError, OperationalError

import pytest

from antiphon.errors import sentence_and_hint
from antiphon.gateway.data import GatewayData
from antiphon.journal import runs
from antiphon.journal.base import JournalEntry
from antiphon.store import database
from antiphon.store.errors import NoSuchSession, StoreError


@pytest.fixture
async def data(tmp_path: Path) -> AsyncIterator[GatewayData]:
    async with GatewayData.open(tmp_path) as data:
        yield data


async def begun(data: GatewayData, agent_session: str = "s") -> str:
    return (await data.create("demo", agent_session, "/w")).key


async def rows(data: GatewayData) -> list[tuple[int, int]]:
    query = "SELECT first, last FROM event ORDER BY session, first"
    return await data.database.read(lambda connection: connection.execute(query).fetchall())


async def refuse_events(data: GatewayData, text: str) -> None:
    """Have the file refuse every row that holds this text."""
    trigger = f"""CREATE TRIGGER refusal BEFORE INSERT ON event WHEN instr(NEW.data, CAST('{text}' AS BLOB))
        BEGIN SELECT RAISE(ABORT, 'refused'); END"""
    await data.database.run(lambda connection: connection.execute(trigger))


async def test_appends_of_one_turn_of_the_loop_are_one_row(data: GatewayData) -> None:
    key = await begun(data)
    lease = await data.journal.claim(key)
    futures = [data.journal.append(lease, [b"%d" % each]) for each in range(100)]
    assert await asyncio.gather(*futures) == list(range(1, 101))
    assert await rows(data) == [(1, 100)]
    assert await data.journal.read(key, 41, 2) == [JournalEntry(42, b"41"), JournalEntry(43, b"42")]


async def test_appends_are_done_in_the_order_of_the_calls(data: GatewayData) -> None:
    leases = [await data.journal.claim(await begun(data, f"s{each}")) for each in range(7)]
    done: list[int] = []
    for each in range(300):
        future = data.journal.append(leases[each % 7], [b"%d" % each] * (each % 3))
        future.add_done_callback(lambda _, each=each: done.append(each))  # type: ignore[misc]
        if each % 50 == 0:
            await asyncio.sleep(0)
    await data.journal.flush()
    assert done == list(range(300))


async def test_a_long_run_is_several_rows(data: GatewayData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "RUN_BYTES", 10)
    key = await begun(data)
    lease = await data.journal.claim(key)
    await data.journal.append(lease, [b"12345"] * 5)
    assert await rows(data) == [(1, 2), (3, 4), (5, 5)]
    assert [entry.number for entry in await data.journal.read(key, 1)] == [2, 3, 4, 5]


async def test_more_than_one_commit_holds_is_stored_in_several(
    data: GatewayData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "COMMIT_BYTES", 10)
    key = await begun(data)
    lease = await data.journal.claim(key)
    futures = [data.journal.append(lease, [b"12345"]) for _ in range(5)]
    assert data.journal.unstored == 25
    assert await asyncio.gather(*futures) == [1, 2, 3, 4, 5]
    assert await rows(data) == [(1, 2), (3, 4), (5, 5)] and data.journal.unstored == 0


async def test_an_event_with_a_line_end_has_a_row_of_its_own(data: GatewayData) -> None:
    key = await begun(data)
    events = [b"a", b"b\nc", b"\n", b"", b"d"]
    await data.journal.append(await data.journal.claim(key), events)
    assert await rows(data) == [(1, 1), (2, 2), (3, 3), (4, 5)]
    assert [entry.data for entry in await data.journal.read(key)] == events


async def test_a_page_ends_at_its_size(data: GatewayData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "PAGE_BYTES", 10)
    monkeypatch.setattr(runs, "RUN_BYTES", 10)
    key = await begun(data)
    await data.journal.append(await data.journal.claim(key), [b"12345"] * 6)
    assert [entry.number for entry in await data.journal.read(key, 1)] == [2]
    assert [entry.number for entry in await data.journal.read(key, 2)] == [3, 4]


async def test_the_length_is_the_last_number(data: GatewayData) -> None:
    key = await begun(data)
    assert await data.journal.length(key) == 0 == await data.journal.length("nowhere")
    await data.journal.append(await data.journal.claim(key), [b"1", b"2"])
    assert await data.journal.length(key) == 2


async def test_nothing_is_stored_behind_an_append_that_failed(data: GatewayData) -> None:
    key, other = await begun(data), await begun(data, "t")
    lease, other_lease = await data.journal.claim(key), await data.journal.claim(other)
    await data.journal.append(lease, [b"1"])
    await refuse_events(data, "bad")
    failing = data.journal.append(lease, [b"bad"])
    await asyncio.sleep(0)  # its commit is under way
    behind = data.journal.append(lease, [b"3"])
    elsewhere = data.journal.append(other_lease, [b"1"])
    for future in (failing, behind):
        with pytest.raises(IntegrityError):
            await future
    assert await elsewhere == 1
    assert await data.journal.append(lease, [b"2"]) == 2, "what is appended after the failure was reported is stored"
    assert [entry.data for entry in await data.journal.read(key)] == [b"1", b"2"]
    assert data.journal.unstored == 0


async def test_a_deleted_session_fails_alone(data: GatewayData) -> None:
    key, other = await begun(data), await begun(data, "t")
    lease, other_lease = await data.journal.claim(key), await data.journal.claim(other)
    await data.delete(key)
    failing, stored = data.journal.append(lease, [b"1"]), data.journal.append(other_lease, [b"1"])
    with pytest.raises(NoSuchSession):
        await failing
    assert await stored == 1


async def test_a_caller_that_stops_waiting_does_not_undo_its_append(data: GatewayData) -> None:
    key = await begun(data)
    data.journal.append(await data.journal.claim(key), [b"1"]).cancel()
    await data.journal.flush()
    assert await data.journal.length(key) == 1


async def test_a_row_that_is_damaged_is_an_error_with_a_hint(data: GatewayData) -> None:
    key = await begun(data)
    await data.journal.append(await data.journal.claim(key), [b"1", b"2"])

    def damage(connection: Connection) -> None:
        connection.execute("UPDATE event SET data = x'31'")

    await data.database.run(damage)
    with pytest.raises(StoreError) as caught:
        await data.journal.read(key)
    sentence, hint = sentence_and_hint(caught.value)
    assert "1 to 2" in sentence and "backup" in (hint or "")


async def test_an_append_to_a_closed_file_fails(tmp_path: Path) -> None:
    async with GatewayData.open(tmp_path) as data:
        lease = await data.journal.claim(await begun(data))
    with pytest.raises(StoreError, match="closed"):
        await data.journal.append(lease, [b"1"])


async def test_events_of_known_sessions_are_stored_by_one_statement_without_a_transaction_around_it(
    data: GatewayData,
) -> None:
    leases = [await data.journal.claim(await begun(data, f"s{each}")) for each in range(3)]
    await asyncio.gather(*(data.journal.append(lease, [b"1"]) for lease in leases))
    statements: list[str] = []
    await data.database.run(lambda connection: connection.set_trace_callback(statements.append))
    statements.clear()
    assert await asyncio.gather(*(data.journal.append(lease, [b"2", b"3"]) for lease in leases)) == [3, 3, 3]
    assert [statement.split()[0] for statement in statements] == ["INSERT"]
    assert await rows(data) == [(1, 1), (2, 3)] * 3


async def test_more_rows_than_one_statement_holds_are_stored_in_one_commit(data: GatewayData) -> None:
    leases = [await data.journal.claim(await begun(data, f"s{each}")) for each in range(2 * runs.ROWS + 1)]
    await asyncio.gather(*(data.journal.append(lease, [b"1"]) for lease in leases))
    statements: list[str] = []
    await data.database.run(lambda connection: connection.set_trace_callback(statements.append))
    statements.clear()
    assert await asyncio.gather(*(data.journal.append(lease, [b"2"]) for lease in leases)) == [2] * len(leases)
    assert [statement.split()[0] for statement in statements] == ["BEGIN", "INSERT", "INSERT", "INSERT", "COMMIT"]
    assert await rows(data) == [(1, 1), (2, 2)] * len(leases)


async def test_a_known_session_that_was_deleted_fails_alone_among_many(data: GatewayData) -> None:
    keys = [await begun(data, f"s{each}") for each in range(runs.ROWS + 10)]
    leases = [await data.journal.claim(key) for key in keys]
    await asyncio.gather(*(data.journal.append(lease, [b"1"]) for lease in leases))
    await data.delete(keys[-1])
    found = await asyncio.gather(*(data.journal.append(lease, [b"2"]) for lease in leases), return_exceptions=True)
    assert found[:-1] == [2] * (len(keys) - 1) and isinstance(found[-1], NoSuchSession)
    assert [await data.journal.length(key) for key in keys] == [2] * (len(keys) - 1) + [0]


async def test_events_whose_commit_fails_are_not_taken_for_stored(
    data: GatewayData, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = await begun(data)
    lease = await data.journal.claim(key)
    execute = database._retry_while_locked

    def full(connection: Connection, *statements: str) -> object:
        if statements == ("COMMIT",):
            raise OperationalError("database or disk is full")
        return execute(connection, *statements)

    monkeypatch.setattr(database, "_retry_while_locked", full)
    with pytest.raises(OperationalError, match="disk is full"):
        await data.journal.append(lease, [b"lost"])
    monkeypatch.undo()
    assert await data.journal.append(lease, [b"1"]) == 1
    assert await data.journal.read(key) == [JournalEntry(1, b"1")]


async def test_what_follows_an_append_and_fails_takes_no_other_along(
    data: GatewayData, caplog: pytest.LogCaptureFixture
) -> None:
    leases = [await data.journal.claim(await begun(data, f"s{each}")) for each in range(2)]

    def fail(number: int, error: BaseException | None) -> None:
        raise ZeroDivisionError

    data.journal.store(leases[0], [b"1"], fail)
    assert await data.journal.append(leases[1], [b"1"]) == 1
    assert await data.journal.append(leases[0], [b"2"]) == 2
    assert "ZeroDivisionError" in caplog.text
