"""The server end of both remote profiles as an ASGI application. Knows no policy: who is let in is a function that it is given.

Files in reading order:

    endpoint.py      the application: which request gets what, limits, and who is let in
    connections.py   the two transports of a server: a WebSocket, and posts with streams of events
    server.py        the application on a socket, and its WebSockets fast
    http2.py         the application on a socket with HTTP/2
"""

from antiphon.transports.asgi.endpoint import AcpEndpoint, Admission, Admit, EndpointLimits, Refusal, Serve

__all__ = ["AcpEndpoint", "Admission", "Admit", "EndpointLimits", "Refusal", "Serve"]
