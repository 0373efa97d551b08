"""The Codex engine: one server of the real CLI for all sessions.

Files in reading order:

    engine.py           name and version, how its sessions are opened, login methods
    login.py            the account: signed in or not, signing in and out
    hub.py              the one server, and the sessions that have a thread in it
    server.py           one `codex app-server` process: requests, and its refusals as errors for the client
    session.py          a session as a client opens it
    driver.py           the work in it: sends prompts, translates the output of the server
    thread.py           the thread of a session: opened, opened again, closed
    prompt.py           a prompt as Codex takes it, and as it waits for its end
    settings.py         mode, model, effort and summary
    modes.py            what each mode means to Codex, under rules and in a read-only turn
    questions.py        what the server asks the user
    commands.py         slash commands
    stored_threads.py   the threads that Codex has stored
    rollout.py          the file of a thread, and calls that only this file has
    wire/               the messages of the server as structs
    translate/          from these messages to updates
    approvals/          asking the user, one file for asking and one for the options
"""
