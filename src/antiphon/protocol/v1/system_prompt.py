"""Instructions that the client gives the model. All of it is unstable."""

from antiphon.protocol.base import Model, unstable
from antiphon.protocol.v1.content import ContentBlock
from antiphon.protocol.words import Word, unknown_reads_as

__all__ = ["SystemPrompt", "SystemPromptMode"]


# Reads as itself: an agent must refuse a mode it does not know, never take it for another.
@unstable
@unknown_reads_as(None)
class SystemPromptMode(Word):
    """What becomes of the agent's own instructions."""

    APPEND = "append"
    OVERRIDE = "override"


@unstable
class SystemPrompt(Model, frozen=True):
    """The client's instructions."""

    mode: SystemPromptMode
    content: list[ContentBlock]
