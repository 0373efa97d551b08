"""Any ACP agent as an engine: a session of ours in front of each session of the agent.

The one engine that uses `antiphon.client`: it is a client of the agent and an agent for our client.

    engine.py           `AcpEngine`, how the agent is started, and its authentication methods
    hub.py              the process of the agent, and which session a message belongs to
    session.py          `AcpSession`: prompts, turns, settings, and updates on their way to the client
    remote_session.py   the session at the agent: opened, and opened again when the process ended
    requests.py         requests of the agent: forwarded, or done on this machine
    errors.py           errors of the agent as errors for our client
"""
