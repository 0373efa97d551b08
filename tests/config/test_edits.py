"""Agents written into a config file and taken out of it: everything else stays."""

import tomllib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from antiphon.config.edits import EditRefused, with_agent, without_agent
from antiphon.config.reader import read
from antiphon.config.settings import agents_of
from tests.rows import each_row

FILE = """\
# My settings.
agent = "gemini" # the best

[policy] # rules
allow = [
  "Read", # always
]

# My first.
[agents.first]
# how it starts
command = ["first"]

# variables
[agents.first.env]
A = "1"

# Not the agent's:
[agents.second]
command = ["second"]
"""


def test_an_agent_is_added_at_the_end() -> None:
    assert with_agent(FILE, "mine", ["my agent", "--acp"]) == (
        f'{FILE}\n[agents.mine]\ncommand = ["my agent", "--acp"]\n'
    )
    assert with_agent("", "mine", ["x"]) == '[agents.mine]\ncommand = ["x"]\n'
    assert with_agent('a = "no newline"', "a.b", ["x"]) == 'a = "no newline"\n\n[agents."a.b"]\ncommand = ["x"]\n'


def test_an_agent_is_taken_out_with_all_its_tables_and_no_comment_around_it() -> None:
    assert without_agent(FILE, "first") == FILE.replace(
        '[agents.first]\n# how it starts\ncommand = ["first"]\n\n# variables\n[agents.first.env]\nA = "1"\n', ""
    )
    assert without_agent(FILE, "second") == FILE.replace('[agents.second]\ncommand = ["second"]\n', "")


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ('[agents]\nx.command = ["x"]\ny.command = ["y"]\n', '[agents]\ny.command = ["y"]\n'),
        ('[agents]\nx = { command = ["x"] }\n', "[agents]\n"),
        ('agents.x.command = ["x"]\nmodel = "m"\n', 'model = "m"\n'),
        ('[agents."x"]\ncommand = ["x"]\n[policy]\n', "[policy]\n"),
        ('[agents.x]\r\ncommand = ["x"]\r\n\r\n# c\r\n[policy]\r\n', "\r\n# c\r\n[policy]\r\n"),
    ],
    ids=["dotted", "inline", "from the root", "quoted", "crlf"],
)
def test_an_agent_is_taken_out_however_it_was_written(text: str, rest: str) -> None:
    assert without_agent(text, "x") == rest


def test_line_ends_stay_what_they_are() -> None:
    added = with_agent("# x\r\n", "mine", ["x"])
    assert added == '# x\r\n\r\n[agents.mine]\r\ncommand = ["x"]\r\n'
    assert without_agent(added, "mine") == "# x\r\n"


@each_row(
    ("text", "name", "command"),
    [
        ("a = \n", "x", ["x"]),
        (FILE, "first", ["x"]),
        (FILE, "demo", ["x"]),
        (FILE, "$(rm)", ["x"]),
        (FILE, "", ["x"]),
        (FILE, "x", []),
        (FILE, "x", [""]),
        ("agents = {}\n", "x", ["x"]),
        ("agents = 7\n", "x", ["x"]),
    ],
)
def test_what_cannot_be_added_is_refused_with_a_hint(text: str, name: str, command: list[str]) -> None:
    with pytest.raises(EditRefused, match="\nhint: "):
        with_agent(text, name, command)


@pytest.mark.parametrize(
    ("text", "name"),
    [("a = \n", "x"), (FILE, "third"), ('agents = { x = { command = ["x"] } }\n', "x")],
    ids=["corrupt", "not there", "one line for all"],
)
def test_what_cannot_be_taken_out_is_refused_with_a_hint(text: str, name: str) -> None:
    with pytest.raises(EditRefused, match="\nhint: "):
        without_agent(text, name)


words = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=1, max_size=3)
parts = st.lists(
    st.sampled_from(
        [
            "# a comment\n",
            "\n",
            'agent = "x" # y\n',
            "[policy]\n",
            'allow = ["Read",\n"Edit"]\n',
            "[agents.other]\n",
            'command = ["o"]\n',
            "[agents.other.env]\n",
            'K = """\n[agents.mine]\n"""\n',
            "[mcp.s]\n",
            "[agents]\n",
        ]
    ),
    max_size=8,
).map("".join)


@given(parts, st.sampled_from(["\n", "\r\n"]), words)
def test_adding_and_taking_out_again_changes_nothing(text: str, newline: str, command: list[str]) -> None:
    text = text.replace("\n", newline)
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    added = with_agent(text, "mine", command)
    assert added.startswith(text)
    assert tomllib.loads(added)["agents"]["mine"] == {"command": command}
    assert without_agent(added, "mine") == text
    assert tomllib.loads(text) == before


def test_what_is_added_is_what_is_read() -> None:
    command = ["/bin/x y", 'quote " and \\', "tab\t", "ümlaut", "\x7f"]
    assert agents_of(read(with_agent(FILE, "mine", command)))["mine"].command == tuple(command)
