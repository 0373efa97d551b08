"""Recordings to write reports of, one calm and one that means harm, and the page for a recording."""

from antiphon.recorder.analysis_builder import analyse
from antiphon.recorder.report import html_report
from antiphon.traffic.entries import entries_of
from tests.recorder.recordings import Tape

__all__ = ["HOSTILE", "hostile_tape", "page", "working_tape"]

HOSTILE = (
    "</script></style></title><!--<script>owned=1</script><img src=x onerror=owned=1>\"'&\u202e\u2028\u200b\x1b[31m"
)
"""Everything that ends an element, begins one, leaves an attribute, turns the line around or cannot be seen."""


def page(tape: Tape, file: str = "talk.jsonl") -> str:
    analysis, shown = analyse(tape.lines, file)
    return html_report(analysis, list(zip(shown, (entry.raw for entry in entries_of(tape.lines)), strict=True)))


def hostile_tape() -> Tape:
    """A recording in which every word that can be chosen is chosen by an attacker."""
    tape = Tape().meet(session=HOSTILE).prompt(2, HOSTILE, HOSTILE).later(3)
    tape.update("tool_call", HOSTILE, toolCallId=HOSTILE, title=HOSTILE, kind=HOSTILE, status="failed")
    options = [{"optionId": "y", "name": HOSTILE, "kind": HOSTILE}]
    tape.ask(
        HOSTILE,
        "session/request_permission",
        {"sessionId": HOSTILE, "toolCall": {"toolCallId": HOSTILE}, "options": options},
        "a2c",
    )
    tape.later(2).answer(HOSTILE, {"outcome": {"outcome": "selected", "optionId": "y"}}, "c2a")
    tape.message("a2c", method=HOSTILE, params={HOSTILE: HOSTILE}).line(t=tape.t, dir="a2c", raw=HOSTILE)
    return tape.refuse(2, -32603, HOSTILE)


def working_tape() -> Tape:
    """A turn with a tool that had to be allowed, a silence, and a turn that failed."""
    tape = Tape().meet().prompt(2, "sing a song").later(0.2).say("la ").say("la ").say("la ").say("la")
    tape.update("tool_call", toolCallId="c", title="Read the notes", kind="read", status="pending")
    tape.ask(9, "session/request_permission", {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []}, "a2c")
    tape.later(2).answer(9, {"outcome": {"outcome": "cancelled"}}, "c2a")
    tape.update("tool_call_update", toolCallId="c", status="failed").later(1).answer(2, {"stopReason": "end_turn"})
    return tape.later(900).prompt(3, "again").later(1).refuse(3, -32603, "out of breath")
