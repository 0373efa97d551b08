"""Every test of the engine that asks for a place gets one of its own, once for each Codex that it is to run on."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.codex.place import Place, place
from tests.engines.codex.versions import PYPI, program
from tests.engines.proofs import STAND_IN, on_version, proof_of

STANDING_IN = Path(__file__).with_name("stand_in.py")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "version" in metafunc.fixturenames:
        versions = proof_of(metafunc.function)[1] or (PYPI,)
        metafunc.parametrize("version", [on_version(version, PYPI) for version in versions])


@pytest.fixture
def at(version: str, tmp_path: Path) -> Iterator[Place]:
    found = _stand_in(tmp_path / "stand-in") if version == STAND_IN else program(version)
    if found is None:
        pytest.skip(f"Codex {version} is not installed")
    with place(tmp_path, found, version) as made:
        yield made


def _stand_in(program: Path) -> Path:
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STANDING_IN}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return program
