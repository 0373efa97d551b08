"""The decision: a pure function of the action, the rules, the mode and what is remembered.

1. `plan`: nothing writes or executes.
2. A deny rule that matches denies. One that may match, because the action cannot be read for sure, asks.
3. An ask rule that matches, or may match, asks.
4. Allow rules that cover every part allow.
5. What is remembered: a deny denies, allows (together with the allow rules) allow.
6. The mode. `dontAsk` then turns every ask into a deny.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec

from antiphon.policy.action import Action
from antiphon.policy.arguments import runs_input
from antiphon.policy.match import RuleMatcher, host_of
from antiphon.policy.paths import inside
from antiphon.policy.patterns import Match, escape, quoted
from antiphon.policy.rules import (
    FILE_KINDS,
    KIND_OF,
    PATH_TOOLS,
    QUIET_KINDS,
    PolicyMode,
    Rule,
    RuleError,
    Rules,
    Verdict,
)

__all__ = [
    "READ_ONLY_MODE",
    "Remembered",
    "Ruling",
    "Scope",
    "applicable",
    "closed_reason",
    "covers",
    "decide",
    "decide_read_only",
    "read_only_rules",
    "suggest",
]

# --- remembered decisions: they hold until they are revoked or expire

Scope = Literal["session", "project", "everywhere"]


class Remembered(msgspec.Struct, frozen=True):
    """An "always" answer: for one session, for one project (its directory), or everywhere. `expires_at` is an ISO 8601 time."""

    rule: Rule
    verdict: Verdict
    scope: Scope = "session"
    session_id: str | None = None
    project: str | None = None
    expires_at: str | None = None
    id: str = ""

    def holds(self, now: datetime | None) -> bool:
        """Whether it still counts. Where that is not known, an allow does not and a deny does."""
        if self.expires_at is None:
            return True
        unknown = self.verdict is not Verdict.ALLOW
        if now is None:
            return unknown
        try:
            return _aware(now) < _aware(datetime.fromisoformat(self.expires_at))
        except ValueError:
            return unknown


def applicable(
    remembered: Iterable[Remembered], *, session_id: str | None = None, project: str | None = None
) -> tuple[Remembered, ...]:
    """The remembered decisions that are about this session or project, or about everything."""
    return tuple(
        one
        for one in remembered
        if one.scope == "everywhere"
        or (one.scope == "session" and one.session_id is not None and one.session_id == session_id)
        or (one.scope == "project" and one.project is not None and one.project == project)
    )


def _aware(time: datetime) -> datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


_PLAN_KINDS: Final = QUIET_KINDS | {"fetch", "switch_mode"}
"""What `plan` leaves to the rules: looking, and leaving `plan`, which the user is asked about."""

_MODE: Final = "mode"
_REMEMBERED: Final = "remembered"


class Ruling(msgspec.Struct, frozen=True):
    """A verdict, the rule that gave it if one did, where that stands, and why in one sentence."""

    verdict: Verdict
    rule: Rule | None
    source: str
    why: str
    doubt: bool = False
    """Whether it asks because a denial may apply, or because something could not be read: only a person may allow it then."""


def decide(
    action: Action,
    rules: Rules,
    mode: PolicyMode = PolicyMode.DEFAULT,
    remembered: Iterable[Remembered] = (),
    now: datetime | None = None,
) -> Ruling:
    """Decide. `remembered` are those of this session and project (`applicable`); without `now` an allow that expires is over."""
    mode = PolicyMode(mode)  # a plain string would compare equal and never be identical
    ruling = _decide(action, rules, mode, remembered, now)
    if mode is PolicyMode.DONT_ASK and ruling.verdict is Verdict.ASK:
        return Ruling(
            Verdict.DENY, ruling.rule, ruling.source, f"{ruling.why} `dontAsk` does not ask, so it is denied."
        )
    return ruling


def _decide(
    action: Action, rules: Rules, mode: PolicyMode, remembered: Iterable[Remembered], now: datetime | None
) -> Ruling:
    if mode is PolicyMode.PLAN and action.kind not in _PLAN_KINDS:
        return Ruling(Verdict.DENY, None, _MODE, f"In `plan` nothing writes or executes, and this is `{action.kind}`.")
    matcher = RuleMatcher(action)
    return (
        _denied(matcher, rules.deny)
        or _asked(matcher, rules.ask)
        or _allowed(matcher, rules.allow)
        or _as_remembered(matcher, rules.allow, [one for one in remembered if one.holds(now)])
        or _by_mode(matcher, rules, mode)
    )


def _denied(matcher: RuleMatcher, rules: Iterable[Rule], source: str | None = None) -> Ruling | None:
    perhaps: Rule | None = None
    for rule in rules:
        match = matcher.forbids(rule)
        if match is Match.YES:
            return Ruling(Verdict.DENY, rule, source or rule.source, f"The rule `{rule}` denies it.")
        if match is Match.MAYBE:
            perhaps = perhaps or rule
    if perhaps is None:
        return None
    why = f"The rule `{perhaps}` may deny it{_unclear(matcher, perhaps)}."
    return Ruling(Verdict.ASK, perhaps, source or perhaps.source, why, doubt=True)


def _asked(matcher: RuleMatcher, rules: Iterable[Rule]) -> Ruling | None:
    for rule in rules:
        match = matcher.forbids(rule)
        if match is not Match.NO:
            verb = "asks" if match is Match.YES else "may ask"
            why = f"The rule `{rule}` {verb} about it{_unclear(matcher, rule) if match is Match.MAYBE else ''}."
            return Ruling(Verdict.ASK, rule, rule.source, why)
    return None


def _allowed(matcher: RuleMatcher, rules: tuple[Rule, ...]) -> Ruling | None:
    rule = matcher.permitted_by(rules)
    return None if rule is None else Ruling(Verdict.ALLOW, rule, rule.source, f"The rule `{rule}` allows it.")


def _as_remembered(matcher: RuleMatcher, allow: tuple[Rule, ...], remembered: list[Remembered]) -> Ruling | None:
    if not remembered:
        return None
    if denied := _denied(matcher, (one.rule for one in remembered if one.verdict is not Verdict.ALLOW), _REMEMBERED):
        return denied
    allowed = tuple(one.rule for one in remembered if one.verdict is Verdict.ALLOW)
    if rule := matcher.permitted_by(allowed + allow):
        return Ruling(Verdict.ALLOW, rule, _REMEMBERED, f"It was allowed before, as `{rule}`.")
    return None


def _by_mode(matcher: RuleMatcher, rules: Rules, mode: PolicyMode) -> Ruling:
    action = matcher.action
    if mode is PolicyMode.BYPASS:
        return Ruling(Verdict.ALLOW, None, _MODE, "In `bypassPermissions` everything is allowed that no rule stops.")
    if action.kind in QUIET_KINDS and not action.unread:
        return Ruling(Verdict.ALLOW, None, _MODE, f"`{action.kind}` is allowed in every mode.")
    if mode is PolicyMode.ACCEPT_EDITS and _is_work_on_files(action):
        if not all(inside(path, action.roots) for path in action.paths):
            return Ruling(Verdict.ASK, None, _MODE, "It reaches outside the session's directories.")
        if matcher.protected:
            return Ruling(
                Verdict.ASK, None, _MODE, f"{_protected_because(matcher.protected)} `acceptEdits` asks about it."
            )
        return Ruling(
            Verdict.ALLOW, None, _MODE, "In `acceptEdits` work on files inside the session's directories is allowed."
        )
    asks = f"No rule decides about it, and the policy mode `{mode}` asks about `{action.kind}`."
    words = "No rule allows it." if mode is PolicyMode.DONT_ASK else asks
    return Ruling(Verdict.ASK, None, _MODE, f"{words}{_hint(matcher, rules)}")


def _is_work_on_files(action: Action) -> bool:
    return bool(action.paths) and not action.unread and (action.kind in FILE_KINDS or action.plain_files)


def _protected_because(name: str) -> str:
    return f"A file of this name (`{name}`) can name programs that run later:"


def _unclear(matcher: RuleMatcher, rule: Rule) -> str:
    if rule.command is not None:
        return f": {matcher.doubt(rule)}"
    return ": what it touches cannot be determined for sure"


def _hint(matcher: RuleMatcher, rules: Rules) -> str:
    """Why allow rules did not help, if there are any: that is what users want to know then."""
    if (
        matcher.action.kind in FILE_KINDS
        and matcher.protected
        and any(matcher.covers_but_for_protection(rule) for rule in rules.allow)
    ):
        return f" {_protected_because(matcher.protected)} no wildcard covers it, so a rule has to name it."
    if (
        matcher.action.kind in FILE_KINDS
        and matcher.action.unread
        and any(rule.path is not None for rule in rules.allow)
    ):
        return " Its input has more than can be read for sure, so no pattern covers it."
    if matcher.action.tool != "Bash" or not any(rule.command is not None for rule in rules.allow):
        return ""
    if matcher.protected and not matcher.uncovered:
        return f" Its patterns do not cover `{matcher.protected}`, which can name programs that run later: a rule has to name it."
    missing = matcher.missing(rules.allow)
    return f" No pattern covers it: {missing}." if missing else ""


# --- "always" answers: which are honoured, and the narrowest rules that cover what was shown


def closed_reason(rule: Rule) -> str | None:
    """Return why an "always" with this rule does not allow anything, or None if it is honoured.

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
    if words and words[0] is not None and words[0].startswith("-"):
        return f"`{words[0]}` is an option, and no program"
    return runs_input(words) or None


