"""The server end of both remote profiles as an ASGI application. Knows no policy: who is let in is a function that it is given.

Files in reading order:

    heads.py         the head of a request: headers, host and origin
    endpoint.py      the application: which request gets what, limits, and who is let in
    streams.py       the events of a stream: ids, and what is sent again
    connections.py   the two transports of a server: a WebSocket, and posts with streams of events
    sockets.py       the sockets of a server: bound, counted, and cut
    server.py        the application on a socket, and its WebSockets fast
    http2.py         the application on a socket with HTTP/2
"""

from antiphon.transports.asgi.endpoint import AcpEndpoint, Admission, Admit, EndpointLimits, Serve
from antiphon.transports.asgi.heads import Refusal

__all__ = ["AcpEndpoint", "Admission", "Admit", "EndpointLimits", "Refusal", "Serve"]
