"""What the pages say about comparing words and messages."""

import pytest

from antiphon import v1


def test_a_word_outside_the_list_compares_by_its_meaning_and_keeps_its_spelling() -> None:
    paint = v1.ToolKind("paint")
    assert paint == v1.ToolKind.OTHER and paint != "paint" and hash(paint) == hash(v1.ToolKind.OTHER)
    assert (paint.value, paint.known, str(paint)) == ("paint", False, "paint")


def test_messages_without_lists_and_dictionaries_can_be_hashed() -> None:
    assert hash(v1.TextBlock("la")) == hash(v1.TextBlock("la"))
    with pytest.raises(TypeError):
        hash(v1.NewSession("/", []))
