"""An engine without a model: deterministic, offline, and with every part of the protocol.

engine.py      `Demo`: its sign-in, and how its sessions are opened
session.py     `DemoSession`: its settings, its state, its permissions, and the command that answers a prompt
store.py       the stored sessions
commands.py    the list of slash commands
messages.py    commands with messages only, and how a turn can end
workspace.py   the answer to plain text; commands that read, change, search and run
features.py    commands for content, questions, settings and drafts; the one that runs all others
"""
