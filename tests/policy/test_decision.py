"""Modes, what is remembered, and what a call is taken for."""

from datetime import UTC, datetime

import pytest

from antiphon.policy import Action, PolicyMode, Remembered, Rule, Rules, Verdict, applicable, decide, suggest
from antiphon.protocol.v1.client_services import CreateTerminal, EnvVariable, ReadTextFile, WriteTextFile
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.tools import ContentItem, Diff, ToolCall, ToolCallPatch, ToolKind, ToolLocation
from tests.policy.short import CWD, files, line, ruling, verdict, words
from tests.rows import each_row

ALLOW, DENY, ASK = Verdict.ALLOW, Verdict.DENY, Verdict.ASK
NOW = datetime(2026, 11, 16, tzinfo=UTC)
KINDS = ("think", "read", "search", "switch_mode", "fetch", "other", "edit", "move", "delete", "execute")
QUIET = dict.fromkeys(("think", "read", "search"), ALLOW)
TABLE: dict[PolicyMode, dict[str, Verdict]] = {
    PolicyMode.DEFAULT: dict.fromkeys(KINDS, ASK) | QUIET,
    PolicyMode.ACCEPT_EDITS: dict.fromkeys(KINDS, ASK) | QUIET | dict.fromkeys(("edit", "move", "delete"), ALLOW),
    PolicyMode.PLAN: dict.fromkeys(KINDS, DENY) | QUIET | dict.fromkeys(("fetch", "switch_mode"), ASK),
    PolicyMode.DONT_ASK: dict.fromkeys(KINDS, DENY) | QUIET,
    PolicyMode.BYPASS: dict.fromkeys(KINDS, ALLOW),
}


@each_row("mode", PolicyMode)
@each_row("kind", KINDS)
def test_a_mode_decides_where_no_rule_does(mode: PolicyMode, kind: str) -> None:
    action = Action(kind=kind, paths=(f"{CWD}/a",), cwd=CWD, roots=(CWD,))
    assert decide(action, Rules(), mode).verdict is TABLE[mode][kind]
    assert decide(action, Rules(), mode.value).verdict is TABLE[mode][kind]  # type: ignore[arg-type]  # a plain string


@each_row(
    ("text", "expected"),
    [
        ("mkdir -p src/new", ALLOW), ("rm -rf build", ALLOW), ("mv a b", ALLOW), ("mkdir a && rm b; mv c d", ALLOW), ("rm -- -x", ALLOW),
        ("rm -rf .", ASK), ("rm -rf ../x", ASK), ("rm -rf /", ASK), ("rm *", ASK), ("rm $X", ASK), ("rm ~/x", ASK), ("rm a; ls", ASK),
        ("mv a /tmp/b", ASK), ("mv -t /tmp a", ASK), ("mv --target-directory=/tmp a", ASK), ("mkdir -m 777 a", ASK), ("rm", ASK),
        ("rm a > b", ASK), ("sudo rm a", ASK), ("/bin/rm a", ASK), ("rm .git/config", ASK), ("mkdir '' ", ASK), ("rm --no-preserve-root a", ASK),
        ("rm a\x00b", ASK), ("X=1 rm a", ASK), ("touch a", ASK),
    ],
)  # fmt: skip
def test_accept_edits_takes_plain_mkdir_rm_and_mv_inside_the_roots(text: str, expected: Verdict) -> None:
    assert ruling(line(text), mode=PolicyMode.ACCEPT_EDITS).verdict is expected


def test_links_count_for_plain_file_commands_too() -> None:
    def follow(path: str) -> str:
        return path.replace(f"{CWD}/link", "/etc")

    call = ToolCall(tool_call_id="t", title="x", kind=ToolKind.EXECUTE, raw_input={"command": "rm link/passwd"})
    action = Action.of_tool_call(call, CWD, [CWD], resolve=follow)
    assert action.paths == ("/etc/passwd",)
    assert ruling(action, mode=PolicyMode.ACCEPT_EDITS).verdict is ASK


