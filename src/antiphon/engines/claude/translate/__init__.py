"""From lines of the CLI to updates of the protocol and events for the session. Pure: no I/O, no clock.

A translator keeps what a session has sent so far; it never raises on what the CLI sends.

    translator.py     `ClaudeTranslator`: a line in, updates and events out; usage of the context and compactions
    messages.py       messages and thoughts, from stream events and from whole lines, and the messages of sub-agents
    calls.py          tool calls from their first token to their end, and the plan
    descriptions.py   how a call is shown before its result: title, kind, locations, preview
    results.py        results of calls: output of commands, files that were read, errors
    content.py        values out of loose JSON, content blocks, and diffs of edited files
    notices.py        lines that are notices for the user
    events.py         events for the session: above all how a turn ended, with its error and its usage
"""
