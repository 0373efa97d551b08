"""The scenarios for clients of the two remote profiles. Loading this package puts them into `REMOTE_CLIENT_SUITE`.

Modules in reading order:

    suite.py       the suite, and scenarios that both profiles have
    http.py        requests and streams of a client over streamable HTTP
    websocket.py   the handshake and the frames of a client over WebSocket
"""

# isort: off
from antiphon.conformance.suites.remote_client import http
from antiphon.conformance.suites.remote_client import websocket
from antiphon.conformance.suites.remote_client.suite import REMOTE_CLIENT_SUITE
# isort: on

__all__ = ["REMOTE_CLIENT_SUITE", "http", "websocket"]
