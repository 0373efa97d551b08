"""A fleet day by day: an upgrade with two versions side by side, a backup, deletion everywhere."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import nats
import pytest

from tests.fleet.programs import NEWER, PROGRAM, FleetPrograms, eventually, fleet_programs, overview
from tests.gateway.processes import Gateway, call
from tests.limits import limit

pytestmark = [pytest.mark.slow, pytest.mark.prove]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[FleetPrograms]:
    with fleet_programs(tmp_path / "fleet", {"HOME": str(tmp_path)}) as found:
        yield found


def with_clock(seconds: float) -> tuple[str, ...]:
    """Return a program whose clock differs from that of the machine."""
    patch = f"import time; real = time.time; time.time = lambda: real() + {seconds}"
    return sys.executable, "-c", f"{patch}; from antiphon.cli.main import main; raise SystemExit(main())"


@contextmanager
def opened_session(gateway: Gateway, cwd: Path) -> Iterator[tuple[Any, str]]:
    """A socket and a new session. On a busy machine the gateway may not know a worker yet, or not any more: then another try is made."""
    with ExitStack() as stack:

        def attempt() -> tuple[Any, str] | None:
            opened = stack.enter_context(gateway.open_socket())
            if "result" not in call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={}):
                return None
            answer = call(opened, 1, "session/new", cwd=str(cwd), mcpServers=[])
            return (opened, str(answer["result"]["sessionId"])) if "result" in answer else None

        yield eventually(attempt)


@contextmanager
def loaded_session(gateway: Gateway, cwd: Path, session: str) -> Iterator[tuple[Any, str]]:
    """A socket with a session that is loaded."""
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        answer = call(opened, 1, "session/load", sessionId=session, cwd=str(cwd), mcpServers=[])
        assert "result" in answer, answer
        yield opened, session


def prompted(gateway: Gateway, cwd: Path, text: str, session: str = "") -> str:
    """Send a prompt in a new session, or in one that is loaded, and return its id."""
    with loaded_session(gateway, cwd, session) if session else opened_session(gateway, cwd) as (opened, session):
        done = call(opened, 2, "session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
        assert done["result"]["stopReason"] == "end_turn", done
    return session


def events(file: Path) -> list[bytes]:
    """Return the stored events in the file of a gateway."""
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as opened:
        return [bytes(data) for (data,) in opened.execute("SELECT data FROM event ORDER BY rowid")]


def control(gateway: Gateway, *words: str) -> "subprocess.CompletedProcess[str]":
    data = str(Path(str(gateway.place["token_file"])).parent)
    return subprocess.run(
        [sys.executable, "-m", "antiphon", "serve", *words, "--data", data],
        capture_output=True, encoding="utf-8", timeout=limit(), check=False,
    )  # fmt: skip


@pytest.mark.parametrize("newer", ["workers", "gateway"])
def test_two_neighbouring_versions_run_side_by_side(fleet: FleetPrograms, newer: str) -> None:
    of_workers, of_gateway = (NEWER, PROGRAM) if newer == "workers" else (PROGRAM, NEWER)
    gateway = fleet.gateway("gateway", program=of_gateway)
    first = fleet.worker("one", program=of_workers)
    session = prompted(gateway, fleet.root, "by the first")
    second = fleet.worker("two")
    eventually(lambda: [each.state for each in overview(fleet.server.url).workers] == ["ok", "ok"])
    first.kill()
    eventually(lambda: [each.owner for each in fleet.sessions()] == [second.name])
    assert prompted(gateway, fleet.root, "by the second", session) == session
    third = fleet.worker("three", program=of_workers)
    second.kill()
    eventually(lambda: [each.owner for each in fleet.sessions()] == [third.name])
    assert prompted(gateway, fleet.root, "by the third", session) == session
    other = fleet.gateway("other")
    with other.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        opened.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/load",
                                "params": {"sessionId": session, "cwd": str(fleet.root), "mcpServers": []}}))  # fmt: skip
        shown = ""
        while '"id":1,' not in (frame := str(opened.recv(timeout=limit()))) or '"method"' in frame:
            shown += frame
    assert [shown.count(f"by the {which}") > 0 for which in ("first", "second", "third")] == [True] * 3


def test_clocks_that_are_hours_apart_change_nothing(fleet: FleetPrograms) -> None:
    gateway = fleet.gateway("gateway")
    first = fleet.worker("one", program=with_clock(3600))
    session = prompted(gateway, fleet.root, "an hour ahead")
    second = fleet.worker("two", program=with_clock(-3600))
    first.kill()
    eventually(lambda: [each.owner for each in fleet.sessions()] == [second.name])
    assert prompted(gateway, fleet.root, "an hour behind", session) == session
    third = fleet.worker("three", program=with_clock(3600))
    assert (
        prompted(fleet.gateway("late", program=with_clock(-3600)), fleet.root, "at another gateway", session) == session
    )
    assert [each.owner for each in fleet.sessions()] == [second.name] and third.name != second.name


def test_a_backup_of_a_gateway_has_the_finished_turns_of_all_workers(fleet: FleetPrograms, tmp_path: Path) -> None:
    gateway = fleet.gateway("gateway")
    for name in ("one", "two"):
        fleet.worker(name)
    for word in ("heron", "kingfisher"):
        prompted(gateway, fleet.root, word)
    data = Path(str(gateway.place["token_file"])).parent
    file = next(data.glob("*.sqlite3"))
    eventually(lambda: len([each for each in events(file) if b"turn_ended" in each or b"stopReason" in each]) >= 2)
    target = tmp_path / "copy.sqlite3"
    done = control(gateway, "backup", str(target))
    assert done.returncode == 0, done.stderr
    text = b"".join(events(target))
    assert b"heron" in text and b"kingfisher" in text


def test_a_session_that_is_deleted_at_one_gateway_is_gone_everywhere(fleet: FleetPrograms) -> None:
    first, second = fleet.gateway("first"), fleet.gateway("second")
    fleet.worker("one")
    session = prompted(first, fleet.root, "a secret word")
    files = [next(Path(str(each.place["token_file"])).parent.glob("*.sqlite3")) for each in (first, second)]
    eventually(lambda: all(b"a secret word" in b"".join(events(file)) for file in files))
    with second.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        assert "result" in call(opened, 1, "session/delete", sessionId=session)
    eventually(lambda: not any(events(file) for file in files))
    assert fleet.sessions() == ()
    assert overview(fleet.server.url).broker.bytes < 2000, "the broker has nothing but the records of deleted sessions"


async def test_the_broker_keeps_events_as_long_as_the_worker_says_and_rows_as_long_as_the_session(
    fleet: FleetPrograms,
) -> None:
    gateway = await asyncio.to_thread(fleet.gateway, "gateway")
    await asyncio.to_thread(fleet.worker, "one", "--keep-events", "2h")
    await asyncio.to_thread(prompted, gateway, fleet.root, "hello")
    client = await nats.connect(fleet.server.url)
    try:
        event = await client.jetstream().get_last_msg("ACP_SESSIONS", "acp.s.*.ev")
        row = await client.jetstream().get_last_msg("ACP_SESSIONS", "acp.s.*.row")
    finally:
        await client.close()
    assert event.headers is not None and event.headers["Nats-TTL"] == "7200s"
    assert "Nats-TTL" not in (row.headers or {})


def test_events_are_kept_for_an_hour_at_least(fleet: FleetPrograms) -> None:
    done = subprocess.run(
        [*PROGRAM, "worker", "--fleet", fleet.server.url, "--keep-events", "5m"],
        capture_output=True, encoding="utf-8", timeout=limit(), check=False,
    )  # fmt: skip
    assert done.returncode == 2 and "is too short: gateways need time to copy events" in done.stderr
