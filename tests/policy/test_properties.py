"""What holds whatever the rules, the line and the path are."""

import posixpath
from collections.abc import Sequence

from hypothesis import assume, given
from hypothesis import strategies as st

from antiphon.policy import Action, PolicyMode, Rule, Rules, Verdict, decide, suggest
from antiphon.protocol.v1.tools import ToolCall, ToolKind
from tests.policy.corpus import lines
from tests.policy.short import CWD, HOME, files, line, verdict, words

RULES = [
    "Bash", "Bash(*)", "Bash(git *)", "Bash(git push *)", "Bash(rm *)", "Bash(echo *)", "Bash(* x)", "Bash(git status)", "Edit",
    "Edit(**)", "Edit(src/**)", "Edit(src/*.py)", "Edit(secrets/**)", "Edit(~/**)", "Edit(/etc/**)", "Write", "Write(src/a.py)", "Read",
    "Read(secrets)", "Delete", "Move(src/**)", "Grep", "WebFetch", "WebFetch(domain:example.org)", "WebFetch(domain:*.example.org)",
    "kind:edit", "kind:execute", "kind:read", "kind:other", "mcp__a", "mcp__a__b", "Other",
]  # fmt: skip
PATHS = [
    "src/a.py",
    "src/../secrets/k",
    "secrets/k",
    "/etc/passwd",
    "~/x",
    "../x",
    ".",
    "src/a/b",
    "SRC/a.py",
    "x\0y",
    "",
    "//etc/x",
]
NAMES = [
    None,
    "Bash",
    "Edit",
    "Write",
    "Read",
    "Grep",
    "Delete",
    "Move",
    "mcp__a__b",
    "mcp__a__b__c",
    "Other",
    "WebFetch",
    "TodoWrite",
]
SEVERITY = {Verdict.DENY: 0, Verdict.ASK: 1, Verdict.ALLOW: 2}

rule_lists = st.lists(st.sampled_from(RULES), max_size=4)
all_rules = st.builds(
    lambda allow, deny, ask: Rules.parse(allow=allow, deny=deny, ask=ask), rule_lists, rule_lists, rule_lists
)
modes = st.sampled_from(PolicyMode)


def call(name: str | None, kind: ToolKind, paths: Sequence[str], command: str | None, url: str | None) -> Action:
    raw: dict[str, object] = {"paths": list(paths)}
    raw |= {} if command is None else {"command": command}
    raw |= {} if url is None else {"url": url}
    message = ToolCall(tool_call_id="t", title="git status", name=name, kind=kind, raw_input=raw)
    return Action.of_tool_call(message, CWD, [CWD], home=HOME)


urls = st.sampled_from(
    [None, "https://example.org/x", "https://a.example.org", "https://example.org@evil.example", "file:///etc/x"]
)
some_calls = st.builds(
    call,
    st.sampled_from(NAMES),
    st.sampled_from(ToolKind),
    st.lists(st.sampled_from(PATHS), max_size=2),
    st.none() | lines,
    urls,
)
actions = some_calls | lines.map(line)


@given(actions, all_rules, modes, st.randoms())
def test_the_order_of_rules_never_matters(action: Action, rules: Rules, mode: PolicyMode, random: object) -> None:
    mixed = Rules(*(tuple(shuffled(group, random)) for group in (rules.allow, rules.deny, rules.ask)))
    assert decide(action, mixed, mode).verdict is decide(action, rules, mode).verdict


def shuffled(group: tuple[Rule, ...], random: object) -> list[Rule]:
    mixed = list(group)
    random.shuffle(mixed)  # type: ignore[attr-defined]  # hypothesis gives a Random
    return mixed


@given(actions, all_rules, modes, st.sampled_from(RULES))
def test_one_more_deny_or_ask_never_permits_more(action: Action, rules: Rules, mode: PolicyMode, more: str) -> None:
    before = SEVERITY[decide(action, rules, mode).verdict]
    assert SEVERITY[decide(action, rules.merged(Rules.parse(deny=[more])), mode).verdict] <= before
    asked = decide(action, rules.merged(Rules.parse(ask=[more])), mode).verdict
    assert asked is not Verdict.ALLOW or before == SEVERITY[Verdict.ALLOW]


@given(actions, all_rules, modes, st.sampled_from(RULES))
def test_one_more_allow_never_changes_what_a_rule_denies_or_asks(
    action: Action, rules: Rules, mode: PolicyMode, more: str
) -> None:
    before = decide(action, rules, mode)
    assume(before.verdict is not Verdict.ALLOW and (before.rule is not None or mode is PolicyMode.PLAN))
    after = decide(action, rules.merged(Rules.parse(allow=[more])), mode)
    if before.rule is not None or action.kind not in ("fetch", "switch_mode"):
        assert after.verdict is before.verdict


@given(actions, all_rules)
def test_in_plan_nothing_writes_or_executes(action: Action, rules: Rules) -> None:
    if decide(action, rules, PolicyMode.PLAN).verdict is not Verdict.DENY:
        assert action.kind in ("read", "search", "think", "fetch", "switch_mode")
        assert action.command is None and action.words is None


