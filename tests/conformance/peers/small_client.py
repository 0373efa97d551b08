"""A client of some forty lines that imports nothing of ours: `python small_client.py AGENT [FAULT]`, one prompt in this directory.

Faults: `deaf` never reads the agent's stderr, `careless` leaves the agent running, `leaky` lets another process have its input.
"""

import json
import os
import subprocess
import sys

agent, fault = sys.argv[1], (sys.argv[2:] or [""])[0]
child = subprocess.Popen(
    [agent],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE if fault == "deaf" else subprocess.DEVNULL,
)
assert child.stdin and child.stdout


def say(message: "dict[str, object]") -> None:
    assert child.stdin
    child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    child.stdin.flush()


def ask(id: int, method: str, params: "dict[str, object]") -> "dict[str, str]":
    """The answer; what the agent asks meanwhile is not known here."""
    assert child.stdout
    say({"id": id, "method": method, "params": params})
    for line in child.stdout:
        message = json.loads(line)
        if "method" in message and "id" in message:
            say({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
        elif message.get("id") == id and "result" in message:
            found: dict[str, str] = message["result"]
            return found
    sys.exit("the agent left")


ask(1, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
session = ask(2, "session/new", {"cwd": os.getcwd(), "mcpServers": []})["sessionId"]
print(ask(3, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "hello"}]}))
if fault == "leaky":
    subprocess.Popen(["sleep", "60"], pass_fds=(child.stdin.fileno(),))
    os._exit(0)
child.stdin.close()
if fault != "careless":
    child.terminate()
    child.wait()
os._exit(0)
