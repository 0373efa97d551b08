"""Our own agents, ready to be checked: each with the real programs that it drives and models that play what the prompts say."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from antiphon.conformance.prompts import DEMO, Prompts
from tests.conformance.own import words
from tests.duet.e2e import editors as joint_places
from tests.engines.claude import place as claude_places
from tests.engines.claude import versions as claude_versions
from tests.engines.claude.model.__main__ import played as claude_played
from tests.engines.codex import place as codex_places
from tests.engines.codex import versions as codex_versions
from tests.engines.codex.model.__main__ import played as codex_played
from tests.engines.places import Ground, agent_command, kept_clean

__all__ = ["AGENTS", "Own"]

ASKING: Final = 'model_provider = "choir"\napproval_policy = "on-request"\nsandbox_mode = "read-only"'
"""Codex asks before it edits, as a user who wants to be asked has it."""

BOTH: Final = '[duet]\nroute = "duet"\n'
"""The joint agent lets both engines answer every prompt, which is the most that it does."""


class Own(NamedTuple):
    """One of them. What its models were asked is in `asked`."""

    at: Ground
    prompts: Prompts
    auth: str
    asked: tuple[list[Any], ...] = ()


@contextmanager
def _demo(path: Path) -> Iterator[Own]:
    with kept_clean(Ground(path, agent_command("demo"))) as at:
        yield Own(at, DEMO, "demo")


@contextmanager
def _joint_demo(path: Path) -> Iterator[Own]:
    with joint_places.plain_place(path) as at:
        yield Own(at, DEMO, "demo")


@contextmanager
def _claude(path: Path) -> Iterator[Own]:
    program = claude_versions.program(claude_versions.NEW)
    if program is None:
        pytest.skip(f"Claude Code {claude_versions.NEW} is not installed")
    with claude_places.place(path, program, claude_versions.NEW) as at:
        _plays_claude(at)
        yield Own(at, words.CLAUDE, "api-key", (at.model.asked,))


@contextmanager
def _codex(path: Path) -> Iterator[Own]:
    program = codex_versions.program(codex_versions.PYPI)
    if program is None:
        pytest.skip(f"Codex {codex_versions.PYPI} is not installed")
    with codex_places.place(path, program, codex_versions.PYPI) as at:
        _plays_codex(at)
        yield Own(at, words.CODEX, "api-key", (at.model.asked,))


@contextmanager
def _joint(path: Path) -> Iterator[Own]:
    if missing := joint_places.missing():
        pytest.skip(f"not installed: {missing}")
    with joint_places.place(path) as at:
        _plays_claude(at.claude)
        _plays_codex(at.codex)
        at.configure(BOTH)
        yield Own(at, words.JOINT, "api-key", (at.claude.model.asked, at.codex.model.asked))


def _plays_claude(at: claude_places.Place) -> None:
    at.model.choose = partial(claude_played, script=words.marked("claude"))


def _plays_codex(at: codex_places.Place) -> None:
    at.settings(top=ASKING)
    at.environment["OPENAI_API_KEY"] = codex_places.KEY  # to sign in by
    at.model.choose = partial(codex_played, script=words.marked("codex"))


AGENTS: Final[dict[str, Callable[[Path], AbstractContextManager[Own]]]] = {
    "demo": _demo,
    "joint-demo": _joint_demo,
    "claude": _claude,
    "codex": _codex,
    "joint": _joint,
}
"""Name → what makes it in a folder and ends all of it."""
