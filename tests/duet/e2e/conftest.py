"""Every test of the joint agent that asks for a place gets one of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.duet.e2e.editors import Place, missing, place, plain_place


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Place]:
    if words := missing():
        pytest.skip(f"not installed: {words}")
    with place(tmp_path) as made:
        yield made


@pytest.fixture
def at_codex(at: Place) -> Place:
    """A place for what does not depend on the engine: Codex answers, whose CLI starts in half the time."""
    at.environment["ANTIPHON_ROUTE"] = "codex"
    return at


@pytest.fixture
def at_demo(tmp_path: Path) -> Iterator[Place]:
    with plain_place(tmp_path) as made:
        yield made
