"""What the translator for a client of version 1 knows of a session, and the small types of its stream."""

from typing import ClassVar

import msgspec
from msgspec import Raw

from antiphon.protocol import v1, v2
from antiphon.protocol.base import BAD_INPUT
from antiphon.protocol.exchange import Id
from antiphon.protocol.translate.tables import BoundedTable
from antiphon.protocol.translate.v1_updates import UpdatesToV1
from antiphon.protocol.translate.values import content as c

__all__ = ["SentPrompt", "TextChunk", "V1ClientSession", "system_prompt_to_v2", "text_of", "version_of"]


class _Text(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str


class _AgentText(
    msgspec.Struct,
    tag_field="sessionUpdate",
    tag="agent_message_chunk",
    forbid_unknown_fields=True,
    rename="camel",
    gc=False,
):
    """A piece of a message, as plain text."""

    kind: ClassVar = "agent"
    message_id: str
    content: _Text


class _ThoughtText(
    msgspec.Struct,
    tag_field="sessionUpdate",
    tag="agent_thought_chunk",
    forbid_unknown_fields=True,
    rename="camel",
    gc=False,
):
    kind: ClassVar = "thought"
    message_id: str
    content: _Text


class TextChunk(msgspec.Struct, forbid_unknown_fields=True, rename="camel", gc=False):
    """A piece of text in the stream of an agent, and nothing else: what is forwarded as it came."""

    session_id: str
    update: _AgentText | _ThoughtText


class SentPrompt:
    """A prompt of the client that is not answered: sent, then inserted, then answered at the end of the work."""

    __slots__ = ("begins", "cancelled", "content", "echo", "ended", "follows", "id", "message_id", "number")

    def __init__(self, id: Id, content: "list[v1.ContentBlock]", number: int | None = None) -> None:
        self.id = id
        self.number = number
        """What a client of our SDK knows it by, which gets its id as a message."""
        self.content = content
        self.message_id: str | None = None
        """The id of the inserted message; None until the agent has inserted it."""
        self.echo: str | None = None
        """The id of the message that came before the response, if it did."""
        self.cancelled = False
        """Whether the client cancelled the session after it."""
        self.begins = False
        """Whether it was sent to an idle session, so that the next work may be its own."""
        self.follows = False
        """Whether it was sent after a cancellation that the agent has not confirmed: it is not covered by that."""
        self.ended: v2.StateUpdate | None = None
        """The idle that may have ended its work."""


class V1ClientSession:
    """What the translator knows of a session."""

    def __init__(self, id: str, updates: UpdatesToV1) -> None:
        self.id = id
        self.updates = updates
        self.busy = False
        """Whether the last state was none of idle: the next idle ends something."""
        self.prompts: list[SentPrompt] = []
        """Prompts that are not answered, in the order they were sent."""
        self.own_messages: BoundedTable[str, None] = BoundedTable()
        """Ids of the user messages that the client sent itself, so it is not sent them again."""
        self.echoed: BoundedTable[str, v2.StateUpdate | None] = BoundedTable(64)
        """User messages that came before the response of their prompt, with the idle that ended their work, if it did."""
        self.cancelling = False
        """Whether the client has cancelled work whose end the agent has not reported."""
        self.replaying = False
        """Whether a history is being replayed."""
        self.ended: v2.StateUpdate | None = None
        """The idle that ended work while a history was replayed: the prompts of that work are answered after the replay."""

    def go_on_from(self, before: "V1ClientSession") -> None:
        """Take over what runs, which goes on whatever is shown of the session."""
        self.prompts, self.own_messages, self.echoed = before.prompts, before.own_messages, before.echoed
        self.busy, self.cancelling = before.busy, before.cancelling
        self.updates.options = before.updates.options

    @property
    def inserted(self) -> list[SentPrompt]:
        """The prompts that the agent works on."""
        return [prompt for prompt in self.prompts if prompt.message_id is not None]


class _Answer(msgspec.Struct, rename="camel", frozen=True):
    """Only what decides; whatever else is wrong with the response is mended or reported where it is read whole."""

    protocol_version: object = None
    info: object = None


def version_of(raw: Raw) -> tuple[object, bool]:
    """The version in a response to `initialize`, and whether it has the shape of version 2."""
    try:
        found = msgspec.json.decode(raw, type=_Answer)
    except BAD_INPUT:
        return None, False
    return found.protocol_version, isinstance(found.info, dict)


def text_of(blocks: "list[v1.ContentBlock] | list[v2.ContentBlock]") -> str:
    """Return the text of blocks, with a mark for each other block."""
    return "".join(block.text if isinstance(block, v1.TextBlock) else "\0" for block in blocks)


def system_prompt_to_v2(prompt: v1.SystemPrompt | None) -> v2.SystemPrompt | None:
    """Return a system prompt in version 2."""
    if prompt is None:
        return None
    return v2.SystemPrompt(
        mode=prompt.mode, content=[c.block_to_v2(block) for block in prompt.content], meta=prompt.meta
    )
