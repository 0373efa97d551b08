"""The act that plays all the others, one after the other."""

from typing import TYPE_CHECKING, Final

from antiphon.engines.demo.acts import ACTS, act
from antiphon.errors import RequestError

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.session import DemoSession

__all__ = ["PROGRAMME"]

FILE: Final = "antiphon-demo.txt"
MOVED: Final = "antiphon-demo-moved.txt"

PROGRAMME: Final = (
    ("think", "everything"), ("plan", ""), ("echo", "call and response"), ("image", ""), ("audio", ""), ("link", ""),
    ("resource", ""), ("ask", ""), ("visit", ""), ("permission", ""), ("edit", FILE), ("read", FILE), ("search", "response"),
    ("move", f"{FILE} {MOVED}"), ("delete", MOVED), ("run", "echo call && echo response"), ("limit", "0.2 echo slow; sleep 60"), ("fetch", ""), ("mode", "default"),
    ("set", "thinking on"), ("set", "thinking off"), ("title", ""), ("notice", ""), ("compact", ""), ("compact", "fail"),
    ("compact", "cancel"), ("mcp", ""), ("plans", ""), ("child", ""), ("usage", ""),
)  # fmt: skip
"""Command and what follows it. What changes the workspace cleans up after itself."""


@act("all", "Everything, one after the other")
async def everything(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Every kind of update, content, tool call and question in one turn. Ends with the tokens that it took."""
    outcome: Outcome = None
    for name, words in PROGRAMME:
        try:
            outcome = await ACTS[name].play(demo, turn, words)
        except RequestError as error:  # you may have refused what it needs
            await turn.say(f"`/{name}` did not work: {error}")
        await turn.say("\n\n")
    async with turn.tool("A tool that fails, to show it") as call:
        call.fail()
    return outcome
