"""A little MCP server in three forms: `python little.py stdio`, `http` or `sse`. The last two say their address on stdout.

Its tool `tell` gives back what it was reached with: a variable of its environment, or a header of the request. `add` adds two numbers, `draw` draws a dot, `ask` asks the user
for a name.
"""

import json
import os
import queue
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

Message = dict[str, Any]

TOOLS = [
    {
        "name": "tell",
        "description": "A variable of the environment, or a header of the request.",
        "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
    },
    {
        "name": "add",
        "description": "The sum of two numbers.",
        "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
    },
    {
        "name": "draw",
        "description": "A picture: one grey dot.",
        "inputSchema": {"type": "object", "properties": {}},
    },
    {
        "name": "ask",
        "description": "Asks the user who they are. Only the program can.",
        "inputSchema": {"type": "object", "properties": {}},
    },
]
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg=="
NAME = {"type": "object", "properties": {"name": {"type": "string", "title": "Your name"}}, "required": ["name"]}
PROMPTS = [{"name": "greet", "description": "Greet somebody.", "arguments": [{"name": "who", "required": False}]}]


def answer(message: Message, given: Mapping[str, str]) -> Message | None:
    """The answer to a request, or None for what wants no answer."""
    if "id" not in message or "method" not in message:
        return None
    params = message.get("params") or {}
    results: dict[str, Any] = {
        "initialize": {
            "protocolVersion": params.get("protocolVersion", "2025-03-26"),
            "capabilities": {"tools": {}, "prompts": {}},
            "serverInfo": {"name": "little", "version": "1"},
        },
        "ping": {},
        "tools/list": {"tools": TOOLS},
        "prompts/list": {"prompts": PROMPTS},
        "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": f"Greet {params}"}}]},
    }
    if message["method"] == "tools/call" and params["name"] == "draw":
        result = {"content": [{"type": "image", "data": DOT, "mimeType": "image/png"}]}
    elif message["method"] == "tools/call":
        result = {"content": [{"type": "text", "text": _called(params["name"], params.get("arguments") or {}, given)}]}
    elif message["method"] in results:
        result = results[message["method"]]
    else:
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _called(name: str, arguments: Message, given: Mapping[str, str]) -> str:
    if name == "ask":
        return f"the user says: {json.dumps(_asked())}"
    if name == "add":
        return str(arguments["a"] + arguments["b"])
    wanted = str(arguments["name"])
    found = next((value for name, value in given.items() if name.lower() == wanted.lower()), "(none)")
    return f"{wanted}={found}"


def _asked() -> Message:
    """What the user says to a form, by the client of the server that is a program."""
    params = {"message": "Who are you?", "requestedSchema": NAME}
    _send({"jsonrpc": "2.0", "id": "who", "method": "elicitation/create", "params": params})
    for line in sys.stdin:
        received: Message = json.loads(line)
        if received.get("id") == "who":
            return received.get("result") or received
        if (text := answer(received, os.environ)) is not None:
            _send(text)
    return {}


def _send(message: Message) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def serve_stdio() -> None:
    """One message per line."""
    for line in sys.stdin:
        if (message := answer(json.loads(line), os.environ)) is not None:
            _send(message)


class Http(BaseHTTPRequestHandler):
    """Streamable HTTP, of which it answers with plain JSON."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        text = answer(self.message(), dict(self.headers))
        self.reply(202, b"") if text is None else self.reply(200, json.dumps(text).encode())

    def do_GET(self) -> None:
        self.reply(405, b"")

    def do_DELETE(self) -> None:
        self.reply(200, b"")

    def message(self) -> Message:
        """What was posted."""
        message: Message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return message

    def reply(self, status: int, body: bytes) -> None:
        """Answer the request."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Sse(Http):
    """The older way: answers come as events of a stream that stays open."""

    streams: ClassVar[list["queue.Queue[Message]"]] = []

    def do_POST(self) -> None:
        text = answer(self.message(), dict(self.headers))
        self.reply(202, b"")
        if text is not None:
            self.streams[int(self.path.rpartition("=")[2])].put(text)

    def do_GET(self) -> None:
        if self.path != "/sse":
            self.reply(404, b"")
            return
        events = queue.Queue[Message]()
        self.streams.append(events)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            self.tell("endpoint", f"/messages?stream={self.streams.index(events)}")
            while True:
                self.tell("message", json.dumps(events.get()))
        except OSError:  # the reader is gone
            self.close_connection = True

    def tell(self, event: str, data: str) -> None:
        """One event."""
        self.wfile.write(f"event: {event}\ndata: {data}\n\n".encode())
        self.wfile.flush()


def main() -> None:
    """Serve until we are ended."""
    way = sys.argv[1]
    if way == "stdio":
        serve_stdio()
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), Http if way == "http" else Sse)
    sys.stdout.write(f"http://127.0.0.1:{server.server_port}/{'mcp' if way == 'http' else 'sse'}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main()
