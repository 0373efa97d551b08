"""Command lines by the thousand: words, quotes, operators and wrappers, put together by hypothesis. Harmless where they are run.

Names are those of recording stubs; paths stay in the folder; there is nothing here that waits, kills or goes up.
"""

from hypothesis import strategies as st

PROGRAMS = ["git", "echo", "ls", "cat", "rm", "evil", "npm", "printf", "test", "find"]
WRAPPERS = [
    "env",
    "sudo",
    "command",
    "time",
    "nohup",
    "xargs",
    "exec",
    "builtin",
    "eval",
    "sh -c",
    "env X=1",
    "! ",
    "coproc",
]
ARGUMENTS = [
    "x", "-la", "--all", "a b", "'a b'", '"a b"', '"a; rm x"', "'$(rm x)'", '"$(rm x)"', "$(rm x)", "$(git log)", '"$(git log)"',
    "`rm x`", '"`rm x`"', "$X", '"$X"', "${X}", "${X:-$(rm x)}", "${X:=y}", "*", "?", "{rm,x}", "{1..2}", "~", "\\;", "\\$(x)", "$'a'",
    '$"a"', "<(rm x)", ">/dev/null", "2>&1", "2>/dev/null", ">out", ">>out", "<x", "<<<x", "#x", "a#b", "!x", "HEAD~1", "@{u}",
    "-c core.pager=rm", "-exec rm {} +", "-v 'a[$(rm x)]'", "PATH=.", "'\n'", '"\n"', "\\\n", "''", '""', "é", '"é"', "$", "$((1+1))",
    "$(( rm ))", "((", "[[ x ]]", "=x", "a=b", "\\", "'", '"', "$(", "${", ")", "}", "<<E\nrm x\nE\n", "\\\"", '"\\""', '"\\$X"',
]  # fmt: skip
JOINTS = [
    " ; ",
    ";",
    " && ",
    " || ",
    " | ",
    "|",
    " & ",
    "\n",
    " |& ",
    "\r",
    "\x0c",
    " ;; ",
    "\\\n",
    " \\\n ",
    "\n\n",
    " # ",
    "&",
    "\u00a0",
]
SHAPES = [
    "{}", "({})", "{{ {}; }}", "$({})", 'echo "$({})"', "echo `{}`", "if {}; then git x; fi", "for f in a; do {}; done", "git x; {}",
    "{} | cat", "! {}", "X=1 {}", "PATH=. {}", "{} # rm", "f() {{ {}; }}; f", "cat <<E\n{}\nE", "cat <<'E'\n{}\nE", "eval '{}'", "\n{}\n",
]  # fmt: skip


def _quoted(name: str, way: int) -> str:
    return [
        name,
        f"'{name}'",
        f'"{name}"',
        f"\\{name}",
        f"{name[0]}''{name[1:]}",
        f"{name[0]}\\\n{name[1:]}",
        f"${{X}}{name}",
    ][way]


programs = st.one_of(
    st.builds(_quoted, st.sampled_from(PROGRAMS), st.sampled_from([0, 0, 0, 0, 1, 2, 3, 4, 5, 6])),
    st.sampled_from(["git log", "'git' status", 'git "diff"']),
)
arguments = st.lists(st.sampled_from(ARGUMENTS), max_size=3)
wrapped = st.one_of(st.just(""), st.just(""), st.just(""), st.sampled_from(WRAPPERS).map(lambda word: f"{word} "))
simple = st.builds(lambda front, name, rest: front + " ".join([name, *rest]), wrapped, programs, arguments)
joined = st.builds(
    lambda first, rest: first + "".join(joint + more for joint, more in rest),
    simple,
    st.lists(st.tuples(st.sampled_from(JOINTS), simple), max_size=2),
)
shaped = st.builds(lambda shape, inner: shape.format(inner), st.sampled_from(SHAPES), joined)

noise = st.lists(
    st.sampled_from([*"'\"\\$`;&|<>(){}[]*?#~=! \t\n", "git", "rm", "x", " ", " ", "$(", "git x", "rm x", "echo "]),
    max_size=12,
).map(lambda pieces: "git log " + "".join(pieces))

lines = st.one_of(joined, shaped, noise)
