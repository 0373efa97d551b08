"""What an agent may do: modes, rules and remembered decisions, and one pure function that decides.

Knows messages of tool calls and the words of a shell line. Reads no file, asks nobody, has no clock: who asks the user,
keeps decisions and resolves links stands above.
"""

from antiphon.policy.action import Action
from antiphon.policy.decision import Remembered, Ruling, Scope, applicable, closed_reason, decide, suggest
from antiphon.policy.rules import PolicyMode, Rule, RuleError, Rules, Verdict

__all__ = [
    "Action", "PolicyMode", "Remembered", "Rule", "RuleError", "Rules", "Ruling", "Scope", "Verdict", "applicable", "closed_reason", "decide",
    "suggest",
]  # fmt: skip
