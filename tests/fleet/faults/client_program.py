"""A client for the faults of a fleet, as a process that can be killed: it writes every message that it gets to a file, one in a line.

    python client_program.py URL TOKEN SESSION FILE

It attaches behind the last event in the file. Where the connection is lost it connects again, for as long as it lives.
"""

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect

PAUSE = 0.05
"""Seconds before another try to connect."""


def number_of(message: dict[str, Any]) -> int:
    """Return the number of the event that a message is; 0 if it is none."""
    for part in (message.get("params"), message.get("result")):
        if isinstance(part, dict):
            about = (part.get("_meta") or {}).get("antiphon") or {}
            if "number" in about or (str(message.get("method", "")).startswith("_antiphon/") and "number" in part):
                return int(about.get("number") or part["number"])
    return 0


def lines_of(file: Path) -> list[dict[str, Any]]:
    """Return the messages in a file. A last line that is not whole is that of a process which was killed: its message was not seen."""
    data = file.read_bytes() if file.exists() else b""
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def watch(connection: ClientConnection, session: str, file: int, last: int) -> None:
    """Attach behind an event, and write down all that comes."""
    about = {"protocolVersion": 1, "clientCapabilities": {}, "_meta": {"antiphon": {"numbers": True}}}
    connection.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": about}))
    params = {"sessionId": session, "after": last}
    connection.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "_antiphon/session/attach", "params": params}))
    for text in connection:
        data = text.encode() if isinstance(text, str) else text
        message = json.loads(data)
        if message.get("id") in (1, 2) and "error" in message:
            return
        os.write(file, data.strip() + b"\n")


def main() -> None:
    """Watch until the process is killed."""
    url, token, session, name = sys.argv[1:]
    path = Path(name)
    whole = path.read_bytes() if path.exists() else b""
    path.write_bytes(whole[: whole.rfind(b"\n") + 1])
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    pause = threading.Event()
    while True:
        last = max((number_of(message) for message in lines_of(path)), default=0)
        try:
            headers = {"Authorization": f"Bearer {token}"}
            with connect(url, additional_headers=headers, proxy=None, max_size=None) as connection:
                watch(connection, session, file, last)
        except (OSError, WebSocketException):
            pass
        pause.wait(PAUSE)


if __name__ == "__main__":
    main()
