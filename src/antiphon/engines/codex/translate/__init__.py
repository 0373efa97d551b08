"""What the server says, turned into news. Pure."""

from antiphon.engines.codex.translate.changes import Reader
from antiphon.engines.codex.translate.news import News
from antiphon.engines.codex.translate.translator import Translator

__all__ = ["News", "Reader", "Translator"]
