"""Short names of engines: typed, chosen, and put before the ids of settings."""

import re

from hypothesis import given
from hypothesis import strategies as st

from antiphon.duet.commands import LONGEST, handles, is_command_line, prefixes, reserved, slug
from tests.rows import each_row


@each_row(
    ("engine", "word"),
    [
        ("claude", "claude"),
        ("my_agent-2", "my_agent-2"),
        ("my.agent", "my-agent"),
        ("gemini --acp", "gemini"),
        ("/opt/tools/Gemini.js --acp", "gemini"),
        ("npx -y @google/gemini-cli@latest --acp", "gemini-cli"),
        ("uv run my_agent", "my-agent"),
        ("env KEY=secret python3.12 ~/agents/mine.py", "mine"),
        ("node", "node"),
        ("python3 -m", "python3"),
        ("'open", "open"),
        ("---", "engine"),
        ("日本 語", "engine"),
    ],
)
def test_a_short_name_names_the_program(engine: str, word: str) -> None:
    assert slug(engine) == word


def test_a_name_has_no_blanks_and_no_slashes() -> None:
    assert [is_command_line(each) for each in ("claude", "my.agent", "x --acp", "/bin/x", "")] == [
        False,
        False,
        True,
        True,
        True,
    ]


def test_no_two_engines_have_the_same_and_none_has_a_word_of_ours() -> None:
    engines = ["agent --a", "agent --b", "review", "agent", "help --acp"]
    assert handles(engines, reserved()) == {
        "agent --a": "agent-agent", "agent --b": "agent-2", "review": "review-agent", "agent": "agent", "help --acp": "help-agent",
    }  # fmt: skip


lines = st.lists(
    st.text(min_size=1, max_size=30) | st.sampled_from(["a", "a_b", "a-b", "a.b", "a --x", "duet"]), max_size=6
)


@given(lines)
def test_short_names_are_always_different_and_can_be_typed(engines: list[str]) -> None:
    given_names = handles(engines, reserved())
    assert len(set(given_names.values())) == len(set(engines)) == len(given_names)
    for name in given_names.values():
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", name) and name not in reserved()
        assert len(name) <= max(LONGEST, 64) + 6


@given(
    st.lists(
        st.sampled_from(["a", "a_b", "a-b", "a-b-2", "a_b_c", "a-b_c", "auto", "auto-2", "primary", "x"]), unique=True
    )
)
def test_what_stands_before_an_id_is_one_engines_alone(engines: list[str]) -> None:
    before = prefixes(engines)
    assert len(set(before.values())) == len(engines) == len(before)
    assert not any("_" in each or each in ("auto", "primary") for each in before.values())
    assert all(before[each] == each for each in engines if "_" not in each and each not in ("auto", "primary"))
