"""Translation between the versions of ACP: pure, with state, in both roles.

    choice.py         which translator a handshake needs, if any
    base.py           what both translators share: requests that wait for their response on the other side
    tables.py         bounded tables, and the digest of a message
    values/           what has no state: content, options, commands, changed files, capabilities, MCP servers
    v1_client.py      a client of version 1 with an agent of version 2
    v1_known.py       what that client was sent of tool calls and terminals
    v1_session.py     what that translator knows of a session
    v1_updates.py     the updates of one session for a client of version 1
    v1_settings.py    modes, models and options that a client of version 1 sets
    v1_questions.py   permission requests and elicitations for a client of version 1
    v2_client.py      a client of version 2 with an agent of version 1
    v2_session.py     what that translator knows of a session, and options that are set in it
    v2_updates.py     the updates of one session for a client of version 2
    v2_injection.py   prompts that an agent takes into a turn that runs
    v2_questions.py   permission requests and elicitations for a client of version 2
    extension.py      what an agent or a client of our SDK has of version 2 beyond version 1

The state of a session, its limit, and what happens there:

    ========================  ==========================  ===============================================================
    table                     limit                       at the limit
    ========================  ==========================  ===============================================================
    sessions                  2,048 a connection          the one used longest ago without an open prompt is forgotten: what its agent of
                                                          version 2 sends is reported, not sent, until the client uses it again
    messages, by kind and id  2,048, a digest each        the oldest is forgotten: if it is sent again, it is shown again
    tool calls, by id         2,048, 1,000 items each     the oldest is forgotten; further items are reported, not shown
    content of tool calls     16 Mi characters            that of the oldest is forgotten: items that follow are reported, not shown
    terminals, by id          2,048, 64 KiB each          the oldest is forgotten; only the end of the output is shown
    plans, by id              64                          the oldest is forgotten
    prompts: sent, inserted   1,000 (agent of version 2)  the next one is refused
    prompts: held             100 (agent of version 1)    the next one is refused
    updates before their      1,000 a connection          further ones are reported and not sent
    session is opened
    open requests             10,000 for each side        the next one is refused
    background work           1,000 (SDK)                 further pieces are reported, not shown
    work that can be          2,048 (SDK)                 the oldest is forgotten: it cannot be cancelled alone any more
    cancelled alone
    ========================  ==========================  ===============================================================

A prompt of a client of version 1 is sent, inserted (its response, or its message, was seen) and answered by the idle that follows the
work. A prompt of a client of version 2 is held until the one before has ended, sent, and inserted (which is its response) at the first
sign of life of the agent. A replay begins with the request that opens a session and ends with its response.
"""
