"""What an agent may do: modes, rules and remembered decisions, and one pure function that decides.

It knows the messages of tool calls and the words of a shell line. It reads no file, asks no user and has no clock:
`antiphon.permission` asks the user, stores decisions and follows links.

    decision.py        `decide`: the verdict on an action; remembered decisions, "always" rules, read-only actions
    rules.py           rules as people write them, modes, verdicts, and the names and kinds of tools
    action.py          what an agent wants to do, built from a message
    inputs.py          what the raw input of a tool call contains: a command, paths, an address
    match.py           whether a rule matches an action: perhaps for a deny, surely for an allow
    patterns.py        command lines, globs on paths and words, and patterns of commands
    shell.py           a shell line read with a real grammar, each word unquoted as bash does it
    nested.py          commands inside others: `sudo rm x`, `sh -c 'rm x'`, `find -exec rm {} ;`
    programs.py        names of programs that start others, and variables that change nothing
    arguments.py       which arguments of common programs are harmless
    grammar.py         the allow-list of options and operands that `arguments.py` is written in
    git_arguments.py   the arguments of `git`
    text_tools.py      the scripts of `sed` and `awk`
    protected.py       files that name programs to run, or set what is allowed
    paths.py           paths as agents write them, made absolute and real
"""

from antiphon.policy.action import Action
from antiphon.policy.decision import Remembered, Ruling, Scope, applicable, closed_reason, covers, decide, suggest
from antiphon.policy.rules import PolicyMode, Rule, RuleError, Rules, Verdict

__all__ = [
    "Action", "PolicyMode", "Remembered", "Rule", "RuleError", "Rules", "Ruling", "Scope", "Verdict", "applicable", "closed_reason", "covers",
    "decide",
    "suggest",
]  # fmt: skip
