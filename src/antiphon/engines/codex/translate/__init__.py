"""What the server says, turned into news. Pure."""

from antiphon.engines.codex.translate.events import News
from antiphon.engines.codex.translate.file_changes import Reader
from antiphon.engines.codex.translate.translator import Translator

__all__ = ["News", "Reader", "Translator"]
