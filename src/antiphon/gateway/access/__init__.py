"""Who is let into the gateway, what of their messages reaches an agent, and what is written down about it.

Files in reading order:

    checks.py     the checks of every request: host, origin, secret, failures
    tokens.py     tokens, shares and launch codes
    login.py      a client over a WebSocket that sends its token with `authenticate`
    messages.py   what of a client's messages reaches an agent
    quotas.py     what one principal may have at a time: prompts, changes, places
    audit.py      the audit log, whose entries form a chain of hashes
"""
