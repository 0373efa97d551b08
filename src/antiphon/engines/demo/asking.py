"""Acts that ask the user: a form, a choice, a page, permission."""

from typing import TYPE_CHECKING

from antiphon.engines.demo.acts import act
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.session import DemoSession

__all__ = ["FORM"]

FORM = v1.Form(
    title="About your part",
    properties={
        "name": v1.StringProperty(title="Your name", min_length=1, max_length=40, default="Ada"),
        "voice": v1.StringProperty(
            title="Your voice",
            one_of=[v1.EnumOption("high", "High"), v1.EnumOption("low", "Low", "the deep one")],
            default="high",
        ),
        "bars": v1.IntegerProperty(title="How many bars", minimum=1, maximum=64, default=8),
        "tempo": v1.NumberProperty(title="How fast", minimum=0.5, maximum=2.0, default=1.0),
        "repeat": v1.BooleanProperty(title="Again?", default=False),
        "parts": v1.MultiSelectProperty(v1.StringItems(["call", "response"]), title="Which parts", default=["call"]),
    },
    required=["name"],
)
"""A form with a field of every kind."""


@act("ask", "Ask you to fill in a form")
async def ask(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A form; for clients that show none, a question with two answers."""
    if not turn.session.client.shows_forms:
        picked = await turn.choose("Which part do you sing?", {"call": "The call", "response": "The response"})
        await turn.say(f"You sing the {picked}." if picked else "You would rather not say.")
        return None
    answers = await turn.ask("Which part do you sing?", FORM)
    if answers is None:
        await turn.say("You would rather not say.")
    else:
        await turn.say("You said:\n\n" + "\n".join(f"- {name}: {value}" for name, value in sorted(answers.items())))
    return None


@act("visit", "Ask you to open a page", "[URL]")
async def visit(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A page, and the word that you are done there."""
    url = rest.strip() or "https://agentclientprotocol.com"
    if not turn.session.client.opens_pages:
        await turn.say(f"Your client opens no pages; this is the address: {url}")
        return None
    page = await turn.visit("Please have a look at this page", url)
    await turn.say("You went there." if page else "You stayed here.")
    if page:
        await page.complete()
    return None


@act("permission", "Ask for permission, to do nothing")
async def permission(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A question with all four kinds of answer."""
    async with turn.tool("Do nothing", v1.ToolKind.OTHER, name="Nothing", input={}) as call:
        answer = await call.permitted()
    chosen = answer.option.kind if answer.option else "nothing"
    await turn.say(f"You chose: {chosen}.")
    return None
