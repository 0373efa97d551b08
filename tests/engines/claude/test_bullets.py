"""Every bullet has a test that proves it, and the page shows just that."""

import importlib
from pathlib import Path

from tests.engines.claude.bullets import BULLETS, CHAPTERS
from tests.engines.claude.proofs import BOOK
from tests.engines.proofs import Proof

E2E = Path(__file__).with_name("e2e")


def declared() -> list[Proof]:
    names = sorted(path.stem for path in E2E.glob("test_*.py"))
    return BOOK.declared(importlib.import_module(f"tests.engines.claude.e2e.{name}") for name in names)


def test_every_bullet_is_proved_by_a_test() -> None:
    assert set(BULLETS) - {proof.bullet for proof in declared()} == set()


def test_every_bullet_is_in_a_chapter() -> None:
    assert {bullet.partition(".")[0] for bullet in BULLETS} == set(CHAPTERS)


def test_the_page_names_every_bullet_and_the_tests_that_prove_it() -> None:
    assert BOOK.shown() == BOOK.render(declared()), "run `make evidence`, read the difference"
