"""The examples run, and the README shows them as they are."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_conversation_shows_every_frame_and_what_was_said() -> None:
    done = subprocess.run(
        [sys.executable, "examples/conversation.py", "one", "two"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=30,
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert sum(line.startswith("client → agent") for line in lines) == 3
    assert lines[-2:] == ["the agent said: one two", "and stopped because: end_turn"]


@pytest.mark.parametrize("name", ["minimal_agent.py", "conversation.py"])
def test_the_readme_shows_the_example_as_it_is(name: str) -> None:
    code = (ROOT / "examples" / name).read_text(encoding="utf-8")
    assert f"```python\n{code}```" in README
