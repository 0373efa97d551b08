"""What a reviewer may do, which may only read."""

from antiphon.policy import Action, Rules, Verdict
from antiphon.policy.decision import decide_read_only
from antiphon.policy.rules import KINDS, QUIET_KINDS
from tests.rows import each_row

EVERYTHING = [f"kind:{kind}" for kind in KINDS]


@each_row("kind", KINDS)
def test_nothing_but_looking_whatever_is_allowed(kind: str) -> None:
    ruling = decide_read_only(Action(kind=kind, claimed=(kind,)), Rules.parse(allow=EVERYTHING))
    assert (ruling.verdict is Verdict.ALLOW) == (kind in QUIET_KINDS)
    assert (
        ruling.verdict is Verdict.ALLOW or ruling.why == f"A reviewer may only read and search, and this is `{kind}`."
    )


def test_a_rule_that_denies_or_asks_holds_for_looking_too() -> None:
    looks = Action(kind="read", claimed=("read",), name="Read", paths=("/w/secret",), roots=("/w",), cwd="/w")
    for rules in (Rules.parse(deny=["Read(secret)"]), Rules.parse(ask=["Read(secret)"])):
        ruling = decide_read_only(looks, rules)
        assert ruling.verdict is Verdict.DENY and "Read(secret)" in ruling.why


def test_a_call_that_may_do_more_than_it_states_is_not_read_only() -> None:
    assert decide_read_only(Action(kind="read", unread=True), Rules()).verdict is Verdict.DENY
