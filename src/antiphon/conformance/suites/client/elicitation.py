"""`elicitation/create`: questions to the user, for clients that offer them."""

from antiphon.conformance.client_run import ClientRun
from antiphon.conformance.requirements import NotOffered, capability
from antiphon.conformance.suites.client.suite import SUITE
from antiphon.conformance.wire import PeerResponse

__all__: list[str] = []

ACTIONS = ("accept", "decline", "cancel")

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "title": "Name"}, "count": {"type": "integer", "minimum": 1}},
    "required": ["name"],
}


@SUITE.scenario(
    "elicitation",
    "the agent asks the user something",
    shows=(
        capability(
            "elicitation.form",
            "A form is answered: accepted with what is required in it, declined or cancelled.",
            link="elicitation",
            fix="Answer with `action`, and where that is `accept` with `content` that has every required field.",
        ),
        capability(
            "elicitation.url",
            "An address to open is answered: accepted, declined or cancelled.",
            link="elicitation",
            fix="Answer with `action`; never open an address without asking.",
        ),
    ),
)
async def elicitation(stage: ClientRun) -> None:
    await stage.start()
    turn = await stage.prompted()
    if stage.offers("elicitation", "form"):
        answer = await stage.here("elicitation/create", mode="form", message="Who?", requestedSchema=SCHEMA)
        problem = _problem(answer)
        content = answer.get("content")
        if answer.get("action") == "accept" and not (
            isinstance(content, dict) and isinstance(content.get("name"), str)
        ):
            problem = "it was accepted without the field `name`, which is required"
        stage.holds("elicitation.form", not problem, problem, answer)
    if stage.offers("elicitation", "url"):
        address = "https://agentclientprotocol.com/"
        answer = await stage.here("elicitation/create", mode="url", message="Look", url=address, elicitationId="e-1")
        problem = _problem(answer)
        stage.holds("elicitation.url", not problem, problem, answer)
    await turn.end()
    if len(stage.verdicts) < 2:
        raise NotOffered("the client does not offer `elicitation`, or not of this kind")


def _problem(answer: PeerResponse) -> str:
    if answer.error is not None:
        return f"it was answered with the error {answer.code}"
    action = answer.get("action")
    return "" if action in ACTIONS else f"the action is {action!r}, none of {', '.join(ACTIONS)}"
