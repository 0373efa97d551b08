"""From notifications of the app server to updates of the protocol and events for the session. Pure: no I/O but what is injected.

A translator keeps what a thread has sent so far; it never raises on what the server sends.

    translator.py         `CodexTranslator`: a notification in, updates and events out; items and permission requests
    messages.py           messages and thoughts, the plan, compactions, usage and limits
    calls.py              tool calls from their start to their end
    commands.py           commands: the line without its shell, output while they run, the end
    file_changes.py       changes to files as diffs, and the hunks they are read from
    tools.py              every other call: MCP tools, searches, pictures, other agents
    unreported_calls.py   calls that Codex reports no item for
    events.py             events for the session: errors, how a turn ended, notices
"""

from antiphon.engines.codex.translate.events import CodexEvent
from antiphon.engines.codex.translate.file_changes import Reader
from antiphon.engines.codex.translate.translator import CodexTranslator

__all__ = ["CodexEvent", "CodexTranslator", "Reader"]
