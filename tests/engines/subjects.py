"""The engines that drive a real CLI, as the end-to-end tests see them: what has to be proved of each, its versions and its places."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import pytest

from tests.engines.claude import place as claude_places
from tests.engines.claude import versions as claude_versions
from tests.engines.claude.proofs import BOOK as CLAUDE_BOOK
from tests.engines.codex import place as codex_places
from tests.engines.codex import versions as codex_versions
from tests.engines.codex.bullets import BOOK as CODEX_BOOK
from tests.engines.places import Place
from tests.engines.proofs import STAND_IN, ProofTable, claims_of, on_version

__all__ = ["SUBJECTS", "engine_of", "on_versions", "parameters", "place_for", "proves"]

F = TypeVar("F", bound=Callable[..., Any])


class Subject(NamedTuple):
    """An engine under test."""

    book: ProofTable
    versions: tuple[str, ...]
    """All versions of its CLI that are tested, the usual one first."""
    program: Callable[[str], Path | None]
    place: Callable[[Path, Path, str], AbstractContextManager[Place]]


SUBJECTS: Final = {
    "claude": Subject(CLAUDE_BOOK, claude_versions.BOTH, claude_versions.program, claude_places.place),
    "codex": Subject(CODEX_BOOK, codex_versions.BOTH, codex_versions.program, codex_places.place),
}


def proves(
    *bullets: str,
    claude: Iterable[str] = (),
    codex: Iterable[str] = (),
    every_version: bool = True,
    on: Iterable[str] = (),
) -> Callable[[F], F]:
    """Say what a test proves of both engines, and what of one of them besides. It runs once on each version, or `on` what is named."""
    on = tuple(on)
    own = {"claude": tuple(claude), "codex": tuple(codex)}

    def mark(test: F) -> F:
        for name, subject in SUBJECTS.items():
            test = subject.book.proves(*bullets, *own[name], on=on or (subject.versions if every_version else ()))(test)
        return test

    return mark


def on_versions(test: F) -> F:
    """Run a test on every version of both engines, though it proves nothing."""
    return proves()(test)


def engine_of(path: Path) -> str:
    """Return the engine that a file of tests is about; empty if it is about both."""
    return next((name for name in SUBJECTS if name in path.parts), "")


def parameters(test: object, engines: Iterable[str]) -> list[Any]:
    """Return the pairs of engine and version that a test runs on. What is no usual version runs in `make prove`."""
    found = []
    for engine in engines:
        book = SUBJECTS[engine].book
        claim = claims_of(test).get(engine)
        for version in (claim.versions if claim is not None else ()) or (book.usual,):
            marks = on_version(version, book.usual).marks
            found.append(pytest.param(engine, version, marks=marks, id=f"{engine}-{version}"))
    return found


@contextmanager
def place_for(engine: str, version: str, path: Path) -> Iterator[Place]:
    """A place of the test's own with this CLI, or with what stands in for it. Nothing is left there when the block is."""
    subject = SUBJECTS[engine]
    found = _stand_in(engine, path / "stand-in") if version == STAND_IN else subject.program(version)
    if found is None:
        pytest.skip(f"{engine} {version} is not installed")
    with subject.place(path, found, version) as made:
        yield made


def _stand_in(engine: str, program: Path) -> Path:
    script = Path(__file__).parent / engine / "stand_in.py"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return program
