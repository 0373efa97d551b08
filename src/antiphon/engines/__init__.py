"""What answers prompts: the interface of an engine, what engines that drive a CLI share, and the engines. Engines do not know each other.

Files in reading order:

    base.py          the interface, `Engine` and `EngineSession`, and one ACP agent over any engine
    known.py         the engines by name
    cli_engine.py    an engine that drives a CLI: finding the program, opening sessions, signing in
    cli_program.py   the program of a CLI on this machine: version, output, what is remembered of it
    cli_session.py   an engine session of a CLI as the client sees it: opening, settings
    cli_driver.py    the work in it: one prompt at a time, cancelling, updates in order
    process.py       the process of a CLI: lines, requests and responses; one process kept running, started again after a crash
    questions.py     what a CLI asks the user, and its response
    content.py       a prompt in pieces that any engine can take
    events.py        what a translator makes besides updates, and sending it to the client
    tool_calls.py    the life of a tool call, as both translators follow it
    project.py       the project of a session: trust, and what a tool call does in it
    labels.py        titles, paths and names as users and models read them
    bounded.py       collections and numbers within bounds, the ids of sessions among them
    claude/          Claude Code
    codex/           Codex
    acp/             any ACP agent
    demo/            a demo without a model
"""
