"""The report of `antiphon inspect --html`: one file with pictures that loads nothing from elsewhere.

The static parts of the page are written here: head, timeline, tables. So it shows most of what it knows without a script, in
print and to a screen reader. The script beside it draws the messages on demand, since there may be tens of thousands of them.

Everything in a recording may come from an attacker. Text is escaped where it becomes HTML (`markup.py`), the script makes text
nodes of it and nothing else, and the policy in the head of the page lets no script or style run but the ones whose hashes are
listed there.

    markup.py     HTML in which everything is escaped that is not markup
    timeline.py   the picture: turns, tool calls, waits and traffic over one axis of time
    tables.py     the head of the page, and its tables
    data.py       the messages as JSON for the script
"""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from string import Template
from typing import Final

from antiphon.recorder.analysis import Analysis, RecordedMessage
from antiphon.recorder.report.data import data_block
from antiphon.recorder.report.markup import text
from antiphon.recorder.report.tables import file_name, head, navigation, peer_name, tables
from antiphon.recorder.report.timeline import Axis, timeline

__all__ = ["html_report"]

SCRIPTS: Final = ("model.js", "rows.js", "message.js", "diagram.js", "timeline.js", "main.js")
"""The parts of the one script, in the order in which they need each other."""


def html_report(analysis: Analysis, entries: Sequence[tuple[RecordedMessage, bytes]]) -> str:
    """The page for a recording: what was found in it, and each message with its bytes as they were on the wire."""
    style = _part("page.css")
    script = '"use strict";\n(() => {\n' + "\n".join(map(_part, SCRIPTS)) + "})();\n"
    shown = [shown for shown, _ in entries]
    axis = Axis.of(analysis, shown)
    return Template(_part("page.html")).substitute(
        policy=_policy(style, script),
        title=text(f"{file_name(analysis.file)} · antiphon inspect"),
        style=style,
        script=script,
        head=head(analysis),
        navigation=navigation(analysis),
        timeline=timeline(analysis, shown, axis),
        tables=tables(analysis, shown),
        client=text(peer_name(analysis.client, "Client")),
        agent=text(peer_name(analysis.agent, "Agent")),
        data=data_block(analysis, entries, axis),
    )


def _part(name: str) -> str:
    return (files("antiphon.recorder.report") / name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """Nothing from anywhere, and of what is here only what we wrote ourselves."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    return f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}"
