"""One session's voice: updates of a session, with everything encoded beforehand that does not change from one to the next."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from antiphon.connection.wire import Wire
from antiphon.protocol.base import encode
from antiphon.rpc.envelope import head_of_notification

if TYPE_CHECKING:
    from antiphon.protocol.v1.updates import Update

__all__ = ["Voice"]


class Voice:
    """What an agent says in one session. Await each; like `Connection.notify`, they wait while the client is slow.

    A streaming agent does little else, so the verbs are partial applications of one function and build no message objects.
    """

    update: "Callable[[Update], Awaitable[None]]"
    """Tell any update."""
    say: Callable[[str], Awaitable[None]]
    """A piece of the answer, as text."""
    think: Callable[[str], Awaitable[None]]
    """A piece of the model's thinking, as text."""

    def __init__(self, wire: Wire, session_id: str) -> None:
        head = head_of_notification("session/update") + b'{"sessionId":%b,"update":' % encode(session_id)
        self.update = partial(wire.put, head, b"}}\n")
        self.say = partial(wire.put, head + _text_chunk("agent_message_chunk"), b"}}}}\n")
        self.think = partial(wire.put, head + _text_chunk("agent_thought_chunk"), b"}}}}\n")


def _text_chunk(kind: str) -> bytes:
    return b'{"sessionUpdate":"%b","content":{"type":"text","text":' % kind.encode()