def test_rules_about_files_stop_plain_file_commands() -> None:
    for mode in (PolicyMode.ACCEPT_EDITS, PolicyMode.BYPASS):
        assert ruling(line("rm secrets/key"), deny=["Edit(secrets/**)"], mode=mode).verdict is DENY
        assert ruling(line("rm -r secrets"), deny=["Edit(secrets/key)"], mode=mode).verdict is ASK
        assert ruling(line("rm x"), deny=["Edit"], mode=mode).verdict is ASK


# --- remembered ---


def always(rule: str, answer: Verdict = ALLOW, expires_at: str | None = None) -> Remembered:
    return Remembered(Rule.parse(rule), answer, expires_at=expires_at)


def test_what_is_remembered_comes_after_the_rules_and_before_the_mode() -> None:
    yes, no = always("Bash(git push)"), always("Bash(git push)", DENY)
    push = line("git push")
    assert decide(push, Rules(), PolicyMode.DEFAULT, [yes]).verdict is ALLOW
    assert decide(push, Rules(), PolicyMode.BYPASS, [no]).verdict is DENY
    assert decide(push, Rules.parse(ask=["Bash"]), PolicyMode.DEFAULT, [yes]).verdict is ASK
    assert decide(push, Rules.parse(deny=["Bash"]), PolicyMode.DEFAULT, [yes]).verdict is DENY
    assert decide(push, Rules.parse(allow=["Bash"]), PolicyMode.DEFAULT, [no]).verdict is ALLOW
    assert decide(push, Rules(), PolicyMode.PLAN, [yes]).verdict is DENY


def test_a_remembered_deny_beats_a_remembered_allow() -> None:
    both = [always("Bash(git *)"), always("Bash(git push)", DENY)]
    assert decide(line("git push"), Rules(), PolicyMode.DEFAULT, both).verdict is DENY
    assert decide(line("git push"), Rules(), PolicyMode.DEFAULT, both[::-1]).verdict is DENY
    assert decide(line("git log"), Rules(), PolicyMode.DEFAULT, both).verdict is ALLOW


def test_rules_and_what_is_remembered_cover_a_line_together() -> None:
    rules = Rules.parse(allow=["Bash(git *)"])
    assert decide(line("git pull && npm test"), rules).verdict is ASK
    assert decide(line("git pull && npm test"), rules, remembered=[always("Bash(npm test)")]).verdict is ALLOW


@pytest.mark.parametrize(
    ("expires_at", "now", "allows", "denies"),
    [
        ("2026-11-17T00:00:00Z", NOW, True, True),
        ("2026-11-15T00:00:00+00:00", NOW, False, False),
        ("2026-11-16T00:00:00", NOW, False, False),
        ("2026-11-17T00:00:00Z", None, False, True),
        ("soon", NOW, False, True),
    ],
)
def test_what_expired_does_not_count_and_doubt_never_allows(
    expires_at: str, now: datetime | None, allows: bool, denies: bool
) -> None:
    yes, no = always("Bash(ls)", ALLOW, expires_at), always("Bash(ls)", DENY, expires_at)
    assert (decide(line("ls"), Rules(), PolicyMode.DEFAULT, [yes], now).verdict is ALLOW) is allows
    assert (decide(line("ls"), Rules(), PolicyMode.DEFAULT, [no], now).verdict is DENY) is denies


def test_decisions_apply_where_they_were_made() -> None:
    rule = Rule.parse("Bash(ls)")
    here = Remembered(rule, ALLOW, "session", session_id="s", id="1")
    there = Remembered(rule, ALLOW, "project", project="/p", id="2")
    everywhere = Remembered(rule, ALLOW, "everywhere", id="3")
    nowhere = Remembered(rule, ALLOW, "session", id="4")
    every = [here, there, everywhere, nowhere]
    assert applicable(every, session_id="s") == (here, everywhere)
    assert applicable(every, project="/p") == (there, everywhere)
    assert applicable(every) == (everywhere,)


# --- what a call is taken for ---


