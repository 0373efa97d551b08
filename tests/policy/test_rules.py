"""Rules as they are written: what they mean, and how nonsense is refused."""

import pytest

from antiphon.errors import AcpError
from antiphon.policy import Action, Rule, RuleError, Rules, Verdict
from antiphon.protocol.v1.tools import ToolCall, ToolKind
from tests.policy.short import CWD, files, line, ruling, verdict
from tests.rows import each_row


@each_row(
    ("text", "word"),
    [
        ("", "form"), ("Bash(git *", "form"), ("Bash git", "form"), ("(x)", "form"), ("*", "form"), ("kind:paint", "kind"),
        ("Bash()", "empty"), ("Bash( )", "empty"), ("Bash(a; b)", ";"), ("Bash(a | b)", "|"), ("Bash(a > b)", ">"),
        ("Bash(echo $HOME)", "$"), ("Bash(a 'b)", "quote"), ('Bash(a "b)', "quote"), ("Bash(a \\)", "backslash"),
        ("Edit()", "empty"), ("Edit(../x)", "`..`"), ("Edit(src/**.py)", "`**`"), ("Edit(~root/x)", "home"),
        ("WebFetch(example.org)", "domain"), ("WebFetch(domain:)", "domain"), ("WebFetch(domain:a b)", "domain"),
        ("TodoWrite(x)", "pattern"), ("mcp__a__b(x)", "pattern"), ("mcp__*__b", "form"), ("Other(x)", "pattern"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_a_hint(text: str, word: str) -> None:
    with pytest.raises(RuleError) as caught:
        Rule.parse(text)
    first, hint = str(caught.value).split("\n")
    assert first.startswith(f"`{text}` is not a rule: ") and word in first
    assert hint.startswith("hint: ")
    assert isinstance(caught.value, AcpError)


def test_a_rule_keeps_what_was_written_and_where() -> None:
    rule = Rule.parse("  Bash(git *) ", "user config")
    assert (rule.text, str(rule), rule.source) == ("Bash(git *)", "Bash(git *)", "user config")


def test_merged_rules_keep_their_sources() -> None:
    rules = Rules.parse(deny=["Read"], source="user config").merged(Rules.parse(deny=["Edit"], source="command line"))
    assert [rule.source for rule in rules.deny] == ["user config", "command line"]


def named(name: str, kind: ToolKind = ToolKind.OTHER) -> Action:
    return Action.of_tool_call(ToolCall(tool_call_id="t", title="x", name=name, kind=kind), CWD, [CWD])


@each_row(
    ("rule", "name", "allowed", "denied"),
    [
        ("mcp__a__b", "mcp__a__b", True, True),
        ("mcp__a__b", "mcp__a__c", False, False),
        ("mcp__a", "mcp__a__b", True, True),
        ("mcp__a__*", "mcp__a__b", True, True),
        ("mcp__a", "mcp__ab__c", False, False),
        ("mcp__a", "mcp__a__b__c", False, True),  # perhaps a server that calls itself `a__b`
        ("Deploy", "Deploy", True, True),
        ("Deploy", "deploy", False, True),
        ("Deploy", "DeployAll", False, False),
    ],
)
def test_tools_go_by_their_names(rule: str, name: str, allowed: bool, denied: bool) -> None:
    assert (verdict(named(name), allow=[rule]) is Verdict.ALLOW) is allowed
    assert (verdict(named(name), deny=[rule]) is Verdict.DENY) is denied


def test_a_rule_for_edits_covers_every_tool_that_edits() -> None:
    for name in ("Edit", "Write", "MultiEdit", "NotebookEdit", "write_file", "apply_patch"):
        assert verdict(files("src/a.py", name=name), allow=["Edit(src/**)"]) is Verdict.ALLOW
    assert verdict(files("src/a.py", name="Edit"), allow=["Write(src/**)"]) is Verdict.ASK


def test_agents_own_names_for_the_shell_are_known() -> None:
    for name in ("Bash", "bash", "run_shell_command", "exec_command", "shell", None):
        call = ToolCall(tool_call_id="t", title="x", name=name, kind=ToolKind.EXECUTE, raw_input={"command": "git log"})
        assert verdict(Action.of_tool_call(call, CWD, [CWD]), allow=["Bash(git *)"]) is Verdict.ALLOW


@each_row(
    ("url", "allowed", "denied"),
    [
        ("https://example.org/x?y#z", Verdict.ALLOW, Verdict.DENY),
        ("HTTPS://EXAMPLE.ORG.:443/", Verdict.ALLOW, Verdict.DENY),
        ("https://sub.example.org/", Verdict.ASK, Verdict.ASK),
        ("https://example.org.evil.example/", Verdict.ASK, Verdict.ASK),
        ("https://example.org@evil.example/", Verdict.ASK, Verdict.ASK),
        ("https://evil.example\\@example.org/", Verdict.ASK, Verdict.ASK),
        ("https://example.org\n.evil.example/", Verdict.ASK, Verdict.ASK),
        ("ftp://example.org/", Verdict.ASK, Verdict.ASK),
        ("example.org", Verdict.ASK, Verdict.ASK),
    ],
)
def test_addresses_go_by_a_host_that_all_programs_read_alike(url: str, allowed: Verdict, denied: Verdict) -> None:
    call = ToolCall(tool_call_id="t", title="x", name="WebFetch", kind=ToolKind.FETCH, raw_input={"url": url})
    action = Action.of_tool_call(call, CWD, [CWD])
    assert verdict(action, allow=["WebFetch(domain:example.org)"]) is allowed
    assert verdict(action, deny=["WebFetch(domain:example.org)"]) is denied


def test_a_star_before_a_domain_means_all_below_it() -> None:
    call = ToolCall(tool_call_id="t", title="x", kind=ToolKind.FETCH, raw_input={"url": "https://a.b.example.org"})
    action = Action.of_tool_call(call, CWD, [CWD])
    assert verdict(action, allow=["WebFetch(domain:*.example.org)"]) is Verdict.ALLOW
    assert verdict(action, allow=["WebFetch(domain:example.org)"]) is Verdict.ASK


def test_the_ruling_names_the_rule_and_its_source() -> None:
    found = ruling(line("git push"), allow=["Bash"], deny=["Bash(git push *)"])
    assert (str(found.rule), found.source, found.why) == (
        "Bash(git push *)",
        "test",
        "The rule `Bash(git push *)` denies it.",
    )


def test_a_pattern_that_did_not_help_is_explained() -> None:
    assert ruling(line("git log > x"), allow=["Bash(git *)"]).why.endswith(
        "No pattern covers it: it has a redirection."
    )
    assert "`ls` matches no pattern" in ruling(line("git log; ls"), allow=["Bash(git *)"]).why
    why = ruling(line("git log; git -c core.pager=x diff"), allow=["Bash(git *)"]).why
    assert "`git -c core.pager=x diff` has `-c`, which a `*` does not cover" in why
    fed = ruling(line("echo rm -rf x | sh"), allow=["Bash(echo *)", "Bash(sh)"])
    assert fed.verdict is Verdict.ASK and "`sh` may run what it is fed" in fed.why
