"""In the place of Claude Code, for what no version of today can be brought to say: it says the lines of a file, one turn for each prompt.

`STAND_IN_LINES` names the file: turns of JSON lines, an empty line between them. In them `$UUID` stands for the prompt's uuid and
`$SESSION` for the session. `STAND_IN_VERSION` is the version that it says it has.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any


def say(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main(words: list[str]) -> None:
    if "--version" in words:
        sys.stdout.write(f"{os.environ.get('STAND_IN_VERSION', '2.1.325')} (Claude Code)\n")
        return
    session = words[words.index("--session-id") + 1] if "--session-id" in words else ""
    turns = iter(Path(os.environ["STAND_IN_LINES"]).read_text(encoding="utf-8").split("\n\n"))
    for line in sys.stdin:
        received = json.loads(line)
        if received["type"] == "control_request":
            answer = {"commands": [], "models": [], "account": {"apiKeySource": "ANTHROPIC_API_KEY"}, "mode": "default"}
            response = {"subtype": "success", "request_id": received["request_id"], "response": answer}
            say(type="control_response", response=response)
        elif received["type"] == "user":
            text = next(turns).replace("$UUID", received.get("uuid", "")).replace("$SESSION", session).strip()
            sys.stdout.write(text + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
