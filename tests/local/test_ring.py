"""The ring of an output: the last bytes, whole characters, however it came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.local.commands import Ring

outputs = st.lists(
    st.binary(max_size=8) | st.text(max_size=8).map(lambda text: text.encode(errors="replace")), max_size=20
)


@given(outputs, st.integers(0, 40))
def test_what_is_kept_is_valid_short_enough_and_the_end_of_all(chunks: list[bytes], limit: int) -> None:
    ring = Ring(limit)
    for chunk in chunks:
        ring.add(chunk)
    ring.end()
    everything = b"".join(chunks).decode(errors="replace")
    kept = ring.text()
    assert everything.endswith(kept) and len(kept.encode()) <= limit
    assert ring.truncated == (kept != everything)
    assert ring.written == len(everything.encode())
    if ring.truncated:  # no more was dropped than had to be: one character more would not fit
        assert len(everything[-len(kept) - 1 :].encode()) > limit


@given(outputs, outputs, st.integers(0, 40))
def test_from_a_place_on_there_is_what_came_after_it(before: list[bytes], after: list[bytes], limit: int) -> None:
    ring = Ring(limit)
    for chunk in before:
        ring.add(chunk)
    place, seen = ring.written, ring.text()
    for chunk in after:
        ring.add(chunk)
    added = ring.text(place)
    assert ring.text().endswith(added)
    if not ring.truncated:
        assert seen + added == ring.text()


def test_half_a_character_waits_for_its_other_half() -> None:
    ring = Ring(100)
    ring.add("né".encode()[:-1])
    assert ring.text() == "n" and not ring.truncated
    ring.add("é".encode()[1:])
    assert ring.text() == "né"


@pytest.mark.parametrize(
    ("limit", "kept"), [(0, ""), (1, ""), (3, ""), (4, "🎵"), (7, "🎵"), (8, "🎵🎵"), (100, "🎵🎵🎵")]
)
def test_a_cut_never_splits_a_character(limit: int, kept: str) -> None:
    ring = Ring(limit)
    ring.add("🎵🎵🎵".encode())
    assert ring.text() == kept and ring.truncated == (kept != "🎵🎵🎵")
