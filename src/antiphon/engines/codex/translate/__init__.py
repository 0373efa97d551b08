"""What the server says, turned into news. Pure."""

from antiphon.engines.codex.translate.events import CodexEvent
from antiphon.engines.codex.translate.file_changes import Reader
from antiphon.engines.codex.translate.translator import CodexTranslator

__all__ = ["CodexEvent", "CodexTranslator", "Reader"]
