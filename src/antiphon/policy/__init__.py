"""What an agent may do: modes, rules and remembered decisions, and one pure function that decides.

Knows messages of tool calls and the words of a shell line. Reads no file, asks nobody, has no clock: who asks the user,
keeps decisions and resolves links stands above.
"""

from antiphon.policy.action import Action
from antiphon.policy.always import closed_reason
from antiphon.policy.deciding import Ruling, decide
from antiphon.policy.remembered import Remembered, Scope, applicable
from antiphon.policy.rules import Rule, RuleError, Rules
from antiphon.policy.suggesting import suggest
from antiphon.policy.verdicts import Mode, Verdict

__all__ = [
    "Action", "Mode", "Remembered", "Rule", "RuleError", "Rules", "Ruling", "Scope", "Verdict", "applicable", "closed_reason", "decide",
    "suggest",
]  # fmt: skip
