"""A model on loopback that sends as many words as the prompt asks for, as fast as it can be received. Knows no bridge.

`python -m benchmarks.bridges.model` prints its address and serves until its input ends.
"""

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from benchmarks.bridges import messages, responses


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._send("application/json", b"")

    def do_GET(self) -> None:
        self._send("application/json", b'{"data": [], "models": [], "has_more": false}')

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        asked = json.loads(body or b"{}")
        if "count_tokens" in self.path:
            return self._send("application/json", b'{"input_tokens": 10}')
        api = responses if self.path.endswith("/responses") else messages
        return self._send("text/event-stream", api.answer(asked))

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A CLI that is ended hangs up, whatever it has just asked for."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


def main() -> None:
    """Serve until standard input ends, so that nothing is left when the program that started it is gone."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        sys.stdin.read()
        server.shutdown()


if __name__ == "__main__":
    main()
