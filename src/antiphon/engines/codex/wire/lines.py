"""The four sorts of lines that the app server writes."""

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from antiphon.engines.codex.wire.base import Part

if TYPE_CHECKING:
    from antiphon.engines.codex.wire.notifications import Notification
    from antiphon.engines.codex.wire.requests import Request

__all__ = ["Answer", "Asked", "Failure", "Garbled", "Line", "RequestId", "Told", "Unread"]

RequestId: TypeAlias = int | str
"""The server counts its questions from 0."""


class Failure(Part, frozen=True):
    """Why a request of ours was refused."""

    code: int = 0
    message: str = ""
    data: Any = None


class Unread(Part, frozen=True):
    """Parameters that we have no type for, or that do not fit it; `error` says what is wrong with them."""

    raw: msgspec.Raw = msgspec.Raw(b"{}")
    thread_id: str | None = None
    error: str | None = None


class Told(Part, frozen=True):
    """A notification."""

    method: str
    params: "Notification | Unread"

    @property
    def thread_id(self) -> str | None:
        """The thread that it is about."""
        return self.params.thread_id


class Asked(Part, frozen=True):
    """A question; the server waits for one answer with the same id, which may be 0."""

    id: RequestId
    method: str
    params: "Request | Unread"

    @property
    def thread_id(self) -> str | None:
        """The thread that it is about."""
        return self.params.thread_id


class Answer(Part, frozen=True):
    """The answer to a request of ours: a result, which `read` opens, or a failure."""

    id: RequestId
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: Failure | None = None


class Garbled(Part, frozen=True):
    """A line that is no JSON, no message, or lacks something essential."""

    text_head: str
    error: str


Line: TypeAlias = Told | Asked | Answer | Garbled
