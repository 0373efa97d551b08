"""The scripts of the page have types, in comments, and the type checker finds nothing wrong with them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.limits import limit

pytestmark = pytest.mark.slow  # starts a program of others

HERE = Path(__file__).parent
CHECKER = HERE / "node_modules" / ".bin" / "tsc"


@pytest.mark.skipif(not CHECKER.exists(), reason="npm has not installed the type checker: `make test` does")
def test_the_scripts_of_the_page_have_no_wrong_types() -> None:
    command = [str(CHECKER), "--project", str(HERE), "--pretty", "false"]
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}  # Node is in the environment
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", timeout=limit(), check=False, cwd=HERE, env=env
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