def of(**fields: object) -> Action:
    return Action.of_tool_call(ToolCallPatch(tool_call_id="t", **fields), CWD, [CWD])  # type: ignore[arg-type]


def test_a_title_never_allows_anything() -> None:
    for title in ("git status", "Bash(git status)", "Read", "read"):
        assert verdict(of(title=title), allow=["Bash(git *)", "Read", "Bash"]) is ASK


@each_row(
    ("fields", "kind"),
    [
        ({}, "other"),
        ({"kind": ToolKind("paint")}, "other"),
        ({"kind": ToolKind("write")}, "edit"),
        ({"kind": ToolKind.READ, "raw_input": {"command": "rm x"}}, "execute"),
        ({"kind": ToolKind.READ, "raw_input": {"command": ["rm", "x"]}}, "execute"),
        ({"kind": ToolKind.READ, "name": "exec_command"}, "execute"),
        ({"kind": ToolKind.READ, "content": [Diff(path="/x", new_text="")]}, "edit"),
        ({"kind": ToolKind.READ, "content": [ContentItem(content=TextBlock(text="x"))]}, "read"),
        ({"kind": ToolKind.READ, "name": "Delete"}, "delete"),
        ({"kind": ToolKind.READ, "tool_kind": ToolKind.EDIT}, "edit"),
        ({"kind": ToolKind.READ, "input": {"cmd": "rm x"}}, "execute"),
        ({"kind": ToolKind.THINK, "name": "mcp__a__b"}, "other"),
        ({"name": "TodoWrite"}, "think"),
    ],
)
def test_the_worst_claim_about_a_call_counts(fields: dict[str, object], kind: str) -> None:
    assert of(**fields).kind == kind


def test_every_path_in_a_call_counts() -> None:
    action = of(
        kind=ToolKind.EDIT,
        raw_input={"file_path": "a", "edits": [{"path": "b", "text": "/not/a/path"}], "weird": "/c", "n": 3},
        content=[Diff(path="/d", new_text="x")],
        locations=[ToolLocation(path="e")],
    )
    assert set(action.paths) == {f"{CWD}/a", f"{CWD}/b", "/c", "/d", f"{CWD}/e"}


@pytest.mark.parametrize("raw", [{"patch": "*** Update File: /etc/x"}, "text", ["a"], {"paths": ["a"] * 2000}])
def test_what_cannot_be_read_is_not_allowed_by_a_path(raw: object) -> None:
    action = of(kind=ToolKind.EDIT, raw_input=raw, locations=[ToolLocation(path=f"{CWD}/a")])
    assert verdict(action, allow=["Edit(**)"]) is ASK
    assert ruling(action, mode=PolicyMode.ACCEPT_EDITS).verdict is ASK
    assert verdict(action, allow=["Edit"], deny=["Edit(secrets/**)"]) is ASK


def test_two_commands_in_one_call_are_none() -> None:
    action = of(kind=ToolKind.EXECUTE, raw_input={"command": "git log", "cmd": "rm x"})
    assert verdict(action, allow=["Bash(git *)", "Bash(rm *)"]) is ASK
    assert verdict(action, allow=["Bash"], deny=["Bash(rm *)"]) is ASK


def test_a_command_in_a_folder_outside_is_asked() -> None:
    for directory, expected in (("sub", ALLOW), (CWD, ALLOW), ("/tmp", ASK), ("..", ASK)):
        action = of(kind=ToolKind.EXECUTE, raw_input={"command": "make all", "cwd": directory})
        assert verdict(action, allow=["Bash(make *)"]) is expected


def test_a_search_without_a_path_looks_in_its_folder() -> None:
    assert verdict(of(kind=ToolKind.SEARCH, raw_input={"pattern": "x"}), deny=["Read(/etc/**)"]) is ALLOW
    assert verdict(of(kind=ToolKind.SEARCH, raw_input={"pattern": "/etc/*"}), deny=["Read(/etc/**)"]) is DENY


# --- files and terminals of the client ---


