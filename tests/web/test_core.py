"""The core of the page, without a browser: its scripts run in Node, alone and against a real gateway."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.gateway.processes import running
from tests.interop.programs import NODE
from tests.limits import limit

pytestmark = pytest.mark.slow  # starts a program of others

SCRIPTS = Path(__file__).with_name("js")


def run_tests(*names: str, env: Mapping[str, str] | None = None) -> None:
    """Run the tests of some scripts, and fail with what Node reports."""
    command = [str(NODE), "--test", "--test-reporter=spec", *(str(SCRIPTS / f"{name}.test.mjs") for name in names)]
    given = {**os.environ, "FORCE_COLOR": "0", "TEST_LIMIT": str(limit()), **(env or {})}
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=10 * limit(), check=False, env=given
    )
    if done.returncode:
        pytest.fail(
            f"{done.stdout.partition('failing tests:')[2] or done.stdout}\n{done.stderr}"[:20_000], pytrace=False
        )


def test_every_script_of_tests_is_run() -> None:
    assert {path.name.removesuffix(".test.mjs") for path in SCRIPTS.glob("*.test.mjs")} == {*ALONE, "gateway"}


ALONE = ("presentation", "transcript", "connection", "session", "app")


def test_the_core_of_the_page_does_what_it_should() -> None:
    run_tests(*ALONE)


@pytest.mark.prove
def test_the_core_of_the_page_follows_sessions_of_a_gateway_over_a_network_that_fails(tmp_path: Path) -> None:
    with running(tmp_path, "--limit", "prompts-per-minute=1000") as gateway:
        watching = gateway.admin(action="create token", name="watcher", role="watch")
        place = {"GATEWAY_URL": gateway.place["url"], "GATEWAY_TOKEN": gateway.token}
        run_tests("gateway", env={**place, "WATCH_TOKEN": watching["secret"], "WORKSPACE": str(tmp_path / "root")})
