"""A recording instead of an agent: no model, no key, no network, and the same messages every time."""

import sys
from pathlib import Path

import pytest

from antiphon import sync

RECORDING = Path(__file__).with_name("greeting.jsonl")


@pytest.fixture
def agent() -> list[str]:
    """The command of an agent that sends what was recorded, without the pauses."""
    return [sys.executable, "-m", "antiphon", "replay", "--speed", "max", str(RECORDING)]


def test_our_client_greets(agent: list[str], tmp_path: Path) -> None:
    with sync.connect(agent) as connection:
        session = connection.new_session(tmp_path)
        assert session.prompt("hello").text() == f"Good morning from {tmp_path}."