def test_writing_a_file_is_decided_like_an_edit() -> None:
    action = Action.of_write(WriteTextFile(session_id="s", path=f"{CWD}/src/a", content="x"), CWD, [CWD])
    assert verdict(action) is ASK
    assert verdict(action, allow=["Edit(src/**)"]) is ALLOW
    assert verdict(action, allow=["Write(src/**)"]) is ALLOW
    assert ruling(action, mode=PolicyMode.PLAN).verdict is DENY


def test_reading_a_file_is_decided_like_a_read() -> None:
    action = Action.of_read(ReadTextFile(session_id="s", path=f"{CWD}/secrets/a"), CWD, [CWD])
    assert verdict(action) is ALLOW
    assert verdict(action, deny=["Read(secrets/**)"]) is DENY


def terminal(command: str, *args: str, **env: str) -> Action:
    variables = [EnvVariable(name=name, value=value) for name, value in env.items()]
    return Action.of_terminal(
        CreateTerminal(session_id="s", command=command, args=list(args), env=variables), CWD, [CWD]
    )


@each_row(
    ("action", "expected"),
    [
        (terminal("git", "log"), ALLOW),
        (terminal("git", "log", "; rm x"), ALLOW),  # an argument, and no shell reads it
        (terminal("git log && git diff"), ALLOW),
        (terminal("git log; rm x"), ASK),
        (terminal("bash", "-lc", "git log"), ALLOW),
        (terminal("bash", "-lc", "git log; rm x"), ASK),
        (terminal("./bash", "-c", "git log"), ASK),
        (terminal("fish", "-c", "git log"), ASK),
        (terminal("tcsh", "-c", "git log"), ASK),
        (terminal("bash", "-c", "git log", "x"), ASK),
        (terminal("git", "log", TERM="dumb", GIT_PAGER="cat"), ALLOW),
        (terminal("git", "log", GIT_PAGER="rm x"), ASK),
        (terminal("git", "log", PATH="/tmp/evil"), ASK),
        (terminal("/tmp/git", "log"), ASK),
        (terminal("X=1", "git"), ASK),
    ],
)
def test_a_terminal_is_decided_like_a_command(action: Action, expected: Verdict) -> None:
    assert verdict(action, allow=["Bash(git *)", "Bash(bash *)"]) is expected


# --- suggestions ---


@each_row(
    ("action", "rules"),
    [
        (line("git status"), ["Bash(git status)"]),
        (line("git add . && git commit -m 'it works'"), ["Bash(git add .)", "Bash(git commit -m 'it works')"]),
        (line("echo '*' \"it's\""), ["Bash(echo '*' 'it'\\''s')"]),
        (line("ls *.py"), []),
        (line("make > log"), []),
        (line("git log 'x"), []),
        (words("ls", "a b"), ["Bash(ls 'a b')"]),
        (terminal("git", "log", PATH="/x"), []),
        (files("src/a.py"), [f"Edit({CWD}/src/a.py)"]),
        (files("src/[id]*?.py", name="Write"), [f"Write({CWD}/src/[id]\\*\\?.py)"]),
        (files("a", "b", name=None), [f"Edit({CWD}/a)", f"Edit({CWD}/b)"]),
        (files("src/a.py", name="Read"), []),
        (of(name="mcp__a__b"), ["mcp__a__b"]),
        (of(name="WebFetch", raw_input={"url": "https://Example.org/x"}), ["WebFetch(domain:example.org)"]),
        (of(kind=ToolKind.OTHER), []),
        (of(name="a tool (strange)"), []),
    ],
)
def test_always_remembers_what_was_shown_and_no_more(action: Action, rules: list[str]) -> None:
    assert [rule.text for rule in suggest(action)] == rules


def test_a_mode_that_does_not_ask_does_not_say_that_it_asks() -> None:
    action = Action(kind="edit", paths=(f"{CWD}/a",), cwd=CWD, roots=(CWD,))
    why = decide(action, Rules(), PolicyMode.DONT_ASK).why
    assert why.startswith("No rule allows it.") and why.endswith("`dontAsk` does not ask, so it is denied.")
    assert "asks about" not in why