SOURCE = "always"


def suggest(action: Action) -> tuple[Rule, ...]:
    """Rules that together allow this action and nothing that differs from it. Empty: only "once" can be offered."""
    matcher = RuleMatcher(action)
    texts = _texts(action, matcher)
    try:
        rules = tuple(Rule.parse(text, SOURCE) for text in dict.fromkeys(texts))
    except RuleError:  # a path that no glob can express
        return ()
    if any(closed_reason(rule) for rule in rules):
        return ()
    # What is offered has to work: a rule that would not allow this very action is not offered.
    return rules if rules and matcher.permitted_by(rules) is not None else ()


def covers(action: Action, rules: Sequence[Rule]) -> bool:
    """Return whether these rules together would allow an action, if they were allow rules."""
    return RuleMatcher(action).permitted_by(rules) is not None


def _texts(action: Action, matcher: RuleMatcher) -> list[str]:
    tool = action.tool
    if tool is not None and KIND_OF[tool] != action.kind:
        return []
    if tool == "Bash":
        return [] if matcher.uncovered else _commands(matcher)
    if tool in PATH_TOOLS:
        return [f"{tool}({escape(path)})" for path in action.paths]
    if tool == "WebFetch":
        host = host_of(action.url)
        return [f"WebFetch(domain:{host})"] if host else []
    name = action.name
    # A custom tool: its name is all that a rule can match.
    return (
        [name]
        if name is not None and tool is None and name.replace("_", "").replace("-", "").isalnum() and name.isascii()
        else []
    )


