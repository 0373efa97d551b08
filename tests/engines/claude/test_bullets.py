"""Every bullet has a test that proves it, and the page shows just that."""

import importlib
from pathlib import Path

from tests.engines.claude import proofs
from tests.engines.claude.bullets import BULLETS, CHAPTERS

E2E = Path(__file__).with_name("e2e")


def declared() -> list[proofs.Proof]:
    names = sorted(path.stem for path in E2E.glob("test_*.py"))
    return proofs.declared(importlib.import_module(f"tests.engines.claude.e2e.{name}") for name in names)


def test_every_bullet_is_proved_by_a_test() -> None:
    assert set(BULLETS) - {proof.bullet for proof in declared()} == set()


def test_every_bullet_is_in_a_chapter() -> None:
    assert {bullet.partition(".")[0] for bullet in BULLETS} == set(CHAPTERS)


def test_the_page_names_every_bullet_and_the_tests_that_prove_it() -> None:
    page = proofs.on_page(proofs.NAME, proofs.PAGE.read_text(encoding="utf-8"))
    assert page == proofs.render(declared()), "run `make engines`, read the difference"
