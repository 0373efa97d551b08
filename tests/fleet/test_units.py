"""The units for systemd that `antiphon worker unit` and `antiphon serve --fleet … unit` print: what they start is started here."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.programs import FleetPrograms, fleet_programs, overview
from tests.gateway.processes import DEMO
from tests.limits import limit

pytestmark = pytest.mark.slow


def printed(directory: Path, *words: str) -> dict[str, str]:
    """Return the settings of the unit that a command prints."""
    env = {**os.environ, "ANTIPHON_STATE_DIR": str(directory / "state")}
    done = subprocess.run(
        [sys.executable, "-m", "antiphon", *words],
        cwd=directory, env=env, capture_output=True, encoding="utf-8", timeout=limit(), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(re.findall(r"^(\w+)=(.*)$", done.stdout, re.MULTILINE))


def start(unit: dict[str, str]) -> "subprocess.Popen[str]":
    """Start what a unit says as systemd does: in its directory, with little in its environment."""
    command = [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(unit["ExecStart"])]
    env = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    return subprocess.Popen(
        [*command[:4], "--json", *command[4:]],
        cwd=unit["WorkingDirectory"], env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
    )  # fmt: skip


def end(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=limit())
    assert process.returncode == 0, (out, err)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[FleetPrograms]:
    with fleet_programs(tmp_path / "a fleet") as found:
        yield found


def test_the_unit_of_a_worker_starts_it_with_whole_paths(fleet: FleetPrograms) -> None:
    shared = fleet.directory / "sha%red $dir"
    shared.mkdir()
    given = ("--fleet", fleet.server.url, "--name", "one", "--drain", "5s", "--workspace", f"shop={shared.name}")
    unit = printed(fleet.directory, "worker", *given, "--label", "gpu", "unit", "--", *DEMO)
    assert unit["TimeoutStopSec"] == "20" and unit["Restart"] == "on-failure" and unit["KillMode"] == "mixed"
    process = start(unit)
    try:
        assert process.stdout is not None
        about = json.loads(process.stdout.readline())
        assert about["workspaces"] == {"shop": str(shared)} and about["roots"] == [] and about["labels"] == ["gpu"]
        assert (fleet.directory / "state" / "worker").is_dir()
        assert [each.name for each in overview(fleet.server.url).workers] == [about["worker"]]
        end(process)
    finally:
        process.kill()


def test_the_unit_of_a_gateway_in_a_fleet_starts_it(fleet: FleetPrograms) -> None:
    unit = printed(fleet.directory, "serve", "--fleet", fleet.server.url, "--port", "0", "unit")
    assert "--root" not in unit["ExecStart"]
    process = start(unit)
    try:
        assert process.stdout is not None
        about = json.loads(process.stdout.readline())
        assert Path(about["token_file"]) == fleet.directory / "state" / "fleet-gateway" / "token"
        end(process)
    finally:
        process.kill()


def test_the_unit_of_a_worker_without_roots_has_the_directory_where_it_was_printed(tmp_path: Path) -> None:
    unit = printed(tmp_path, "worker", "--fleet", "nats://127.0.0.1:4222", "unit")
    assert unit["ExecStart"].endswith(f"--root {tmp_path} --data {tmp_path}/state/worker")
    assert unit["TimeoutStopSec"] == "75"