def _commands(matcher: RuleMatcher) -> list[str]:
    """A rule for each command of a line. A program that is named by a relative path is named by its whole path: it is that file."""
    texts = []
    for at, part in enumerate(matcher.line.parts):
        if None in part.words:
            continue
        whole = matcher.whole_program(at)
        texts.append(
            _command(part.words if whole is None else (*part.words[: part.settings], whole, *part.command[1:]))
        )
    return texts


def _command(words: tuple[str | None, ...]) -> str:
    return f"Bash({' '.join(quoted(word) for word in words if word is not None)})"


# --- read-only: what a reviewer may do
# Rule 1: reading, searching and thinking, as far as no rule denies it or asks about it.
# Rule 2: nothing else, whatever a rule, a remembered decision or a mode allows; and the user is not asked.

READ_ONLY_MODE: Final = PolicyMode.DONT_ASK
"""The mode that, together with `read_only_rules`, allows just that."""


def read_only_rules(rules: Rules) -> Rules:
    """The rules that hold for a reviewer: all but those that allow something."""
    return Rules(deny=rules.deny, ask=rules.ask)


def decide_read_only(action: Action, rules: Rules) -> Ruling:
    """Decide about an action of a reviewer, which may only read."""
    ruling = decide(action, read_only_rules(rules), READ_ONLY_MODE)
    if ruling.verdict is Verdict.ALLOW or ruling.rule is not None:
        return ruling
    return Ruling(
        Verdict.DENY, None, ruling.source, f"A reviewer may only read and search, and this is `{action.kind}`."
    )
