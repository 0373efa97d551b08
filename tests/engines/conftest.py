"""Every test of an engine has a workspace, a place to keep sessions and, if it wants one, a place with a real CLI of its own.

What the end-to-end tests prove is kept, and written into the pages about the engines if that was asked for.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.places import Place
from tests.engines.proofs import Recorder
from tests.engines.subjects import SUBJECTS, engine_of, parameters, place_for


def pytest_configure(config: pytest.Config) -> None:
    for subject in SUBJECTS.values():
        config.pluginmanager.register(Recorder(subject.book))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "at" in metafunc.fixturenames:
        engine = engine_of(metafunc.definition.path)
        engines = [engine] if engine else list(SUBJECTS)
        metafunc.parametrize(("engine", "version"), parameters(metafunc.function, engines))


@pytest.fixture
def at(engine: str, version: str, tmp_path: Path) -> Iterator[Place]:
    with place_for(engine, version, tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path / "state"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    place = tmp_path / "workspace"
    place.mkdir()
    (place / "README.md").write_text("# A place to sing\n\nCall and response.\n", encoding="utf-8")
    return place
