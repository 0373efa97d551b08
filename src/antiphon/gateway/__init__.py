"""The gateway: agents of this machine for clients on a network. Sessions outlive connections, and what is shown is stored first.

Files in reading order:

    base.py   who a client is, the row of a session, and the store of rows as an interface
    data.py   the one file of a gateway: rows of sessions, their journal, how long they are kept, backups
    audit.py  the audit log, whose entries form a chain of hashes
"""
