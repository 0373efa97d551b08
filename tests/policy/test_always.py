""" "Always" is offered and honoured only for commands whose words say what runs."""

from hypothesis import given
from hypothesis import strategies as st

from antiphon.policy import Rule, Rules, Verdict, closed_reason, decide, suggest
from antiphon.policy.arguments import INTERPRETERS
from antiphon.policy.patterns import quoted
from antiphon.policy.programs import SCRIPT_RUNNERS
from tests.policy.short import CWD, line, words
from tests.rows import each_row

FED = [
    "sh", "bash -c 'ls'", "bash build.sh", "/bin/zsh", "python", "python3.12 -c 1", "python x.py", "python -m code", "node -e 1", "perl -e 1",
    "ruby3.2 x", "php -r 1", "m4", "xargs rm", "xargs", "env CI=1 npm test", "sudo ls", "doas ls", "nohup make", "time make", "npx cowsay",
    "uvx ruff", "pipx run x", "npm exec x", "pnpm dlx x", "yarn dlx x", "bunx x", "uv run x", "poetry run x", "go run x@latest", "docker run x",
    "ssh host ls", "ed", "ex x", "gdb x", "psql", "sqlite3 x.db", "make -f -", "eval ls", "source x", ". ./x", "parallel", "busybox sh", "at now",
    "find . -exec sh {} ';'", "CI=1 bash", "watch ls", "su", "chroot .", "command sh", "exec ls",
]  # fmt: skip
EXACT = [
    "git status", "make test", "npm test", "npm run build", "cargo test", "pytest -q", "python -m pytest -q", "python3.12 -m mypy src", "uv sync",
    "CI=1 npm test", "ls -la", "find . -name x", "grep -r x .", "go test ./...", "yarn", "sed -n 1p x",
]  # fmt: skip


@each_row("text", FED)
def test_always_is_neither_offered_nor_honoured_for_what_runs_what_it_is_fed(text: str) -> None:
    assert suggest(line(text)) == ()
    reason = closed_reason(Rule.parse(f"Bash({text})", "remembered"))
    assert reason and not reason.endswith(".") and "`" in reason


@each_row("text", EXACT)
def test_always_is_offered_and_honoured_for_a_command_that_names_what_runs(text: str) -> None:
    assert [rule.text for rule in suggest(line(text))] == [f"Bash({text})"]
    assert closed_reason(Rule.parse(f"Bash({text})", "remembered")) is None


def test_always_for_a_relative_program_holds_for_that_file() -> None:
    rules = suggest(line("./build.sh test"))
    assert [rule.text for rule in rules] == [f"Bash({CWD}/build.sh test)"]
    for text, expected in (
        ("./build.sh test", Verdict.ALLOW),
        (f"{CWD}/build.sh test", Verdict.ALLOW),
        ("sub/../build.sh test", Verdict.ALLOW),
        ("cd sub && ./build.sh test", Verdict.ASK),
        ("./build.sh", Verdict.ASK),
        ("sub/build.sh test", Verdict.ASK),
    ):
        assert decide(line(text), Rules.parse(allow=["Bash(cd *)"]).merged(Rules(allow=rules))).verdict is expected, (
            text
        )
    elsewhere = line("./build.sh test", cwd=f"{CWD}/sub")
    assert decide(elsewhere, Rules(allow=rules)).verdict is Verdict.ASK
    assert closed_reason(Rule.parse("Bash(./build.sh test)")) is not None
    assert suggest(line("cd sub && ./build.sh")) == ()


def test_one_closed_part_closes_the_whole_line() -> None:
    assert suggest(line("rm -rf build && curl -s https://example.org/install.sh | sh")) == ()


def test_rules_about_other_tools_are_honoured() -> None:
    for text in ("Edit(src/**)", "Bash", "kind:edit", "mcp__a__b", "WebFetch(domain:example.org)"):
        assert closed_reason(Rule.parse(text)) is None


@given(
    st.sampled_from(sorted(SCRIPT_RUNNERS | INTERPRETERS)),
    st.sampled_from(["", "/usr/bin/", "./", "/opt/x/bin/"]),
    st.sampled_from(["", "3", "3.12", "-5.4"]),
    st.lists(st.sampled_from(["-c", "x", "-", "script.py", "-x", "-m", "--"]), max_size=3),
)
def test_no_path_version_or_argument_opens_always_for_a_shell_or_an_interpreter(
    name: str, directory: str, version: str, rest: list[str]
) -> None:
    program = directory + name + ("" if name in SCRIPT_RUNNERS else version)
    assert suggest(words(program, *rest)) == ()
    assert closed_reason(Rule.parse(f"Bash({' '.join(map(quoted, [program, *rest]))})")) is not None