@given(actions, all_rules)
def test_the_user_is_not_asked_in_dont_ask_and_nothing_more_is_allowed(action: Action, rules: Rules) -> None:
    usual, quiet = decide(action, rules), decide(action, rules, PolicyMode.DONT_ASK)
    assert quiet.verdict is (Verdict.ALLOW if usual.verdict is Verdict.ALLOW else Verdict.DENY)


@given(actions, all_rules)
def test_bypass_never_passes_what_a_rule_stops(action: Action, rules: Rules) -> None:
    ruling = decide(action, rules)
    if ruling.rule is not None and ruling.verdict is not Verdict.ALLOW:
        assert decide(action, rules, PolicyMode.BYPASS).verdict is ruling.verdict


@given(actions, all_rules, modes)
def test_every_ruling_has_a_reason_in_a_sentence(action: Action, rules: Rules, mode: PolicyMode) -> None:
    why = decide(action, rules, mode).why
    assert why.endswith(".") and "\n" not in why


# --- quoting ---


def spelled(word: str, ways: list[int]) -> str:
    """The word, each letter quoted in its own way."""
    return "".join([letter, f"'{letter}'", f'"{letter}"', f"\\{letter}", f"''{letter}", f'{letter}""'][way] for letter, way in zip(word, ways, strict=False))  # fmt: skip


DISGUISES = [
    "{}", "ls; {}", "ls && {}", "{} | cat", "$({})", 'echo "$({})"', "`{}`", "({})", "{{ {}; }}", "env {}", "sudo -n {}", "nohup {}",
    "X=1 {}", "! {}", "if {}; then ls; fi", "for f in a; do {}; done", "f() {{ {}; }}; f", "cat <({})", "time {}", "ls | xargs {}",
    "command {}", "echo ${{x:-$({})}}", "while {}; do ls; done", "[[ -n $({}) ]]", "{} > out", "{} &", "\n\n{}", "ls\n{}\nls", "a=$({})",
]  # fmt: skip
ways = st.lists(st.integers(0, 5), min_size=2, max_size=2)


@given(
    ways, st.lists(st.sampled_from(DISGUISES), min_size=1, max_size=3), st.sampled_from(["", "x", "-rf /", "'a b' $X"])
)
def test_no_quoting_and_no_disguise_turns_a_deny_into_an_allow(how: list[int], disguises: list[str], rest: str) -> None:
    text = f"{spelled('rm', how)} {rest}".strip()
    for disguise in disguises:
        text = disguise.format(text)
    for allow in (
        ["Bash"],
        ["Bash", "Bash(*)", "kind:execute"],
        [f"Bash({('rm ' + rest.replace('$X', '')).strip()})"],
    ):
        assert verdict(line(text), allow=allow, deny=["Bash(rm *)"]) is not Verdict.ALLOW


@given(st.text(alphabet="gitrmx ;&|$()`'\"\\\n><*{}#=~!\t-", max_size=30))
def test_what_no_rule_covers_is_asked_whatever_it_looks_like(text: str) -> None:
    assert verdict(line(text), allow=["Bash(never)"]) is Verdict.ASK


@given(st.text(max_size=40))
def test_any_text_at_all_gets_a_verdict(text: str) -> None:
    for action in (line(text), words("git", text), files(text)):
        decide(action, Rules.parse(allow=["Bash(git *)", "Edit(src/**)"], deny=["Bash(rm *)", "Edit(secrets/**)"]))
        suggest(action)


# --- paths ---

pieces = st.sampled_from(["src", "secrets", "..", ".", "", "k", "~", "home", "me", "work", "SECRETS"])
some_paths = st.builds(
    lambda start, names: start + "/".join(names),
    st.sampled_from(["", "/", "//", "./", "../"]),
    st.lists(pieces, max_size=8),
)


@given(some_paths)
def test_no_spelling_of_a_path_turns_a_deny_into_an_allow(path: str) -> None:
    real = posixpath.normpath(posixpath.join(CWD, path))
    if "secrets" in real.removeprefix("//").removeprefix(CWD).split("/") and real.lstrip("/").startswith(
        f"{CWD[1:]}/secrets"
    ):
        assert verdict(files(path), allow=["Edit", "Edit(**)"], deny=["Edit(secrets/**)"]) is Verdict.DENY


@given(some_paths)
def test_a_relative_glob_never_reaches_outside_the_roots(path: str) -> None:
    if verdict(files(path), allow=["Edit(**)"]) is Verdict.ALLOW:
        real = posixpath.normpath(posixpath.join(CWD, path)).replace("//", "/")
        assert real == CWD or real.startswith(f"{CWD}/")


# --- suggestions ---


@given(actions)
def test_a_suggestion_allows_what_was_shown(action: Action) -> None:
    if rules := suggest(action):
        assert decide(action, Rules(allow=rules)).verdict is Verdict.ALLOW


@given(lines, lines)
def test_a_suggestion_for_one_line_allows_no_other_words(shown: str, other: str) -> None:
    rules = Rules(allow=suggest(line(shown)))
    for rule in rules.allow:
        assert rule.command is not None and all(
            item is not None and item.literal is not None for item in rule.command.items
        )
    if rules.allow and decide(line(other), rules).verdict is Verdict.ALLOW:
        assert {rule.text for rule in suggest(line(other))} <= {rule.text for rule in rules.allow}
