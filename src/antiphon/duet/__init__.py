"""The agent people install: every engine behind one session, with routes, commands and a history of its own."""
