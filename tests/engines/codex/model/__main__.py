"""The model by itself, to play with or to measure against: `python -m tests.engines.codex.model --port 8402`.

A prompt with `Play: ` in it says what is to be answered, as a JSON list with one answer for each request of the turn. An answer is a list
of steps: `["text", words]`, `["deltas", 10000]`, `["think", words]`, `["call", tool, input]`, `["patch", text]`, `["fail", status, kind, message]`,
`["stop", reason]`, `["cut"]`,
`["hold"]`, which waits until the program hangs up. Any other prompt is echoed. The first line that it prints is its address.
"""

import argparse
import json
import threading
from typing import Any, Final

from tests.engines.codex.model.asked import Asked
from tests.engines.codex.model.server import serving
from tests.engines.codex.model.steps import Answer, Call, Fail, Patch, Step
from tests.engines.model.steps import Cut, Gate, Stop, Text, Think, Wait

SCRIPT: Final = "Play: "


def played(asked: Asked, script: str = SCRIPT) -> Answer | None:
    """The answer that the prompt itself asks for, behind words that only we look for if there are several models."""
    at = asked.prompt.rfind(script)
    if at < 0:
        return None
    answers, _ = json.JSONDecoder().raw_decode(asked.prompt, at + len(script))
    # Each round of tools since the prompt moves on to the next answer.
    last = max(n for n, item in enumerate(asked.items) if item.get("role") == "user" and script in json.dumps(item))
    kinds = [str(item.get("type")) for item in asked.items[last + 1 :]]
    rounds = [
        n
        for n, kind in enumerate(kinds)
        if kind.endswith("_output") and (n == 0 or not kinds[n - 1].endswith("_output"))
    ]
    done = len(rounds)
    return tuple(step_of(each) for each in answers[done]) if done < len(answers) else (Text("The script is over."),)


def step_of(texts: list[Any]) -> Step:
    """One step as it is written."""
    match texts:
        case ["text", str(words)]:
            return Text(words)
        case ["deltas", int(number)]:
            return Text("abcdefgh" * number)
        case ["think", str(words)]:
            return Think(words)
        case ["call", str(tool), dict(given)]:
            return Call(tool, given)
        case ["patch", str(text)]:
            return Patch(text)
        case ["fail", int(status), str(kind), str(message)]:
            return Fail(status, kind, message)
        case ["stop", str(reason)]:
            return Stop(reason)
        case ["cut"]:
            return Cut()
        case ["hold"]:
            return Wait(Gate())
        case _:
            return Text(f"no such step: {json.dumps(texts)}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.engines.codex.model", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    with serving(parser.parse_args().port) as model:
        model.choose = played
        print(model.address, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
