"""An agent that does what its prompt says: a prompt `[{"method": …, "params": …}]` is sent to the client as requests of the agent.

The responses of the client come back as the text of a message. A `{"line": …}` among them is written as it is. The prompt `environment` returns the agent's own, `opened` the params of
the last `session/new`, `notified` the notifications that it got, and `flood` more than a client reads at once.
"""

import json
import os
import sys
from typing import Any


def send(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def received() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    message: dict[str, Any] = json.loads(line)
    return message


def ask(session: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """Send a request to the client, and return its response."""
    send({"id": 1000, "method": wanted["method"], "params": {"sessionId": session, **wanted["params"]}})
    while True:
        message = received()
        if "method" not in message and message.get("id") == 1000:
            return message


def show(session: str, text: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    send({"method": "session/update", "params": {"sessionId": session, "update": update}})


def prompted(session: str, text: str) -> str:
    if text == "flood":
        for _ in range(200):
            show(session, "x" * 100_000)
        return ""
    if text == "environment":
        return json.dumps(dict(os.environ))
    results = []
    for wanted in json.loads(text):
        if "line" in wanted:
            sys.stdout.write(f"{wanted['line']}\n")
            continue
        results.append(ask(session, wanted))
        if terminal := (results[-1].get("result") or {}).get("terminalId"):
            held = {"terminalId": terminal}
            ask(session, {"method": "terminal/wait_for_exit", "params": held})
            results.append(ask(session, {"method": "terminal/output", "params": held}))
    return json.dumps(results)


def main() -> None:
    opened: list[dict[str, Any]] = []
    notified: list[str] = []
    while True:
        message = received()
        params = message.get("params", {})
        match message.get("method"):
            case "initialize":
                send({"id": message["id"], "result": {"protocolVersion": 1, "agentCapabilities": {}}})
            case "session/new":
                opened.append(params)
                if "id" in message:  # it looks at the method alone, as some agents do
                    send({"id": message["id"], "result": {"sessionId": f"s{len(opened)}"}})
            case "session/prompt":
                session = params["sessionId"]
                text = params["prompt"][0]["text"]
                shown = {"opened": opened[-1], "notified": notified}
                text = json.dumps(shown[text]) if text in shown else prompted(session, text)
                show(session, text)
                send({"id": message["id"], "result": {"stopReason": "end_turn"}})
            case _ if "id" in message and "method" in message:
                send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
            case method:
                notified.append(str(method))


if __name__ == "__main__":
    main()
