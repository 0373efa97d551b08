"""The messages between a client and an agent as they were on the wire, and the rules of the specification about them.

Pure: no I/O, no event loop, and none of our own message types. A check of others must not rest on our own habits, so every
verdict here comes from the schema's facts (`facts.json`, `facts_v2.json`) and from rules that are written down with a link each.

    entries.py   one message with its time and direction, read without trust, and the line format of recordings
    state.py     what has happened so far: open requests, sessions, turns, tool calls, capabilities
    state_v2.py  the same of a session of version 2: its state, messages, background work
    schema.py    whether a value matches the official schema
    checker.py   the machinery of rules: how one is written, and a checker that holds messages against all of them
    rules/       the rules, a module for each part of the protocol
"""
