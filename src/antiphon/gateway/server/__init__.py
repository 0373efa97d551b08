"""The gateway as a program: its ASGI application, what an admin may ask of it, and its start and end.

Files in reading order:

    program.py   the start and the end: data, tokens, hub, sockets, signals
    app.py       the ASGI application: routes, who may use them, sign-in, metrics
    page.py      the page: which file an address has, and with which headers
    admin.py     what an admin may ask of a gateway: its state, tokens, shares, sessions
    links.py     links for other people and devices, with QR codes
    traces.py    what the gateway does, for OpenTelemetry
"""
