"""What is kept of "always" answers."""

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from antiphon.store.database import Database
from antiphon.store.decisions import Decision, DecisionStore
from antiphon.store.schema import MIGRATIONS, open_database
from antiphon.store.sessions import SessionStore
from tests.store.stores import START, Clock, create_as_before, file_in


def rules(decisions: list[Decision]) -> list[str]:
    return [decision.rule for decision in decisions]


async def test_a_decision_is_there_after_the_process_that_made_it(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        async with open_database(tmp_path) as database:
            made = await DecisionStore(database, Clock()).remember(
                "Bash(git *)", "allow", "project", project="/w", agent="demo"
            )
        async with open_database(tmp_path) as database:
            assert await DecisionStore(database, Clock()).all() == [made]
    assert made == Decision(1, "Bash(git *)", "allow", "project", "", "/w", "demo", "2026-01-02T03:04:06.000000Z", None)


async def test_each_scope_holds_where_it_is_meant_to_and_nowhere_else(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        store = DecisionStore(database)
        await store.remember("one", "allow", "session", session_id="s", project="/w", agent="demo")
        await store.remember("two", "allow", "project", session_id="s", project="/w", agent="demo")
        await store.remember("three", "deny", "everywhere", session_id="s", project="/w", agent="demo")
        assert rules(await store.valid("s", "/w", agent="demo")) == ["one", "two", "three"]
        assert rules(await store.valid("s", "/w", agent="another")) == ["two", "three"]
        assert rules(await store.valid("t", "/w", agent="demo")) == ["two", "three"]
        assert rules(await store.valid("s", "/x", agent="demo")) == ["one", "three"]
        assert rules(await store.valid()) == ["three"]


@pytest.mark.parametrize("form", [lambda moment: moment, lambda moment: moment.isoformat()], ids=["time", "text"])
async def test_what_has_expired_counts_no_more_and_goes_with_the_next_one(tmp_path: Path, form: object) -> None:
    assert callable(form)
    end = START + timedelta(hours=1)
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        clock = Clock()
        store = DecisionStore(database, clock)
        await store.remember("short", "allow", "everywhere", expires_at=form(end))
        assert rules(await store.valid(now=form(end - timedelta(microseconds=1)))) == ["short"]
        assert rules(await store.valid(now=form(end))) == []
        clock.now = end
        assert await store.all() == []
        await store.remember("long", "allow", "everywhere")
        left = await database.read(lambda connection: connection.execute("SELECT rule FROM decision").fetchall())
        assert left == [("long",)]


async def test_an_expiry_in_another_zone_is_the_same_moment(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        store = DecisionStore(database, Clock())
        made = await store.remember("r", "allow", "everywhere", expires_at="2026-01-02T05:00:00+01:00")
        assert made.expires_at == "2026-01-02T04:00:00.000000Z"
        with pytest.raises(ValueError, match="zone"):
            await store.remember("r", "allow", "everywhere", expires_at=datetime(2026, 1, 2))  # noqa: DTZ001


async def test_the_last_answer_about_a_rule_counts(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        store = DecisionStore(database)
        await store.remember("r", "allow", "project", project="/w", agent="demo")
        await store.remember("r", "deny", "project", project="/w", agent="another")
        await store.remember("r", "allow", "project", project="/x")
        assert [(found.verdict, found.project) for found in await store.all()] == [("deny", "/w"), ("allow", "/x")]


async def test_a_scope_has_to_name_its_session_or_project(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        store = DecisionStore(database)
        with pytest.raises(ValueError, match="session has to name it"):
            await store.remember("r", "allow", "session", project="/w")
        with pytest.raises(ValueError, match="project has to name it"):
            await store.remember("r", "allow", "project", session_id="s")


async def test_decisions_are_revoked_by_number_by_rule_or_all_and_numbers_are_not_used_again(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        store = DecisionStore(database)
        made = [await store.remember(rule, "allow", "everywhere") for rule in ("a", "b", "c")]
        await store.remember("b", "allow", "project", project="/w")
        assert (await store.revoke(made[2].id), await store.revoke(made[2].id), await store.revoke("b")) == (1, 0, 2)
        assert await store.revoke("no such rule") == 0
        assert rules(await store.all()) == ["a"]
        assert (await store.remember("d", "allow", "everywhere")).id == 5
        assert (await store.revoke_all(), await store.all()) == (2, [])


async def test_what_was_decided_for_a_session_of_an_agent_is_revoked_and_nothing_else(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        store = DecisionStore(database)
        for rule in ("one", "two"):
            await store.remember(rule, "allow", "session", session_id="s", agent="demo")
        await store.remember("three", "allow", "session", session_id="t", agent="demo")
        await store.remember("four", "allow", "session", session_id="s", agent="another")
        await store.remember("five", "allow", "project", session_id="s", project="/w", agent="demo")
        assert await store.revoke_session("s", agent="demo") == 2
        assert rules(await store.all()) == ["three", "four", "five"]


async def test_a_file_from_before_gets_the_new_tables_and_keeps_what_it_has(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        async with Database(file_in(tmp_path), MIGRATIONS[:1]) as before:
            await before.run(lambda connection: create_as_before(connection, "s", "demo", "/w"))
        async with open_database(tmp_path) as database:
            await DecisionStore(database).remember("r", "allow", "everywhere")
            assert rules(await DecisionStore(database).all()) == ["r"]
            assert await SessionStore(database).get("s") is not None
