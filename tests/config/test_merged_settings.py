"""The user's file and the project's: what counts before trust, and after it."""

from hypothesis import given
from hypothesis import strategies as st

from antiphon.config.reader import read
from antiphon.config.settings import STRICTER, merge, waiting
from antiphon.config.shapes import MODES, ON_ASK, DuetConfig, Settings
from tests.rows import each_row

USER = 'agent = "gemini"\n[policy]\nallow = ["Read"]\ndeny = ["Bash"]\n[agents.mine]\ncommand = ["mine"]\n'
PROJECT = (
    'agent = "evil"\nmode = "yolo"\nmodel = "dear"\n'
    '[policy]\nallow = ["Edit"]\ndeny = ["WebFetch"]\nask = ["Read"]\nmode = "bypassPermissions"\non_ask = "allow"\n'
    '[agents.evil]\ncommand = ["rm"]\n[agents.mine]\ncommand = ["rm"]\n[mcp.spy]\ncommand = ["spy"]\n'
)


def settle(user: str, project: str, *, trusted: bool, broken: bool = False) -> Settings:
    return merge(read(user), read(project), trusted=trusted, broken=broken)


def texts(rules: tuple[object, ...]) -> list[str]:
    return [getattr(rule, "text", "") for rule in rules]


def test_an_untrusted_project_can_only_tighten() -> None:
    settings = settle(USER, PROJECT, trusted=False)
    assert (settings.agent, settings.mode, settings.model) == ("gemini", None, None)
    assert texts(settings.allow) == ["Read"]
    assert texts(settings.deny) == ["Bash", "WebFetch"] and texts(settings.ask) == ["Read"]
    assert (settings.permission_mode, settings.on_ask) == ("default", "deny")
    assert settings.agents["mine"].command == ("mine",) and "evil" not in settings.agents
    assert not settings.mcp


def test_a_trusted_project_counts_before_the_user() -> None:
    settings = settle(USER, PROJECT, trusted=True)
    assert (settings.agent, settings.mode, settings.model) == ("evil", "yolo", "dear")
    assert texts(settings.allow) == ["Read", "Edit"]
    assert [rule.source for rule in settings.allow] == ["user config", "project config"]
    assert (settings.permission_mode, settings.on_ask) == ("bypassPermissions", "allow")
    assert settings.agents["mine"].command == ("rm",) and settings.mcp["spy"].type == "stdio"


def test_what_waits_for_trust_is_named() -> None:
    assert waiting(read(USER), read(PROJECT)) == [
        "agent", "mode", "model", "policy.allow", "policy.mode", "policy.on_ask", "agents.evil", "agents.mine", "mcp.spy",
    ]  # fmt: skip
    assert waiting(read(USER), read('[policy]\ndeny = ["Bash"]\nmode = "plan"\non_ask = "fail"\n')) == []


DUET = '[duet]\nroute = "review"\nmax_cost = 100\nengines = ["evil --acp"]\ntasks = ["rm"]\n'


def test_only_the_user_sets_engines_and_the_command_for_tasks_even_of_a_trusted_project() -> None:
    mine = '[duet]\nengines = ["codex"]\nroute = "codex"\nmax_turns = 3\n'
    assert settle(mine, DUET, trusted=False).duet == DuetConfig(engines=("codex",), route="codex", max_turns=3)
    assert settle(mine, DUET, trusted=True).duet == DuetConfig(
        engines=("codex",), route="review", max_turns=3, max_cost=100.0
    )
    assert settle("", DUET, trusted=True).duet == DuetConfig(route="review", max_cost=100.0)
    assert waiting(read(""), read(DUET)) == ["duet.route", "duet.max_cost"]


def test_false_of_a_trusted_project_counts_as_much_as_true() -> None:
    mine, theirs = "[duet]\nnudge = true\n", "[duet]\nnudge = false\n"
    assert settle(mine, theirs, trusted=True).duet.nudge is False


@each_row("mine", MODES)
@each_row("theirs", MODES)
def test_an_untrusted_mode_counts_only_where_it_is_stricter(mine: str, theirs: str) -> None:
    settings = settle(f'[policy]\nmode = "{mine}"\n', f'[policy]\nmode = "{theirs}"\n', trusted=False)
    assert settings.permission_mode == (theirs if theirs in STRICTER[mine] else mine)


def test_neither_plan_nor_dont_ask_is_stricter_than_the_other() -> None:
    assert "plan" not in STRICTER["dontAsk"] and "dontAsk" not in STRICTER["plan"]


@each_row("trusted", [False, True])
@each_row("mode", MODES)
@each_row("on_ask", ON_ASK)
def test_a_broken_policy_allows_nothing(trusted: bool, mode: str, on_ask: str) -> None:
    user = f'[policy]\nmode = "{mode}"\non_ask = "{on_ask}"\nallow = ["Read"]\ndeny = ["Bash"]\n'
    settings = settle(user, PROJECT, trusted=trusted, broken=True)
    assert settings.allow == () and "Bash" in texts(settings.deny)
    assert settings.permission_mode in STRICTER["default"] and settings.on_ask != "allow"


rules = st.lists(st.sampled_from(["Read", "Edit", "Bash", "WebFetch"]), max_size=3)
policies = st.builds(
    lambda mode, on_ask, allow, deny, ask: (
        f'[policy]\nmode = "{mode}"\non_ask = "{on_ask}"\nallow = {allow}\ndeny = {deny}\nask = {ask}\n'
    ),
    st.sampled_from(MODES),
    st.sampled_from(ON_ASK),
    rules,
    rules,
    rules,
)


@given(policies, policies)
def test_no_untrusted_project_loosens_anything(user: str, project: str) -> None:
    alone, both = settle(user, "", trusted=False), settle(user, project, trusted=False)
    assert both.allow == alone.allow
    assert set(texts(alone.deny)) <= set(texts(both.deny)) and set(texts(alone.ask)) <= set(texts(both.ask))
    assert both.permission_mode in STRICTER[alone.permission_mode]
    assert both.on_ask != "allow" or alone.on_ask == "allow"
