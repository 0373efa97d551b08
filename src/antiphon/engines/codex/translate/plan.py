"""The plan, as a list of things to do."""

from typing import Final

from antiphon.engines.codex.wire import PlanUpdated
from antiphon.protocol import v1

__all__ = ["plan_of"]

_STATUS: Final = {
    "pending": v1.PlanStatus.PENDING,
    "inProgress": v1.PlanStatus.IN_PROGRESS,
    "in_progress": v1.PlanStatus.IN_PROGRESS,
    "completed": v1.PlanStatus.COMPLETED,
}


def plan_of(update: PlanUpdated) -> v1.Plan:
    """The whole plan. Why it changed has no place in it but `_meta`."""
    entries = [
        v1.PlanEntry(
            content=step.step,
            priority=v1.PlanPriority.MEDIUM,
            status=_STATUS.get(step.status, v1.PlanStatus.PENDING),
        )
        for step in update.plan
    ]
    meta = {"codex": {"explanation": update.explanation}} if update.explanation else None
    return v1.Plan(entries=entries, meta=meta)
