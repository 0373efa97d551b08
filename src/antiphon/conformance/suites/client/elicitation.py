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
async def elicitation(run: ClientRun) -> None:
    await run.start()
    turn = await run.prompted()
    if run.offers("elicitation", "form"):
        response = await run.here("elicitation/create", mode="form", message="Who?", requestedSchema=SCHEMA)
        problem = _problem(response)
        content = response.get("content")
        if response.get("action") == "accept" and not (
            isinstance(content, dict) and isinstance(content.get("name"), str)
        ):
            problem = "it was accepted without the field `name`, which is required"
        run.holds("elicitation.form", not problem, problem, response)
    if run.offers("elicitation", "url"):
        address = "https://agentclientprotocol.com/"
        response = await run.here("elicitation/create", mode="url", message="Look", url=address, elicitationId="e-1")
        problem = _problem(response)
        run.holds("elicitation.url", not problem, problem, response)
    await turn.end()
    if len(run.verdicts) < 2:
        raise NotOffered("the client does not offer `elicitation`, or not of this kind")


def _problem(response: PeerResponse) -> str:
    if response.error is not None:
        return f"it was answered with the error {response.code}"
    action = response.get("action")
    return "" if action in ACTIONS else f"the action is {action!r}, none of {', '.join(ACTIONS)}"
