"""A session is meant by any beginning of its id that only one has, wherever an id can be given."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.client.agent import SHORTEST, shortened
from tests import prepared
from tests.cli.histories import asked, write
from tests.cli.program import Done, Place
from tests.limits import limit

pytestmark = pytest.mark.slow

NEAR = "0123456789abcdef0123456789abcd"
IDS = (f"{NEAR}ef", f"{NEAR}e0", "0123456700000000000000000000000f", "f" * 32, "1" * 32)
"""Some begin alike for a long way, one is digits alone."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    for name in ("ANTIPHON_STATE_DIR", "ANTIPHON_CONFIG_DIR"):
        monkeypatch.setenv(name, made.env[name])
    for id in IDS:
        write(id, str(made.cwd), [asked(f"the song {id}")], title=f"Song {id}")
    return made


def antiphon(place: Place, *words: str) -> Done:
    done = prepared.run(*words, cwd=place.cwd, env=place.env, timeout=limit())
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


WAYS: dict[str, Callable[[Place, str], Done]] = {
    "run --resume": lambda place, id: antiphon(place, "run", "--agent", "antiphon", "--json", "--resume", id, "x"),
    "run --session": lambda place, id: antiphon(place, "run", "--agent", "antiphon", "--json", "--session", id, "x"),
    "sessions show": lambda place, id: antiphon(place, "sessions", "show", id),
    "sessions export": lambda place, id: antiphon(place, "sessions", "export", id, "--format", "json"),
    "sessions delete": lambda place, id: antiphon(place, "sessions", "delete", "--yes", id),
}


def opens(place: Place, way: str, word: str, id: str) -> bool:
    """Whether the session is the one that was meant."""
    done = WAYS[way](place, word)
    assert done.status == 0, done
    match way:
        case "run --resume" | "run --session":
            return bool(done.result["sessionId"] == id)
        case "sessions delete":
            left = antiphon(place, "sessions", "--json").out
            return id not in left and left.count("\n") == len(IDS) - 1
        case _:
            return [each for each in IDS if f"the song {each}" in done.out] == [id]


@pytest.mark.parametrize("way", WAYS)
def test_a_beginning_that_only_one_has_is_enough(place: Place, way: str) -> None:
    shown = shortened(list(IDS))
    wanted = [(shown[IDS[0]], IDS[0]), (IDS[3][:8], IDS[3]), (IDS[4][:9], IDS[4]), (IDS[1], IDS[1])]
    for word, id in wanted[:1] if way == "sessions delete" else wanted:
        assert opens(place, way, word, id), (way, word)


@pytest.mark.parametrize("way", WAYS)
def test_a_beginning_of_several_is_an_error_that_names_them(place: Place, way: str) -> None:
    done = WAYS[way](place, NEAR)
    assert done.status != 0 and f"`{NEAR}` is the beginning of 2 sessions" in done.err
    assert f"{NEAR}ef" in done.err and f"{NEAR}e0" in done.err and "hint: give some more letters" in done.err
    assert len(antiphon(place, "sessions", "--json").out.splitlines()) == len(IDS), "nothing was made or deleted"


@pytest.mark.parametrize("way", [way for way in WAYS if way != "run --session"])  # there it is the name of a new one
def test_a_beginning_of_none_is_an_error_with_a_hint(place: Place, way: str) -> None:
    done = WAYS[way](place, "abcdef0123")
    assert done.status != 0 and "abcdef0123" in done.err and "antiphon sessions --all" in done.err


def test_a_short_name_of_a_session_stays_a_name_though_an_id_begins_with_it(place: Place) -> None:
    done = WAYS["run --session"](place, "ffff")
    assert done.status == 0 and done.result["sessionId"] not in IDS
    again = WAYS["run --session"](place, "ffff")
    assert again.result["sessionId"] == done.result["sessionId"]


@given(st.lists(st.text("01ab", min_size=1, max_size=12), unique=True, max_size=12))
def test_what_is_shown_of_an_id_means_no_other(ids: list[str]) -> None:
    shown = shortened(ids)
    for id in ids:
        assert id.startswith(shown[id])
        meant = [other for other in ids if other == shown[id]] or [
            other for other in ids if other.startswith(shown[id])
        ]
        assert meant == [id] and (len(shown[id]) >= SHORTEST or shown[id] == id)
    assert os.path.sep not in "".join(shown.values())
