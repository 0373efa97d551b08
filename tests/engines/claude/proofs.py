"""Which test proves which bullet on which Claude Code, and the table of that in `docs/evidence/claude.md`."""

from typing import Final

from tests.engines.claude.bullets import BULLETS, CHAPTERS
from tests.engines.claude.versions import NEW
from tests.engines.proofs import STAND_IN, ProofTable

__all__ = ["BOOK", "STAND_IN", "on_versions", "proves"]

BOOK: Final = ProofTable("claude", BULLETS, CHAPTERS, NEW)

proves = BOOK.proves
on_versions = BOOK.on_versions
