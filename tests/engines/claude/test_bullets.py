"""Every bullet has a test that proves it, and the page shows just that."""

from tests.engines.claude.bullets import BULLETS, CHAPTERS
from tests.engines.claude.proofs import BOOK


def test_every_bullet_is_proved_by_a_test() -> None:
    assert set(BULLETS) - {proof.bullet for proof in BOOK.declared()} == set()


def test_every_bullet_is_in_a_chapter() -> None:
    assert {bullet.partition(".")[0] for bullet in BULLETS} == set(CHAPTERS)


def test_the_page_names_every_bullet_and_the_tests_that_prove_it() -> None:
    assert BOOK.shown() == BOOK.render(BOOK.declared()), "run `make evidence`, read the difference"
