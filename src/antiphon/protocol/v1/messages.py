"""Messages as they are streamed, piece by piece, and messages that sessions send each other."""

from antiphon.protocol.base import UNSET, Items, UnsetType, unstable
from antiphon.protocol.v1.content import ContentBlock
from antiphon.protocol.v1.ids import MessageId, SessionId
from antiphon.protocol.v1.updating import UpdateModel

__all__ = [
    "AgentMessageChunk", "AgentThoughtChunk", "MessageChunk", "SessionMessage", "SessionMessageChunk",
    "UserMessageChunk",
]  # fmt: skip


class MessageChunk(UpdateModel, frozen=True):
    """The next piece of a message; a new `message_id` starts a new one."""

    content: ContentBlock
    message_id: MessageId | None = None


class UserMessageChunk(MessageChunk, frozen=True, tag="user_message_chunk"):
    """A piece of what the user said, as in a replayed history."""


class AgentMessageChunk(MessageChunk, frozen=True, tag="agent_message_chunk"):
    """A piece of the answer."""


class AgentThoughtChunk(MessageChunk, frozen=True, tag="agent_thought_chunk"):
    """A piece of the model's thinking."""


@unstable
class SessionMessage(UpdateModel, frozen=True, tag="session_message"):
    """A message between sessions, new or changed: an absent field stays as it was."""

    message_id: MessageId
    sender_session_id: SessionId | None | UnsetType = UNSET
    recipient_session_id: SessionId | None | UnsetType = UNSET
    sender_message_id: MessageId | None | UnsetType = UNSET
    recipient_message_id: MessageId | None | UnsetType = UNSET
    content: Items[ContentBlock] | None | UnsetType = UNSET


@unstable
class SessionMessageChunk(UpdateModel, frozen=True, tag="session_message_chunk"):
    """A piece to add to a message between sessions."""

    message_id: MessageId
    content: ContentBlock
