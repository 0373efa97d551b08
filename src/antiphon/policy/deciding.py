"""The decision: a pure function of the action, the rules, the mode and what is remembered.

1. `plan`: nothing writes or executes.
2. A deny rule that matches denies. One that may match, because the action cannot be read for sure, asks.
3. An ask rule that matches, or may match, asks.
4. Allow rules that cover every part allow.
5. What is remembered: a deny denies, allows (together with the allow rules) allow.
6. The mode. `dontAsk` then turns every ask into a deny.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from antiphon.policy.action import Action
from antiphon.policy.judging import Judge
from antiphon.policy.remembered import Remembered
from antiphon.policy.rules import Rule, Rules
from antiphon.policy.tools import FILE_KINDS, QUIET_KINDS
from antiphon.policy.verdicts import Match, Mode, Verdict
from antiphon.policy.where import inside

__all__ = ["Ruling", "decide"]

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
    mode: Mode = Mode.DEFAULT,
    remembered: Iterable[Remembered] = (),
    now: datetime | None = None,
) -> Ruling:
    """Decide. `remembered` are those of this session and project (`applicable`); without `now` an allow that expires is over."""
    mode = Mode(mode)  # a plain string would compare equal and never be identical
    ruling = _decide(action, rules, mode, remembered, now)
    if mode is Mode.DONT_ASK and ruling.verdict is Verdict.ASK:
        return Ruling(
            Verdict.DENY, ruling.rule, ruling.source, f"{ruling.why} In `dontAsk` nobody is asked, so it is denied."
        )
    return ruling


def _decide(action: Action, rules: Rules, mode: Mode, remembered: Iterable[Remembered], now: datetime | None) -> Ruling:
    if mode is Mode.PLAN and action.kind not in _PLAN_KINDS:
        return Ruling(Verdict.DENY, None, _MODE, f"In `plan` nothing writes or executes, and this is `{action.kind}`.")
    judge = Judge(action)
    return (
        _denied(judge, rules.deny)
        or _asked(judge, rules.ask)
        or _allowed(judge, rules.allow)
        or _as_remembered(judge, rules.allow, [one for one in remembered if one.holds(now)])
        or _by_mode(judge, rules, mode)
    )


def _denied(judge: Judge, rules: Iterable[Rule], source: str | None = None) -> Ruling | None:
    perhaps: Rule | None = None
    for rule in rules:
        match = judge.forbids(rule)
        if match is Match.YES:
            return Ruling(Verdict.DENY, rule, source or rule.source, f"The rule `{rule}` denies it.")
        if match is Match.MAYBE:
            perhaps = perhaps or rule
    if perhaps is None:
        return None
    why = f"The rule `{perhaps}` may deny it{_unclear(judge, perhaps)}."
    return Ruling(Verdict.ASK, perhaps, source or perhaps.source, why, doubt=True)


def _asked(judge: Judge, rules: Iterable[Rule]) -> Ruling | None:
    for rule in rules:
        match = judge.forbids(rule)
        if match is not Match.NO:
            verb = "asks" if match is Match.YES else "may ask"
            why = f"The rule `{rule}` {verb} about it{_unclear(judge, rule) if match is Match.MAYBE else ''}."
            return Ruling(Verdict.ASK, rule, rule.source, why)
    return None


def _allowed(judge: Judge, rules: tuple[Rule, ...]) -> Ruling | None:
    rule = judge.permitted_by(rules)
    return None if rule is None else Ruling(Verdict.ALLOW, rule, rule.source, f"The rule `{rule}` allows it.")


def _as_remembered(judge: Judge, allow: tuple[Rule, ...], remembered: list[Remembered]) -> Ruling | None:
    if not remembered:
        return None
    if denied := _denied(judge, (one.rule for one in remembered if one.verdict is not Verdict.ALLOW), _REMEMBERED):
        return denied
    allowed = tuple(one.rule for one in remembered if one.verdict is Verdict.ALLOW)
    if rule := judge.permitted_by(allowed + allow):
        return Ruling(Verdict.ALLOW, rule, _REMEMBERED, f"It was allowed before, as `{rule}`.")
    return None


def _by_mode(judge: Judge, rules: Rules, mode: Mode) -> Ruling:
    action = judge.action
    if mode is Mode.BYPASS:
        return Ruling(Verdict.ALLOW, None, _MODE, "In `bypassPermissions` everything is allowed that no rule stops.")
    if action.kind in QUIET_KINDS and not action.unread:
        return Ruling(Verdict.ALLOW, None, _MODE, f"`{action.kind}` is allowed in every mode.")
    if mode is Mode.ACCEPT_EDITS and _is_work_on_files(action):
        if not all(inside(path, action.roots) for path in action.paths):
            return Ruling(Verdict.ASK, None, _MODE, "It reaches outside the session's folders.")
        if judge.protected:
            return Ruling(
                Verdict.ASK, None, _MODE, f"{_protected_because(judge.protected)} `acceptEdits` asks about it."
            )
        return Ruling(
            Verdict.ALLOW, None, _MODE, "In `acceptEdits` work on files inside the session's folders is allowed."
        )
    return Ruling(
        Verdict.ASK,
        None,
        _MODE,
        f"No rule decides about it, and `{mode}` asks about `{action.kind}`.{_hint(judge, rules)}",
    )


def _is_work_on_files(action: Action) -> bool:
    return bool(action.paths) and not action.unread and (action.kind in FILE_KINDS or action.plain_files)


def _protected_because(name: str) -> str:
    return f"A file of this name (`{name}`) can name programs that run later:"


def _unclear(judge: Judge, rule: Rule) -> str:
    if rule.command is not None:
        return f": {judge.doubt(rule)}"
    return ": what it touches cannot be told for sure"


def _hint(judge: Judge, rules: Rules) -> str:
    """Why allow rules did not help, if there are any: the question everybody asks then."""
    if (
        judge.action.kind in FILE_KINDS
        and judge.protected
        and any(judge.covers_but_for_protection(rule) for rule in rules.allow)
    ):
        return f" {_protected_because(judge.protected)} no wildcard covers it, so a rule has to name it."
    if judge.action.kind in FILE_KINDS and judge.action.unread and any(rule.path is not None for rule in rules.allow):
        return " Its input says more than can be read for sure, so no pattern covers it."
    if judge.action.tool != "Bash" or not any(rule.command is not None for rule in rules.allow):
        return ""
    if judge.protected and not judge.uncovered:
        return f" Its patterns do not cover `{judge.protected}`, which can name programs that run later: a rule has to name it."
    missing = judge.missing(rules.allow)
    return f" No pattern covers it: {missing}." if missing else ""
