"""What a session does beside its updates, and what whoever stands between an engine and the client takes over."""

from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import UNSET

from antiphon.agent.settings import Chosen

if TYPE_CHECKING:
    from antiphon.agent.client import Client
    from antiphon.protocol.methods import Call
    from antiphon.protocol.timeouts import Timeout

__all__ = ["Between"]

P = TypeVar("P")
R = TypeVar("R")


class Between(Chosen):
    """The part of a session that a joint one answers itself."""

    client: "Client"

    async def request(self, call: "Call[P, R]", params: P, *, timeout: "Timeout" = UNSET) -> R:
        """Send a request to the client. Most have a verb of their own in `Turn`.

        `timeout`: the seconds that the response may take, None for no timeout; by default what `protocol.timeouts` has for it.
        """
        return await self.client.connection.request(call, params, timeout=timeout)

    async def admit(self, call: "Call[P, Any]", params: P) -> None:
        """Whether what the client would be asked for may be done on this machine instead, because it cannot. Raise to refuse.

        Everything may, unless whoever made this session has rules for it.
        """

    async def lost_conversation(self, id: str) -> str:
        """An engine could not go on with its conversation and began another, by this id at the engine.

        Whoever keeps the conversation notes the new id (and may make it this session's own, if the client does not know this session).
        What is returned is told to the engine before the prompt that comes next: a summary of what it forgot. Nobody here has one.
        """
        return ""
