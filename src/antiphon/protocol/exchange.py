"""What goes into a translator between two versions and comes out of it. It knows no version itself.

Requests, notifications, responses, reports of what was lost, and `Adapter`: what a transport that translates is given.
"""

from typing import Literal, Protocol, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from antiphon.protocol.base import Json

__all__ = [
    "Adapter", "ErrorMessage", "Id", "Loss", "Message", "NotificationMessage", "RequestFailure", "RequestMessage",
    "ResultMessage",
]  # fmt: skip

Id: TypeAlias = object
"""The id of a request. It is only compared and repeated; `1`, `1.0` and `"1"` are different ids, and their sender keeps them apart."""


class RequestMessage(msgspec.Struct, frozen=True):
    """A request. `params` are typed, or the bytes that came."""

    id: Id
    method: str
    params: object


class NotificationMessage(msgspec.Struct, frozen=True):
    """A notification."""

    method: str
    params: object


class ResultMessage(msgspec.Struct, frozen=True):
    """A response with a result."""

    id: Id
    result: object


class ErrorMessage(msgspec.Struct, frozen=True):
    """A response with an error."""

    id: Id
    code: int
    message: str
    data: Json | Raw | UnsetType = UNSET


Message: TypeAlias = RequestMessage | NotificationMessage | ResultMessage | ErrorMessage


class Loss(msgspec.Struct, frozen=True):
    """Something that the other version has no place for."""

    what: str
    """The method, or the kind of update."""
    reason: str
    refused: bool = False
    """Whether it was answered with an error. Else the rest of it was carried in the nearest form."""


class RequestFailure(msgspec.Struct, frozen=True):
    """Why the other side refused a request."""

    code: int
    message: str
    data: Json | Raw | UnsetType = UNSET


class Adapter(Protocol):
    """What translates between a client and an agent of different versions, as its transport sees it.

    After every call the caller takes what is in `to_client`, `to_agent` and `losses`. It calls `settle` when it has nothing more to give
    for now, and `expire` at `deadline`.
    """

    to_client: list[Message]
    to_agent: list[Message]
    losses: list[Loss]

    @property
    def chunks(self) -> type[Json]:
        """The params of a piece of the agent's text, which `agent_chunk` takes; all else is not of this type."""

    @property
    def updates(self) -> type[Json]:
        """The params of any update of the agent, which `agent_update` takes."""

    @property
    def update_method(self) -> str:
        """The notification that carries them."""

    @property
    def transparent(self) -> bool:
        """Whether both sides turned out to speak the same version: everything is forwarded as it is."""

    @property
    def deadline(self) -> float | None:
        """When `expire` is to be called."""

    def agent_chunk(self, chunk: Json) -> Literal[True] | bytes | None:
        """Take a piece of text. True: forward it as it came; bytes: with these params; None: it was not taken."""

    def agent_update(self, params: Json) -> None:
        """Take an update of the agent."""

    def client_request(self, id: Id, method: str, params: Raw) -> None:
        """Take a request of the client."""

    def client_notification(self, method: str, params: Raw) -> None:
        """Take a notification of the client."""

    def client_response(self, id: Id, result: Raw | None, failure: RequestFailure | None) -> bool:
        """Take a response of the client. False: nothing waits for it."""

    def agent_request(self, id: Id, method: str, params: Raw) -> None:
        """Take a request of the agent."""

    def agent_notification(self, method: str, params: Raw) -> None:
        """Take a notification of the agent."""

    def agent_response(self, id: Id, result: Raw | None, failure: RequestFailure | None) -> bool:
        """Take a response of the agent. False: nothing waits for it."""

    def settle(self) -> None:
        """Send what was collected."""

    def expire(self) -> None:
        """Do what is due."""

    def agent_lost(self) -> None:
        """Answer what the agent will not answer any more."""
