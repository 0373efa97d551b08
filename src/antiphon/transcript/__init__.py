"""A session folded for display, and how its parts are presented: pure data, shared by every screen and every export.

Files in reading order:

    transcript.py     the fold: updates to entries
    entries.py        the entries: messages, thoughts, tool calls, notices, compactions
    presentation.py   paths, diffs and calls as lines
    forms.py          forms as questions, one field at a time
    fork_point.py     where a fork of a session is cut
"""
