"""What messages say about requests: their ids, giving them up, and how they failed."""

from typing import Any, TypeAlias

from antiphon.protocol.base import UNSET, Model, UnsetType

__all__ = ["CancelRequest", "Failure", "RequestId"]

RequestId: TypeAlias = int | str | None


class CancelRequest(Model, frozen=True):
    """The asker no longer wants the answer to one of its requests."""

    request_id: RequestId


class Failure(Model, frozen=True):
    """An error told inside a message, in the shape of a JSON-RPC error."""

    code: int
    message: str
    data: Any | UnsetType = UNSET
