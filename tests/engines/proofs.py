"""Which test proves which bullet on which version of a program, and the tables of that in the page about its engine."""

import importlib
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import pytest
from _pytest.mark import ParameterSet

from tests.interop.table import REWRITE, on_page, put

__all__ = ["STAND_IN", "Claim", "Proof", "ProofTable", "Recorder", "claims_of", "on_version"]

ROOT: Final = Path(__file__).resolve().parents[2]
NAME: Final = "proved"
"""The markers in the page."""

STAND_IN: Final = "stand-in"
"""Instead of a version: a program that says what no version of today can be brought to say."""

F = TypeVar("F", bound=Callable[..., Any])


class Proof(NamedTuple):
    """A test proves a bullet on a version."""

    bullet: str
    test: str
    version: str


class Claim(NamedTuple):
    """What a test says that it proves of one engine, and on which versions of its CLI."""

    bullets: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()


def claims_of(test: object) -> dict[str, Claim]:
    """Return what a test says that it proves: engine → claim."""
    found: dict[str, Claim] = getattr(test, "__proves__", {})
    return found


def on_version(version: str, usual: str) -> ParameterSet:
    """Return the parameter for a test on a version: slow if it starts a real CLI, and other versions than the usual one run in `make prove`."""
    if version == STAND_IN:
        return pytest.param(version)
    return pytest.param(version, marks=pytest.mark.slow if version == usual else (pytest.mark.slow, pytest.mark.prove))


class ProofTable:
    """What has to be proved of one engine. `usual` is the version that a test runs on unless it says otherwise."""

    def __init__(self, engine: str, bullets: Mapping[str, str], chapters: Mapping[str, str], usual: str) -> None:
        self.engine = engine
        self.page = ROOT / "docs" / "evidence" / f"{engine}.md"
        self.bullets = bullets
        self.chapters = chapters
        self.usual = usual

    def proves(self, *bullets: str, on: Iterable[str] = ()) -> Callable[[F], F]:
        """Say what a test proves, on which versions. It runs once on each."""
        if unknown := [bullet for bullet in bullets if bullet not in self.bullets]:
            raise pytest.UsageError(f"there is no bullet {unknown}")
        versions = tuple(on) or (self.usual,)

        def mark(test: F) -> F:
            claims = {**claims_of(test), self.engine: Claim(bullets, versions)}
            test.__proves__ = claims  # type: ignore[attr-defined]  # a function takes any attribute
            marked: F = pytest.mark.slow(test)
            return marked

        return mark

    def on_versions(self, *versions: str) -> Callable[[F], F]:
        """Run a test on these versions, though it proves nothing."""
        return self.proves(on=versions)

    @property
    def folders(self) -> tuple[str, str]:
        """The packages of its end-to-end tests: those that it shares with the other engines, and its own."""
        return "tests.engines.e2e", f"tests.engines.{self.engine}.e2e"

    def declared(self) -> list[Proof]:
        """Return all that the end-to-end tests say that they prove of this engine."""
        proofs = []
        names = [f"{folder}.{path.stem}" for folder in self.folders for path in _tests_in(folder)]
        for module in map(importlib.import_module, names):
            for name, test in vars(module).items():
                bullets, versions = claims_of(test).get(self.engine, Claim())
                place = f"{place_of(str(module.__file__))}::{name}"
                proofs += [Proof(bullet, place, version) for bullet in bullets for version in versions]
        return proofs

    def render(self, proofs: Iterable[Proof]) -> str:
        """A table for each chapter, a line for each bullet and test."""
        versions: dict[tuple[str, str], list[str]] = {}
        for bullet, test, version in sorted(set(proofs), reverse=True):  # the newest version first
            versions.setdefault((bullet, test), []).append(version)
        parts = []
        for chapter, title in self.chapters.items():
            lines = [f"### {title}", "", "| | what must work | proved by | on |", "| --- | --- | --- | --- |"]
            for bullet, sentence in self.bullets.items():
                if bullet.partition(".")[0] == chapter:
                    tests = sorted(test for each, test in versions if each == bullet)
                    lines += [
                        f"| {bullet} | {sentence if place == 0 else ''} | {_link(test)} | {', '.join(versions[bullet, test])} |"
                        for place, test in enumerate(tests)
                    ]
            parts.append("\n".join(lines))
        return "\n\n".join(parts)

    def shown(self) -> str:
        """The tables as the page has them."""
        return on_page(NAME, self.page.read_text(encoding="utf-8"))

    def write(self, proofs: Iterable[Proof]) -> None:
        """Put the tables into the page."""
        put(self.page, NAME, self.render(proofs))


def _tests_in(folder: str) -> list[Path]:
    return sorted(ROOT.joinpath(*folder.split(".")).glob("test_*.py"))


def place_of(file: str) -> str:
    return Path(file).resolve().relative_to(ROOT).as_posix()


def _link(test: str) -> str:
    file, _, name = test.partition("::")
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../../{file})"


class Recorder:
    """Keeps what was proved, and writes it into the page if that was asked for. The same whether one process runs the tests or several."""

    def __init__(self, book: ProofTable) -> None:
        self._book = book
        self._folders = tuple(f"{folder.replace('.', '/')}/" for folder in book.folders)
        self._property = f"proved of {book.page.stem}"
        self._proved: list[Proof] = []
        self._failed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "call" and isinstance(item, pytest.Function) and self._is_ours(item.nodeid):
            params = item.callspec.params if hasattr(item, "callspec") else {}
            is_shown = params.get("engine", self._book.engine) == self._book.engine
            bullets = claims_of(item.function).get(self._book.engine, Claim()).bullets if is_shown else ()
            version = params["version"] if bullets else ""
            test = item.nodeid.partition("[")[0]
            report.user_properties += [(self._property, [bullet, test, version]) for bullet in bullets]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not self._is_ours(report.nodeid):
            return
        if report.failed:
            self._failed.append(report.nodeid)
        elif report.when == "call" and report.passed:
            found = [value for name, value in report.user_properties if name == self._property]
            self._proved += [Proof(*map(str, each)) for each in found]  # type: ignore[call-overload]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not REWRITE or hasattr(session.config, "workerinput"):
            return
        missing = set(self._book.bullets) - {proof.bullet for proof in self._proved}
        if not self._failed and not missing:
            self._book.write(self._proved)
            return
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            why = f"not proved {sorted(missing)}, failed {self._failed}"
            reporter.write_line(f"{self._book.page.name} stays as it is: {why}")

    def _is_ours(self, nodeid: str) -> bool:
        return nodeid.startswith(self._folders)
