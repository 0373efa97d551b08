"""An engine without a model: deterministic, offline, and with every part of the protocol.

It needs no key and no network, and shows clients and tests what an agent can send.

    engine.py      `Demo`: its sign-in, and how its sessions are opened
    session.py     `DemoSession`: its settings, its state, its permissions, and the command that answers a prompt
    store.py       the stored sessions
    commands.py    the list of slash commands, and those with messages only
    workspace.py   the answer to plain text; commands that read, change, search and run
    background.py  commands for what version 2 adds: one cancelled tool call, background work, work without a prompt, ids
    features.py    commands for content, questions, settings and drafts; the one that runs all others
"""
