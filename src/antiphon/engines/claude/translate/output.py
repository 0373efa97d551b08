"""What a command printed and how it ended."""

import re
from typing import Any, Final

import msgspec

from antiphon.engines.claude.translate.blocks import text_in
from antiphon.engines.claude.translate.failures import failure_in
from antiphon.engines.claude.translate.fields import number, text
from antiphon.engines.wording import shown_text
from antiphon.protocol import v1
from antiphon.text import fenced, size_in_words, strip_ansi

__all__ = ["Printed", "as_content", "printed"]

_EXIT: Final = re.compile(r"^Exit code (\d{1,10})(?:\n|$)")
_NOTHING: Final = re.compile(r"^\(\w+ completed with no output\)$")
_SAVED: Final = re.compile(r"^<persisted-output>\s*(.*?)\s*(?:</persisted-output>)?\s*$", re.DOTALL)


class Printed(msgspec.Struct, frozen=True, kw_only=True):
    """`output` as a terminal would show it; `exit_code` where it is known; `notes` are words of the CLI, not of the command."""

    output: str = ""
    exit_code: int | None = None
    interrupted: bool = False
    notes: tuple[str, ...] = ()
    trouble: str | None = None
    """Why it did not run."""

    @property
    def shown(self) -> str:
        """Everything, for a place that has only text."""
        return "\n".join(said for said in (self.output, self.trouble, *(f"[{note}]" for note in self.notes)) if said)


def printed(content: Any, structured: Any, *, failed: bool) -> Printed:
    """From the structured result, which has what the command said and nothing else; for a failure there is only the text."""
    if isinstance(structured, dict) and isinstance(structured.get("stdout"), str):
        return _of_structured(structured, failed=failed)
    said = text_in(content)
    if failed:
        said = failure_in(said)
        found = _EXIT.match(said)
        return Printed(output=said[found.end() :], exit_code=int(found[1])) if found else Printed(trouble=said)
    if _NOTHING.match(said):
        return Printed(exit_code=0)
    if saved := _SAVED.match(said):
        return Printed(output=saved[1], exit_code=0)
    return Printed(output=said, exit_code=0)


def as_content(result: Printed) -> list[v1.ToolContent]:
    """The output in a fence, then what there is to say about it."""
    shown: list[v1.ToolContent] = []
    if result.output.strip():
        shown.append(shown_text(fenced(strip_ansi(result.output).rstrip("\n"), "console")))
    if result.trouble:
        shown.append(shown_text(fenced(result.trouble)))
    notes = list(result.notes)
    if result.exit_code:
        notes.append(f"Exit code {result.exit_code}")
    return shown + [shown_text(note) for note in notes]


def _of_structured(structured: dict[str, Any], *, failed: bool) -> Printed:
    parts = (text(structured, "stdout"), (text(structured, "stderr") or "").strip("\n"))
    interrupted = structured.get("interrupted") is True
    running = text(structured, "backgroundTaskId")
    meaning = text(structured, "returnCodeInterpretation")
    code = number(structured, "exitCode", "code")
    if code is None and not (interrupted or running or meaning or failed):
        code = 0
    notes = []
    if interrupted:
        notes.append("Stopped before it had ended")
    if path := text(structured, "persistedOutputPath"):
        size = number(structured, "persistedOutputSize")
        notes.append(f"Only the beginning{f' of {size_in_words(size)}' if size else ''}: all of it is in {path}")
    if running:
        late = number(structured, "timedOutAfterMs")
        took_long = f" after {late / 1000:g} s" if late else ""
        notes.append(f"Goes on in the background{took_long} as {running}")
    if meaning:
        notes.append(meaning)
    return Printed(
        output="\n".join(said for said in parts if said), exit_code=code, interrupted=interrupted, notes=tuple(notes)
    )
