"""What outlives a process, in SQLite. Knows no handlers of ACP.

Files in reading order:

    database.py    one file, one thread, group commit; how a file is opened, migrated, locked and made durable
    schema.py      the tables, version by version
    sessions.py    sessions with their history, the ids of their engine sessions, their names; search
    decisions.py   remembered decisions, trusted projects, the audit log
    locks.py       one writer for each session
    errors.py      what can go wrong, each with a hint
"""
