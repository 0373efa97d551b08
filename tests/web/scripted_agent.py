"""An agent that sends what a file says: `scripted_agent.py scenes.json`. A prompt is the name of a scene, a list of updates.

A step `{"gate": path}` waits until something is written into that FIFO, so that a test decides when the agent goes on.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from antiphon import Agent, AgentTurn
from antiphon.protocol.v1 import methods as m

agent = Agent("scripted", version="1.0")


@agent.on
async def prompt(turn: AgentTurn) -> None:
    """Play the scene that the prompt names."""
    scenes = await asyncio.to_thread(Path(sys.argv[1]).read_text, encoding="utf-8")
    for step in json.loads(scenes)[turn.text.strip()]:
        if "gate" in step:
            await asyncio.to_thread(Path(step["gate"]).read_text, encoding="utf-8")
        else:
            await turn.update(_update(step))


def _update(fields: dict[str, Any]) -> Any:
    params = json.dumps({"sessionId": "", "update": fields}).encode()
    return m.SESSION_UPDATE.read_params(params).value.update


if __name__ == "__main__":
    agent.run()
