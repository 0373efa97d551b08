"""What to do about things that were denied because nobody was there: the rule that would allow them, or what is in its way."""

import os
import shlex
from typing import TYPE_CHECKING, Final

from antiphon.permission.settings import BROKEN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.permission.gate import Denial
    from antiphon.policy import Action

__all__ = ["denied_line", "remedy"]

_OTHERWISE: Final = (
    (BROKEN, "mend the config file that the warning names"),
    ("the shell grammar is not installed", "pip install 'antiphon[policy]', which reads command lines"),
    (
        "What was decided before cannot be read.",
        "`antiphon doctor` says what is wrong with the database",
    ),
    ("cannot be understood; `antiphon policy revoke", "revoke that decision, as it says above"),
)
"""Reasons that stand in the way of any rule, and what helps instead."""

RULES: Final = 3
"""Rules that are named; more are no hint any more."""


def denied_line(denials: "Sequence[Denial]", count: int) -> str:
    """How much was denied because nobody was there, and how it would not be. `denials` may be the first of them only."""
    unasked = [denial for denial in denials if denial.unattended]
    what = "one thing was" if count == 1 else f"{count} things were"
    return f"{what} denied because nobody was there to ask (exit status 5); {remedy(unasked)}"


def remedy(denials: "Sequence[Denial]") -> str:
    """What would help."""
    for denial in denials:
        for reason, help in _OTHERWISE:
            if reason in denial.why:
                return help
    rules = list(dict.fromkeys(rule for denial in denials for rule in _rules(denial.action)))
    if not rules or len(rules) > RULES:
        return "`--allow RULE` allows what a rule names, `--on-ask allow` everything that would be asked"
    words = " ".join(f"--allow {shlex.quote(rule)}" for rule in rules)
    return f"`{words}` allows it"


def _rules(action: "Action") -> list[str]:
    """The rules that would have allowed this, as short as they can be said here; none if they would not."""
    from antiphon.policy import suggest

    told = [rule.text for rule in suggest(action)]
    near = [text.replace(f"({os.path.join(action.cwd, '')}", "(") for text in told]
    return next((texts for texts in (near, told) if texts and _allowed(action, texts)), [])


def _allowed(action: "Action", texts: list[str]) -> bool:
    from antiphon.policy import PolicyMode, RuleError, Rules, Verdict, decide

    try:
        rules = Rules.parse(allow=texts, source="command line")
    except RuleError:
        return False
    return decide(action, rules, PolicyMode.DEFAULT).verdict is Verdict.ALLOW
