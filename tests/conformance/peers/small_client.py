"""A client of some sixty lines that imports nothing of ours: `python small_client.py AGENT [FAULT]`, one prompt in this directory.

Faults: `deaf` never reads the agent's stderr, `careless` leaves the agent running, `leaky` lets another process have its input.
"""

import json
import os
import subprocess
import sys
from typing import Any

agent, fault = sys.argv[1], (sys.argv[2:] or [""])[0]
child = subprocess.Popen(
    [agent],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE if fault == "deaf" else subprocess.DEVNULL,
)
assert child.stdin and child.stdout
stdin, stdout = child.stdin, child.stdout


def say(message: "dict[str, Any]") -> None:
    stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    stdin.flush()


def read_message(line: bytes) -> "dict[str, Any]":
    try:
        message = json.loads(line)
    except ValueError:  # a line that is not a message
        return {}
    return message if isinstance(message, dict) else {}


def serve(message: "dict[str, Any]") -> None:
    """Answer what the agent asks: there is no user to be asked for permission."""
    if message["method"] == "session/request_permission":
        params = message.get("params")
        if isinstance(params, dict) and isinstance(params.get("options"), list):
            say({"id": message["id"], "result": {"outcome": {"outcome": "cancelled"}}})
        else:
            say({"id": message["id"], "error": {"code": -32602, "message": "Invalid params"}})
    else:
        say({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})


def ask(id: int, method: str, params: "dict[str, Any]") -> "dict[str, Any]":
    say({"id": id, "method": method, "params": params})
    for line in stdout:
        message = read_message(line)
        if "method" in message and "id" in message:
            serve(message)
        elif message.get("id") == id and "method" not in message:
            if "error" in message:
                leave(f"{method}: {message['error']['message']}")
            found: dict[str, Any] = message["result"]
            return found
    leave("the agent left")
    raise AssertionError


def leave(why: str) -> None:
    if fault == "leaky":
        subprocess.Popen(["sleep", "60"], pass_fds=(stdin.fileno(),))
        os._exit(0)
    stdin.close()
    if fault != "careless":
        child.terminate()
        child.wait()
    sys.stderr.write(why)
    os._exit(1 if why else 0)


me = {"name": "small-client", "version": "1"}
if ask(1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": me})["protocolVersion"] != 1:
    leave("the agent speaks another version")
session = ask(2, "session/new", {"cwd": os.getcwd(), "mcpServers": []})["sessionId"]
ask(3, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]})
leave("")
