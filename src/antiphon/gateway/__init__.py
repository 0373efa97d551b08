"""The gateway: agents of this machine for clients on a network. Sessions outlive connections, and what is shown is stored first.

Files in reading order:

    base.py              who a client is, the row of a session, limits, and the store of rows as an interface
    data.py              the one file of a gateway: rows of sessions, their journal, how long they are kept, backups
    stored_sessions.py   the sessions in that file, as commands list them beside a gateway that runs
    hub.py               finds agents, sessions and clients for each other; starts and ends all of them
    client.py            a client of the agents of this machine: its ids, its role, what it asks
    session_methods.py   its requests about whole sessions: new, load, resume, fork, list, attach, close, delete
    session.py           one session: events are numbered, stored, then shown; opened again in another process
    turns.py             its turns: one at a time, and prompts that wait
    attachment.py        a client that follows a session: live, or from the journal as fast as it reads
    events.py            the events of a session as they are stored, and the frames made of them
    settings.py          modes, models, options and commands of a session as they are now
    requests.py          requests of the agent: permission and questions wait for people
    answers.py           the answers of clients to them: what they mean, and what the agent gets
    clients/             remote connections: their lines, what they offer, the words of one other page
    methods/             the methods of the extension: the list of sessions, search, history in pieces
    moves/               sessions that move between the workers of a fleet
    agents/              agents: their processes, the connections to them, files and terminals for them
    access/              who is let in: checks, tokens, sign-in, the audit log
    server/              the gateway as a program: its ASGI application, admins, start and end
"""
