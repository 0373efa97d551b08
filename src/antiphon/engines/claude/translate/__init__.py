"""From the CLI's lines to ACP's updates: pure, no I/O, no clock. `Translator` is the way in, `news` is what comes out."""

from antiphon.engines.claude.translate import news
from antiphon.engines.claude.translate.endings import End, EndError
from antiphon.engines.claude.translate.news import News
from antiphon.engines.claude.translate.translator import Translator

__all__ = ["End", "EndError", "News", "Translator", "news"]
