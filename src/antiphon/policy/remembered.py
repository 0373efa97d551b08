"""Decisions that were made once and hold until they are revoked or expire."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Literal

import msgspec

from antiphon.policy.rules import Rule
from antiphon.policy.verdicts import Verdict

__all__ = ["Remembered", "Scope", "applicable"]

Scope = Literal["session", "project", "everywhere"]


class Remembered(msgspec.Struct, frozen=True):
    """An "always" answer: for one session, for one project (its folder), or everywhere. `expires_at` is an ISO 8601 time."""

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
    """Those that are about this session or project, or about everything."""
    return tuple(
        one
        for one in remembered
        if one.scope == "everywhere"
        or (one.scope == "session" and one.session_id is not None and one.session_id == session_id)
        or (one.scope == "project" and one.project is not None and one.project == project)
    )


def _aware(time: datetime) -> datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)
