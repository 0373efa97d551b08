"""Every shape that the seeds show of an agent is played by a real agent process to real clients: `antiphon run`, and the SDK's."""

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import pytest

from antiphon.client.connect import connect
from antiphon.client.link import Retry
from antiphon.client.terminals import Terminals
from antiphon.errors import AcpError
from antiphon.protocol import v1
from antiphon.protocol.base import encode
from tests import prepared
from tests.limits import limit
from tests.seeds.client_rows import ASKING_ROWS, UPDATE_ROWS
from tests.seeds.ending_rows import ENDING_ROWS, OPENING_ROWS
from tests.seeds.exchange import ROOT
from tests.seeds.table import ClientRow, differences, filled

pytestmark = pytest.mark.slow


class RowSetup:
    """Where a row is played: its file, its log, its directory."""

    def __init__(self, folder: Path, row: ClientRow) -> None:
        self.cwd = folder / "work"
        self.cwd.mkdir()
        (self.cwd / "notes.txt").write_text("one\ntwo\nthree\n", encoding="utf-8")
        self.log, file = folder / "heard.log", folder / "row.json"
        played = {key: asdict(row)[key] for key in ("hello", "new", "plays", "ends")}
        file.write_text(json.dumps(played), encoding="utf-8")
        self.agent = [sys.executable, "-S", "-m", "tests.seeds.player", str(file), str(self.log)]
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(ROOT),
            "ANTIPHON_STATE_DIR": str(folder / "state"),
            "ANTIPHON_CONFIG_DIR": str(folder / "config"),
        }

    def run(self, *words: str) -> "subprocess.CompletedProcess[bytes]":
        given = ["--json", "--agent", " ".join(self.agent), *words, "sing"]
        return prepared.run("run", *given, cwd=self.cwd, env=self.env, timeout=limit())

    @property
    def received(self) -> Counter[str]:
        return Counter(self.log.read_text(encoding="utf-8").splitlines())

    @property
    def answers(self) -> list[Any]:
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line.removeprefix("answer ")) for line in lines if line.startswith("answer ")]


def missing(wanted: Any, found: list[Any], words: dict[str, str]) -> list[Any]:
    """What is wanted and is not among what was found."""
    filled_in = filled(list(wanted), words)
    return [each for each in filled_in if all(differences(each, other) for other in found)]


def plain(value: object) -> Any:
    return msgspec.json.decode(encode(value))


ALL = [*UPDATE_ROWS, *ASKING_ROWS, *OPENING_ROWS, *ENDING_ROWS]
APART = [*ASKING_ROWS, *OPENING_ROWS, *ENDING_ROWS]


def name_of(row: ClientRow) -> str:
    return f"{row.seed}: {row.name}"


@pytest.mark.prove
@pytest.mark.parametrize("row", APART, ids=name_of)
def test_what_an_agent_sends_in_the_words_of_a_seed_is_what_run_makes_of_it(row: ClientRow, tmp_path: Path) -> None:
    setup = RowSetup(tmp_path, row)
    done = setup.run(*row.words)
    err = done.stderr.decode()
    events = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    assert done.returncode == row.status, (err, events)
    assert events and events[-1]["type"] == "result" and events[-1]["exitCode"] == row.status
    assert not missing(row.events, events, {"$CWD": str(setup.cwd)}), events
    assert len(setup.answers) == len(row.answers)
    assert [differences(*pair) for pair in zip(row.answers, setup.answers, strict=True) if differences(*pair)] == []
    assert {method: setup.received[method] for method in row.received} == dict(row.received)
    assert [word for word in row.says if word not in err] == [], err
    assert "Traceback" not in err


def test_all_updates_of_all_seeds_in_one_turn_are_what_run_shows_of_them(tmp_path: Path) -> None:
    whole = ClientRow("all", "all", [], plays=[played for row in UPDATE_ROWS for played in row.plays])
    done = RowSetup(tmp_path, whole).run()
    events = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    lost = {row.name: found for row in UPDATE_ROWS if (found := missing(row.events, events, {}))}
    assert not lost, (lost, events)


@pytest.mark.parametrize("row", ALL, ids=name_of)
async def test_what_an_agent_sends_in_the_words_of_a_seed_is_what_the_sdk_makes_of_it(
    row: ClientRow, tmp_path: Path
) -> None:
    setup = RowSetup(tmp_path, row)
    got: list[Any] = []
    fails = row.status in (1, 7) and "tool_error" not in str(row.ends)
    options = {"cwd": setup.cwd, "env": setup.env, "retry": Retry((0, 0, 0, 0)), "terminals": Terminals()}
    try:
        async with asyncio.timeout(limit()), connect(setup.agent, **options) as agent:  # type: ignore[arg-type]
            session = await agent.new_session(setup.cwd)
            opened = {
                "capabilities": plain(agent.capabilities),
                "auth": plain(list(agent.auth_methods)),
                "modes": plain(session.modes),
                "models": plain(session.models),
                "options": plain(session.config_options),
            }
            assert not differences(row.opens or {}, opened)
            async with session.prompt("sing") as turn:
                got += [plain(update) async for update in turn]
            result = turn.result
    except AcpError:
        assert fails
        return
    assert not fails, result
    end = row.ends[-1]
    assert result.stop_reason.value == end["stopReason"] and isinstance(result.stop_reason, v1.StopReason)
    assert not missing(row.updates, got, {}), got
