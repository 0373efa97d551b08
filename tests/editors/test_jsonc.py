"""Settings in JSON with comments: read with places, and edited so that nothing else changes."""

import re
from typing import Any

import pytest
from hypothesis import given, settings

from antiphon.config.edits import EditRefused
from antiphon.editors.jsonc import DEEPEST, NotJsonc, has_entry, parse, put_entry, take_entry
from tests.config.documents import ENTRY, GROUP, NAME, documents
from tests.rows import each_row

_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|(//[^\n]*|/\*.*?\*/)', re.DOTALL)


def value_of(text: str) -> Any:
    value = parse(text)
    assert value is not None
    return value.data


def comments(text: str) -> list[str]:
    return [found[1].rstrip("\r") for found in _TOKENS.finditer(text) if found[1]]


def stands_in(text: str, longer: str) -> bool:
    """Whether every letter of the text is in the longer one, in order."""
    letters = iter(longer)
    return all(letter in letters for letter in text)


def with_entry(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, GROUP: {**data.get(GROUP, {}), NAME: ENTRY}}


# Reading.


@settings(max_examples=50)
@given(documents())
def test_whatever_people_write_is_read(document: tuple[str, dict[str, Any]]) -> None:
    text, data = document
    assert value_of(text) == data


@pytest.mark.parametrize("text", ["", " \n", "// nothing\n", "/* nothing */", "\ufeff"])
def test_a_text_without_a_value_has_none(text: str) -> None:
    assert parse(text) is None


@each_row(
    "text",
    ["{", "{]", '{"a"}', '{"a": }', '{"a": 1 "b": 2}', "{a: 1}", "[1 2]", '{"a": 1},', '"', "{,}", "[,]", "/* open", '{"a": nul}'],
)  # fmt: skip
def test_what_is_not_json_is_reported_with_its_line(text: str) -> None:
    with pytest.raises(NotJsonc, match=r"^line 3: "):
        parse(f"\n\n{text}")


def test_a_tower_of_lists_is_refused_not_climbed() -> None:
    with pytest.raises(NotJsonc, match="too many"):
        parse("[" * (DEEPEST + 10_000))


# Putting in and taking out.


@settings(max_examples=50)
@given(documents())
def test_the_entry_is_in_and_everything_else_is_as_it_was(document: tuple[str, dict[str, Any]]) -> None:
    text, data = document
    put = put_entry(text, GROUP, NAME, ENTRY)
    assert value_of(put.text) == with_entry(data)
    assert has_entry(put.text, GROUP, NAME)
    if put.replaced is None:
        assert stands_in(text, put.text) and comments(put.text) == comments(text)


@settings(max_examples=50)
@given(documents())
def test_putting_it_in_twice_is_putting_it_in_once(document: tuple[str, dict[str, Any]]) -> None:
    once = put_entry(document[0], GROUP, NAME, ENTRY).text
    assert put_entry(once, GROUP, NAME, ENTRY).text == once


@settings(max_examples=50)
@given(documents())
def test_taken_out_of_a_file_that_changed_since_the_rest_stays(document: tuple[str, dict[str, Any]]) -> None:
    text, data = document
    put = put_entry(text, GROUP, NAME, ENTRY)
    opening = parse(text)
    assert opening is not None
    edited = put.text[: opening.start + 1] + '"mine": 1, // later\n' + put.text[opening.start + 1 :] + "\n// end\n"
    left = take_entry(edited, GROUP, NAME, made_group=put.made_group, replaced=put.replaced)
    assert value_of(left) == {"mine": 1, **data}
    if put.replaced is None:
        # A comment may end in a blank that stood before our entry.
        assert [each.rstrip() for each in comments(left)] == [each.rstrip() for each in comments(edited)]


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "theme": "One", // mine\n  // more\n}\n',
        '{\n\t"a": 1 // one\n}',
        '{\n  "agent_servers": {\n    "x": {} /* x */, // mine\n  },\n  "z": [1, 2,],\n}\n',
        '{\r\n    "a": 1\r\n}\r\n',
        "{}",
        "{ // none\n}",
    ],
)
def test_taken_out_by_its_place_alone_the_bytes_are_the_same(text: str) -> None:
    put = put_entry(text, GROUP, NAME, ENTRY)
    assert take_entry(put.text, GROUP, NAME, made_group=put.made_group, replaced=put.replaced) == text


def test_the_entry_has_the_style_of_the_file() -> None:
    text = '{\r\n\t"agent_servers": {\r\n\t\t"x": {}, // mine\r\n\t},\r\n}\r\n'
    assert put_entry(text, GROUP, NAME, {"command": "c", "args": ["agent"]}).text == (
        '{\r\n\t"agent_servers": {\r\n\t\t"x": {}, // mine\r\n\t\t"Antiphon": {\r\n\t\t\t"command": "c",\r\n'
        '\t\t\t"args": ["agent"]\r\n\t\t},\r\n\t},\r\n}\r\n'
    )


def test_a_file_with_nothing_but_comments_keeps_them() -> None:
    put = put_entry("// my settings", GROUP, NAME, ENTRY)
    assert put.text.startswith('// my settings\n{\n  "agent_servers": {\n') and value_of(put.text) == {
        GROUP: {NAME: ENTRY}
    }


def test_another_entry_of_that_name_is_replaced_and_comes_back() -> None:
    text = '{"agent_servers": {"Antiphon": {"command": "old", /* ! */ }, "x": 1}}'
    put = put_entry(text, GROUP, NAME, ENTRY)
    assert value_of(put.text) == {GROUP: {NAME: ENTRY, "x": 1}} and put.replaced == '{"command": "old", /* ! */ }'
    assert take_entry(put.text, GROUP, NAME, replaced=put.replaced) == text


def test_a_comment_in_the_group_that_was_made_keeps_the_group() -> None:
    put = put_entry("{}", GROUP, NAME, ENTRY)
    edited = put.text.replace('"Antiphon"', '// why\n"Antiphon"')
    left = take_entry(edited, GROUP, NAME, made_group=True)
    assert "// why" in left and value_of(left) == {GROUP: {}}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "not an object"),
        ("{", "line 1"),
        ('{"agent_servers": []}', "not an object"),
        ('{"agent_servers": null}', "not an object"),
        ('{"agent_servers": {}, "agent_servers": {}}', "twice"),
        ('{"agent_servers": {"Antiphon": 1, "Antiphon": 2}}', "twice"),
    ],
)
def test_what_cannot_be_edited_is_refused(text: str, why: str) -> None:
    with pytest.raises(EditRefused, match=why):
        put_entry(text, GROUP, NAME, ENTRY)


@pytest.mark.parametrize("text", ["", "{}", '{"agent_servers": {"x": 1}}'])
def test_what_is_not_there_cannot_be_taken_out(text: str) -> None:
    assert not has_entry(text, GROUP, NAME)
    with pytest.raises(EditRefused, match="any more"):
        take_entry(text, GROUP, NAME)
