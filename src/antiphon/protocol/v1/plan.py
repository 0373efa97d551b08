"""The agent's plan: one list in the stable protocol, several plans of several forms in the unstable one."""

from typing import TYPE_CHECKING, TypeAlias

from antiphon.protocol.base import Items, Legacy, Model, Unknown, unstable
from antiphon.protocol.v1.ids import PlanId
from antiphon.protocol.v1.updating import UpdateModel
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "Plan", "PlanContent", "PlanEntry", "PlanFile", "PlanItems", "PlanMarkdown", "PlanPriority", "PlanRemoved",
    "PlanStatus", "PlanUpdate",
]  # fmt: skip


@unknown_reads_as("medium")
class PlanPriority(Word):
    """How much an entry matters."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@unknown_reads_as("pending")
class PlanStatus(Word):
    """How far an entry is."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class PlanEntry(Model, frozen=True):
    """One thing to do."""

    content: str
    priority: PlanPriority
    status: PlanStatus
    id: Legacy[str | None] = None


class Plan(UpdateModel, frozen=True, tag="plan"):
    """The whole plan; it replaces the one before."""

    entries: Items[PlanEntry]


@unstable
class PlanItems(Model, frozen=True, tag_field="type", tag="items"):
    """A plan as a list of things to do."""

    plan_id: PlanId
    entries: Items[PlanEntry]


@unstable
class PlanFile(Model, frozen=True, tag_field="type", tag="file"):
    """A plan that stands in a file."""

    plan_id: PlanId
    uri: str


@unstable
class PlanMarkdown(Model, frozen=True, tag_field="type", tag="markdown"):
    """A plan written out as Markdown."""

    plan_id: PlanId
    content: str


if TYPE_CHECKING:
    PlanContent: TypeAlias = PlanItems | PlanFile | PlanMarkdown | Unknown
else:
    PlanContent = PlanItems | PlanFile | PlanMarkdown


@unstable
class PlanUpdate(UpdateModel, frozen=True, tag="plan_update"):
    """One plan of several, new or replaced."""

    plan: PlanContent


@unstable
class PlanRemoved(UpdateModel, frozen=True, tag="plan_removed"):
    """A plan is no longer followed."""

    plan_id: PlanId
