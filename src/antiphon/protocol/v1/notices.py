"""News that is neither talk nor tool: notices, compaction of the context, a session's title."""

from antiphon.protocol.base import UNSET, Items, UnsetType
from antiphon.protocol.v1.content import ContentBlock
from antiphon.protocol.v1.ids import CompactionId
from antiphon.protocol.v1.updating import SettingsUpdate, UpdateModel
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = [
    "CompactionStatus", "CompactionSummaryChunk", "CompactionUpdate", "NoticeSeverity", "NoticeUpdate",
    "SessionInfoUpdate",
]  # fmt: skip


@unknown_reads_as("info")
class NoticeSeverity(Word):
    """How loudly to show a notice."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class NoticeUpdate(UpdateModel, frozen=True, tag="notice"):
    """Something the user should know that belongs to no message."""

    severity: NoticeSeverity
    title: str
    description: str | None = None


@unknown_reads_as(None)
class CompactionStatus(Word):
    """How far a compaction is."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class CompactionUpdate(UpdateModel, frozen=True, tag="compaction_update"):
    """The context is being shortened: an absent field stays as it was."""

    compaction_id: CompactionId
    status: CompactionStatus
    summary: Items[ContentBlock] | None | UnsetType = UNSET
    error: str | None | UnsetType = UNSET


class CompactionSummaryChunk(UpdateModel, frozen=True, tag="compaction_summary_chunk"):
    """The next piece of a compaction's summary."""

    compaction_id: CompactionId
    content: ContentBlock


class SessionInfoUpdate(SettingsUpdate, frozen=True, tag="session_info_update"):
    """The session's title or date changed: an absent field stays as it was."""

    title: str | None | UnsetType = UNSET
    updated_at: str | None | UnsetType = UNSET
