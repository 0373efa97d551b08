"""A home that Antiphon 0.1.0 wrote before its tables had versions 4 and 5: everything in it still opens.

`old_home/` holds what that program wrote: its database as rows, settings, a set-up record and a recording, with `ROOT` for
the directory they were in. The CLIs' own files of its joint session are not among them, as on a machine that has removed them.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import antiphon
from antiphon import v1
from tests.duet.e2e.scenarios import folded
from tests.limits import limit

pytestmark = pytest.mark.slow  # each runs the program a few times

KEPT = Path(__file__).parent / "old_home"
VERSION = 3
"""How many migrations its database has seen."""
SHOWN = json.loads((KEPT / "shown.json").read_text(encoding="utf-8"))


class Home:
    """The old home in a directory of the test, and the program of today in it."""

    def __init__(self, root: Path) -> None:
        self.root, self.work, self.state = root, root / "project", root / "state"
        self.database = self.state / "antiphon.sqlite3"
        self.settings = root / "home" / ".config" / "zed" / "settings.json"
        self.recording = self.state / "recordings" / "demo.jsonl"
        own = {name: value for name, value in os.environ.items() if not name.startswith("ANTIPHON_")}
        self.environment = {
            **own,
            "HOME": str(root / "home"),
            "ANTIPHON_STATE_DIR": str(self.state),
            "ANTIPHON_CONFIG_DIR": str(root / "config"),
            "ANTIPHON_AUTO_RESUME": "false",
        }
        self._write(root / "config" / "config.toml", "config.toml")
        self._write(self.work / ".antiphon" / "config.toml", "project.toml")
        self._write(self.settings, "zed-settings.json")
        self._write(self.recording, "recording.jsonl")
        (self.work / "song.txt").write_text("do\nRE\nmi\n", encoding="utf-8")
        # The record knows the settings by their digest, which depends on where they are.
        record = json.loads(self._text("setup.json"))
        record["after"] = hashlib.sha256(self.settings.read_bytes()).hexdigest()
        (self.state / "setup").mkdir()
        (self.state / "setup" / "01794906396000000000-2bcb2df8.json").write_text(json.dumps(record), encoding="utf-8")
        self._fill()

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of today's program in the project."""
        return subprocess.run(
            [sys.executable, "-P", "-m", "antiphon", *words],
            cwd=self.work, env=self.environment, capture_output=True, encoding="utf-8", timeout=limit(60),
            stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def json(self, *words: str) -> list[Any]:
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    def rows(self, name: Path, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(name)) as connection:
            return connection.execute(query).fetchall()

    def _text(self, name: str) -> str:
        return (KEPT / name).read_text(encoding="utf-8").replace("ROOT", str(self.root))

    def _write(self, path: Path, name: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._text(name), encoding="utf-8")

    def _fill(self) -> None:
        with closing(sqlite3.connect(self.database)) as connection:
            for line in self._text("database.jsonl").splitlines():
                match json.loads(line):
                    case {"version": version}:
                        connection.execute(f"PRAGMA user_version = {version}")
                    case {"sql": statement}:
                        connection.execute(statement)
                    case {"table": table, "row": row}:
                        values = [one["blob"].encode() if isinstance(one, dict) else one for one in row]
                        connection.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", values)
                    case other:
                        raise ValueError(f"no row, statement or version: {other}")
            connection.commit()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_it_is_brought_up_to_date_once_and_a_copy_is_kept(home: Home) -> None:
    tables = ("session", "history", "decision", "audit", "named_session", "trusted_project", "conversation")
    before = {table: home.rows(home.database, f"SELECT * FROM {table}") for table in tables}
    home.run("sessions", "list")
    copy = home.state / f"antiphon-version-{VERSION}.sqlite3"
    assert home.rows(home.database, "PRAGMA user_version") > [(VERSION,)] == home.rows(copy, "PRAGMA user_version")
    assert {table: home.rows(copy, f"SELECT * FROM {table}") for table in tables} == before
    assert copy.stat().st_mode & 0o777 == 0o600
    made = copy.stat().st_mtime_ns
    home.run("sessions", "list")
    assert [path.name for path in home.state.glob("antiphon*")].count(copy.name) == 1
    assert copy.stat().st_mtime_ns == made


def test_its_sessions_are_listed_shown_and_exported(home: Home) -> None:
    listed = {one["id"]: one for one in home.json("sessions", "list", "--json")}
    assert listed[SHOWN["joint"]]["title"] == "sing the song" and listed[SHOWN["joint"]]["turns"] == 3
    assert listed[SHOWN["joint"]]["engines"] == ["claude", "codex"] and listed[SHOWN["joint"]]["route"] == "duet"
    assert listed[SHOWN["demo"]]["title"] == "hello, demo"
    shown = home.run("sessions", "show", SHOWN["joint"]).stdout
    for kind, text in SHOWN["joint_lines"]:
        if kind not in ("user", "agent"):
            continue  # thoughts are left out, calls have another form
        for line in text.replace("**", "").split("\n"):
            assert line.strip() in shown
    assert "It is higher." in home.run("sessions", "export", SHOWN["joint"], "--format", "markdown").stdout


async def test_a_joint_session_is_loaded_as_it_was_and_goes_on(home: Home) -> None:
    command = [sys.executable, "-P", "-m", "antiphon", "agent"]
    async with antiphon.connect(command, env=home.environment, cwd=home.work) as agent:
        session = await agent.load_session(SHOWN["demo"], home.work)
        assert [[line.kind, line.text.replace(str(home.root), "ROOT")] for line in folded(session.transcript)] == SHOWN[
            "demo_lines"
        ]
        assert session.modes is not None and session.modes.current_mode_id == "plan"
        result = await session.prompt("/help")
        assert result.stop_reason is v1.StopReason.END_TURN


def test_a_session_with_a_name_goes_on(home: Home) -> None:
    done = home.run("run", "--agent", "demo", "--session", "choir", "--json", "hello again")
    assert done.returncode == 0
    assert any("a5111a8c88307fcd4e97fd87247cdb40" in line for line in done.stdout.splitlines())


def test_what_was_decided_and_trusted_still_holds(home: Home) -> None:
    assert "Bash(touch la.txt)" in home.run("policy", "list").stdout
    assert str(home.work) in home.run("policy", "trust", "--list").stdout.split()
    assert "The rule `Bash(make test)` allows it" in home.run("policy", "explain", "Bash", "make test").stdout
    assert home.run("policy", "log").stdout.count("\n") == 6


def test_what_was_set_up_is_taken_back(home: Home) -> None:
    done = home.run("setup", "zed", "--undo", "-y")
    assert done.returncode == 0, done.stderr
    assert home.settings.read_text(encoding="utf-8") == '{\n  // mine\n  "theme": "One Dark"\n}\n'


def test_a_recording_is_read_and_replayed(home: Home) -> None:
    assert "sing again" in home.run("inspect", str(home.recording)).stdout
    replay = f"{sys.executable} -P -m antiphon replay {home.recording}"
    done = home.run("run", "--agent", replay, "sing again")
    assert done.returncode == 0 and "I am a demo without a model" in done.stdout


@pytest.mark.parametrize("words", [["sessions", "list"], ["policy", "list"], ["run", "--agent", "demo", "hello"]])
def test_a_file_of_a_newer_program_is_left_alone_and_reported(home: Home, words: list[str]) -> None:
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("PRAGMA user_version = 99")
    shutil.copy(home.database, home.root / "as-it-was")
    done = home.run(*words)
    assert "was written by a newer Antiphon" in done.stderr and "update this Antiphon" in done.stderr
    assert home.database.read_bytes() == (home.root / "as-it-was").read_bytes()
