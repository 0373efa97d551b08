"""Who is let into the gateway, and what is written down about it.

Files in reading order:

    checks.py   the checks of every request: host, origin, secret, failures
    tokens.py   tokens, shares and launch codes
    login.py    a client over a WebSocket that sends its token with `authenticate`
    audit.py    the audit log, whose entries form a chain of hashes
"""
