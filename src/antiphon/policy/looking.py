"""What somebody may do who only looks, as a reviewer does. Pure.

Rule 1: reading, searching and thinking, as far as no rule denies it or asks about it.
Rule 2: nothing else, whatever a rule, a memory or a mode allows; and nobody is asked.
"""

from typing import Final

from antiphon.policy.action import Action
from antiphon.policy.deciding import Ruling, decide
from antiphon.policy.rules import Rules
from antiphon.policy.verdicts import Mode, Verdict

__all__ = ["MODE", "judge_onlooker", "rules_of_onlooker"]

MODE: Final = Mode.DONT_ASK
"""The mode that, together with those rules, comes to just that."""


def rules_of_onlooker(rules: Rules) -> Rules:
    """The rules that hold for them: all but those that allow something."""
    return Rules(deny=rules.deny, ask=rules.ask)


def judge_onlooker(action: Action, rules: Rules) -> Ruling:
    """Whether somebody may do this who only looks."""
    ruling = decide(action, rules_of_onlooker(rules), MODE)
    if ruling.verdict is Verdict.ALLOW or ruling.rule is not None:
        return ruling
    return Ruling(
        Verdict.DENY, None, ruling.source, f"Who only looks may read and search, and this is `{action.kind}`."
    )
