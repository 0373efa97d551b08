"""Starts an agent that is to speak one version of ACP alone: `python pinned.py VERSION CMD…`.

A handshake for an earlier version is refused as the protocol wants it, and the agent does not get to see it.
"""

import json
import subprocess
import sys


def refusal(line: bytes, version: int) -> bytes | None:
    """Return the response to a handshake for an earlier version; None for everything else."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    if not isinstance(message, dict) or message.get("method") != "initialize":
        return None
    asked = message["params"].get("protocolVersion")
    if not isinstance(asked, int) or asked >= version:
        return None
    data = {"requested": asked, "supported": [version]}
    error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode() + b"\n"


def main() -> int:
    """Forward what the client sends; the agent writes to our own stdout."""
    version, command = int(sys.argv[1]), sys.argv[2:]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as agent:
        assert agent.stdin is not None
        for line in sys.stdin.buffer:
            refused = refusal(line, version)
            if refused is not None:
                sys.stdout.buffer.write(refused)
                sys.stdout.buffer.flush()
            else:
                agent.stdin.write(line)
                agent.stdin.flush()
        agent.stdin.close()
        return agent.wait()


if __name__ == "__main__":
    sys.exit(main())
