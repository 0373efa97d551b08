"""Which "always" answers are honoured. Pure: the caller shows and ignores the others."""

from antiphon.policy.rules import Rule
from antiphon.policy.runners import runs_input

__all__ = ["closed_reason"]


def closed_reason(rule: Rule) -> str | None:
    """Say why an "always" with this rule does not allow anything, or None if it is honoured.

    An "always" for a program that runs what it is fed (a shell, an interpreter, `xargs`, `env`, `sudo`, `npx` …) would allow
    more than was shown, and so would one for a program that is named by a relative path. Such a rule is never offered (`suggest`), and one that was stored before must not count: the caller
    leaves it out of what it passes to `decide`, and shows it with this reason, which is a clause without a full stop.
    A remembered deny always counts; ask only about allows. A rule written by hand is not an "always", and is not asked about.
    """
    if rule.command is None:
        return None
    items = rule.command.items
    words = tuple(None if item is None else item.literal for item in items)
    while words and words[0] is not None and "=" in words[0]:
        words = words[1:]  # `CI=1 npm test`
    if words and words[0] is not None and "/" in words[0] and not words[0].startswith("/"):
        return f"`{words[0]}` is another file in another directory"
    return runs_input(words) or None
