"""What the gate remembers: in the store where there is one, else for as long as it lives."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from antiphon.errors import Advice
from antiphon.policy import Remembered, Rule, RuleError, Verdict, applicable, closed_reason
from antiphon.store.database import stamp
from antiphon.store.decisions import Decision, scope_key
from antiphon.store.errors import StoreError

if TYPE_CHECKING:
    from antiphon.store.decisions import DecisionStore, Scope
    from antiphon.store.decisions import Verdict as StoredVerdict

__all__ = ["Memory", "forget_closed"]

_log = logging.getLogger(__name__)


class Memory:
    """Remembered answers, as the policy takes them."""

    def __init__(self, decisions: "DecisionStore | None", agent: str) -> None:
        self._decisions = decisions
        self._agent = agent
        self._own: list[Remembered] = []
        self._made = 0

    @property
    def is_stored(self) -> bool:
        """Whether what is remembered outlives the gate."""
        return self._decisions is not None

    async def recall(self, session_id: str, project: str) -> tuple[list[Remembered], str]:
        """What holds in this session of this project, and why that may not be all (empty if it is)."""
        if self._decisions is None:
            return [*applicable(self._own, session_id=session_id, project=project)], ""
        try:
            rows = await self._decisions.valid(session_id, project, agent=self._agent)
        except StoreError as error:
            _log.error("what was decided before cannot be read, so everything is asked: %s", error)
            return [], "What was decided before cannot be read."
        found, doubt = [], ""
        for row in rows:
            try:
                one = _read(row)
                if not _closed(one):
                    found.append(one)
            except (RuleError, ValueError) as error:
                _log.error("decision %d cannot be understood, so everything is asked: %s", row.id, error)
                doubt = f"Decision {row.id} cannot be understood; `antiphon policy revoke {row.id}` removes it."
        return found, doubt

    async def keep(
        self,
        rules: Sequence[Rule],
        verdict: Verdict,
        scope: "Scope",
        *,
        session_id: str,
        project: str,
        expires_at: str | None,
    ) -> bool:
        """Remember an answer. False: it could not be stored, or no rule expresses what to remember."""
        try:
            if expires_at is not None:
                expires_at = stamp(datetime.fromisoformat(expires_at))
            for rule in rules:
                await self._keep(rule, verdict, scope, session_id, project, expires_at)
        except (StoreError, ValueError) as error:
            _log.error("the answer could not be remembered: %s", error)
            return False
        return bool(rules)

    async def _keep(
        self, rule: Rule, verdict: Verdict, scope: "Scope", session_id: str, project: str, expires_at: str | None
    ) -> None:
        about = {"session_id": session_id, "project": project, "agent": self._agent}
        if self._decisions is not None:
            word = cast("StoredVerdict", verdict.value)
            await self._decisions.remember(rule.text, word, scope, **about, expires_at=expires_at)
            return
        about |= scope_key(scope, session_id, project)
        at = stamp(datetime.now(UTC))
        self._made += 1
        row = Decision(self._made, rule.text, verdict.value, scope, **about, made_at=at, expires_at=expires_at)
        made = _read(row)
        self._own = [one for one in self._own if _key(one) != _key(made)] + [made]


async def forget_closed(decisions: "DecisionStore") -> list[Advice]:
    """Remove stored answers that allow more than was shown, and return a sentence about each for the user.

    They do not count in any case; this is for the start of a program, so that the user is shown them once.
    """
    texts = []
    try:
        for row in await decisions.all() if decisions.database.path.exists() else ():
            try:
                reason = _closed(_read(row))
            except (RuleError, ValueError):
                continue  # `recall` reports it
            if reason:
                await decisions.revoke(row.id)
                texts.append(
                    Advice(f"your answer to always allow `{row.rule}` counts no longer, and is forgotten: {reason}")
                )
    except StoreError as error:
        _log.error("stored answers could not be looked through: %s", error)
    return texts


def _closed(one: Remembered) -> str:
    """Why a remembered answer does not count; empty if it does."""
    return (closed_reason(one.rule) or "") if one.verdict is Verdict.ALLOW else ""


def _key(one: Remembered) -> tuple[str | None, ...]:
    """What a decision is about. A later one about the same takes its place, and no other; as in the store."""
    return one.rule.text, one.scope, one.session_id, one.project


def _read(row: Decision) -> Remembered:
    """A stored answer, as the policy takes it.

    Raises:
        RuleError, ValueError: it is not one of ours.
    """
    if row.verdict not in (Verdict.ALLOW, Verdict.DENY):
        raise ValueError(f"there is no verdict `{row.verdict}`")
    if row.scope not in ("session", "project", "everywhere"):
        raise ValueError(f"there is no scope `{row.scope}`")
    return Remembered(
        rule=Rule.parse(row.rule, "remembered"),
        verdict=Verdict(row.verdict),
        scope=cast("Scope", row.scope),
        session_id=row.session_id,
        project=row.project,
        expires_at=row.expires_at,
        id=str(row.id),
    )
