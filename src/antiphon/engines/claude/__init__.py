"""The Claude Code engine: one process of the real CLI per session.

Files in reading order:

    engine.py      name and version, how its sessions are opened, login methods
    login.py       the account: signed in or not, signing in and out
    session.py     a session as a client opens it
    driver.py      the work in it: the process of the CLI, a prompt as it takes it, its output translated
    launch.py      how it is started: command line, environment, MCP servers
    settings.py    mode, model, effort and slash commands
    questions.py   what the CLI asks the user
    grants.py      answers that hold for longer, and the rules that hold in a project
    rules.py       the policy's rules, applied by the CLI too
    wire/          the lines of the CLI as structs
    translate/     from these lines to updates
    history/       the sessions that Claude Code has stored
"""
