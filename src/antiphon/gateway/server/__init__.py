"""The gateway as a program: its ASGI application, what an admin may ask of it, and its start and end.

Files in reading order:

    program.py   the start and the end: data, tokens, hub, sockets, signals
    app.py       the ASGI application: routes, who may use them, sign-in, metrics
    admin.py     what an admin may ask of a gateway: its state, tokens, shares, sessions
    traces.py    what the gateway does, for OpenTelemetry
"""
