"""Recordings of sessions: made by a tap, redacted, shown, and replayed as a stand-in for either side.

Modules in reading order:

    tap.py                a tap between client and agent: starts the agent and forwards every byte
    writer.py             the thread that writes a recording, and its files: FILE, FILE.1, FILE.2 …
    lines.py              bytes of one direction as lines of a recording
    redaction.py          secrets, home paths and contents of files taken out of a recording
    analysis.py           the analysis of a recording, as data; `inspect --json` prints it
    analysis_builder.py   the same, built message by message
    labels.py             a few words for a message; times, sizes and numbers for people
    replay/               a recording replayed as an agent or as a client
    views/                what `inspect` prints
    report/               what `inspect --html` writes
"""
