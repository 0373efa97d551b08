"""Which test proves which bullet on which Claude Code, and the table of that in `docs/engines/claude.md`."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import pytest

from tests.engines.claude.bullets import BULLETS, CHAPTERS
from tests.engines.claude.versions import NEW
from tests.interop.table import REWRITE, on_page, put

__all__ = [
    "NAME",
    "PAGE",
    "REWRITE",
    "STAND_IN",
    "Proof",
    "declared",
    "on_page",
    "on_versions",
    "proof_of",
    "proves",
    "put",
    "render",
]

ROOT: Final = Path(__file__).resolve().parents[3]
PAGE: Final = ROOT / "docs" / "engines" / "claude.md"
NAME: Final = "proved"

STAND_IN: Final = "stand-in"
"""Instead of a version: a program that says what no version of today can be brought to say."""

F = TypeVar("F", bound=Callable[..., Any])


class Proof(NamedTuple):
    """A test proves a bullet on a version."""

    bullet: str
    test: str
    version: str


def proves(*bullets: str, on: Iterable[str] = (NEW,)) -> Callable[[F], F]:
    """Say what a test proves, on which versions. It runs once on each."""
    if unknown := [bullet for bullet in bullets if bullet not in BULLETS]:
        raise pytest.UsageError(f"there is no bullet {unknown}")

    def mark(test: F) -> F:
        test.__proves__ = (bullets, tuple(on))  # type: ignore[attr-defined]  # a function takes any attribute
        marked: F = pytest.mark.slow(test)
        return marked

    return mark


def on_versions(*versions: str) -> Callable[[F], F]:
    """Run a test on these versions, though it proves nothing."""
    return proves(on=versions)


def proof_of(test: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a test says that it proves, and on which versions; nothing if it says nothing."""
    found: tuple[tuple[str, ...], tuple[str, ...]] = getattr(test, "__proves__", ((), ()))
    return found


def declared(modules: Iterable[Any]) -> list[Proof]:
    """All that the tests of these modules say that they prove."""
    proofs = []
    for module in modules:
        for name, test in vars(module).items():
            bullets, versions = proof_of(test)
            proofs += [
                Proof(bullet, f"{place_of(module.__file__)}::{name}", on) for bullet in bullets for on in versions
            ]
    return proofs


def place_of(file: str) -> str:
    return Path(file).resolve().relative_to(ROOT).as_posix()


def render(proofs: Iterable[Proof]) -> str:
    """A table for each chapter, a line for each bullet and test."""
    versions: dict[tuple[str, str], list[str]] = {}
    for bullet, test, version in sorted(set(proofs), reverse=True):  # the newest version first
        versions.setdefault((bullet, test), []).append(version)
    parts = []
    for chapter, title in CHAPTERS.items():
        lines = [f"### {title}", "", "| | what must work | proved by | on |", "| --- | --- | --- | --- |"]
        for bullet, sentence in BULLETS.items():
            if bullet.partition(".")[0] == chapter:
                tests = sorted(test for each, test in versions if each == bullet)
                lines += [
                    f"| {bullet} | {sentence if place == 0 else ''} | {_link(test)} | {', '.join(versions[bullet, test])} |"
                    for place, test in enumerate(tests)
                ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _link(test: str) -> str:
    file, _, name = test.partition("::")
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../../{file})"
