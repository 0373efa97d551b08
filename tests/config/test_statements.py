"""Lines of a TOML text: found where the parser would find them."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from antiphon.config.reader import line_of, statement_of, statements
from tests.rows import each_row

TEXT = '''\
# a comment = "with an equals sign"
agent = "x" # and [another]

[policy]
allow = [ # a list
    "Read",
    "Bash(echo # no comment ])",
]
"de\\u006ey" = ["""a
string ] of = lines"""]

[agents."a.b"]
command = ["x"]
env = { A = "1", B = "}" }
[[other]]
x.y = \'\'\'
[not.a.header]
\'\'\'
'''


def test_statements_have_whole_paths_and_their_first_line() -> None:
    assert [(s.path, s.line, s.header) for s in statements(TEXT)] == [
        (("agent",), 2, False),
        (("policy",), 4, True),
        (("policy", "allow"), 5, False),
        (("policy", "deny"), 9, False),
        (("agents", "a.b"), 12, True),
        (("agents", "a.b", "command"), 13, False),
        (("agents", "a.b", "env"), 14, False),
        (("other",), 15, True),
        (("other", "x", "y"), 16, False),
    ]


@each_row(
    ("path", "value", "line"),
    [
        (("policy", "allow"), None, 5),
        (("policy", "allow"), "Read", 6),
        (("policy", "allow"), "Bash(echo # no comment ])", 7),
        (("policy", "allow"), "nowhere", 5),
        (("policy", "missing"), None, 4),
        (("agents", "a.b", "env", "B"), None, 14),
        (("agents",), None, 12),
        (("nothing",), None, 1),
    ],
)
def test_a_problem_is_shown_where_it_is(path: tuple[str, ...], value: str | None, line: int) -> None:
    assert line_of(TEXT, statement_of(statements(TEXT), path), value) == line


keys = st.from_regex(r"[A-Za-z0-9_-]{1,4}", fullmatch=True) | st.text(
    st.characters(codec="utf-8", categories=("L", "P", "S")), min_size=1, max_size=4
).filter(lambda key: "\\" not in key and '"' not in key).map(lambda key: f'"{key}"')
values = st.sampled_from(
    [
        "1",
        '"a # b"',
        "'= ]'",
        '[\n1, # ]\n"]"\n]',
        "{ a = 1 }",
        '"""\nx = 1\n""""',
        "'''\n[a]\n'''",
        '"\\" = \\\\"',
        '"""a\\"""" = """',
        "2026-11-16",
    ]
)
lines = st.one_of(
    st.tuples(keys, values).map(lambda pair: f"{pair[0]} = {pair[1]}"),
    keys.map(lambda key: f"[{key}]"),
    st.sampled_from(["", "# x = [", "  "]),
)


@given(st.lists(lines, max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_every_statement_is_exactly_what_the_parser_takes_for_one(parts: list[str], newline: str) -> None:
    text = newline.join(parts).replace("\r\n", "\n").replace("\n", newline)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    found = list(statements(text))
    for statement in found:
        alone = tomllib.loads(text[statement.start : statement.end])
        assert len(alone) == 1
        assert text.count("\n", 0, statement.start) == statement.line - 1
    gaps = text
    for statement in reversed(found):
        gaps = gaps[: statement.start] + gaps[statement.end :]
    assert tomllib.loads(gaps) == {}
