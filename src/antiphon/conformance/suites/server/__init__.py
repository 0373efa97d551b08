"""The scenarios for servers of the two remote profiles. Loading this package puts them into `HTTP_SUITE` and `SOCKET_SUITE`.

Modules in reading order:

    suite.py       the two suites, and how a requirement of them is written
    http.py        requests and their statuses over streamable HTTP
    streams.py     streams of events: what is sent on which, and again
    websocket.py   handshake and frames of a WebSocket
    exchange.py    what both profiles carry: ids, turns, permission, cancellation, sessions at once
    access.py      pages of other hosts, and requests without a token
"""

# isort: off
from antiphon.conformance.suites.server import http
from antiphon.conformance.suites.server import streams
from antiphon.conformance.suites.server import websocket
from antiphon.conformance.suites.server import exchange
from antiphon.conformance.suites.server import access
from antiphon.conformance.suites.server.suite import HTTP_SUITE, SOCKET_SUITE
# isort: on

__all__ = ["HTTP_SUITE", "SOCKET_SUITE", "access", "exchange", "http", "streams", "websocket"]
