"""The suite for agents that the modules beside this one fill, and what their scenarios with odd messages share."""

import json
from collections.abc import Iterable
from typing import Final

from antiphon.conformance.agent_run import FENCE, AgentRun
from antiphon.conformance.requirements import NoResponse, Suite, must
from antiphon.conformance.wire import PeerResponse, PendingRequest
from antiphon.traffic.checker import Side
from antiphon.traffic.entries import Entry

__all__ = ["FENCE", "SUITE", "breaks", "same_id", "settled", "soon", "stray_responses", "survived"]

SUITE: Final[Suite[AgentRun]] = Suite(
    Side.AGENT,
    general=(
        must(
            "rpc.answered",
            "Every request is answered, with a result or with an error.",
            link="overview#error-handling",
            fix="Answer each request once, also those that fail or that you do not know.",
        ),
        must(
            "process.stays",
            "The agent stays until its input ends, whatever correct messages it gets.",
            link="transports#stdio",
            fix="Catch errors where a message is handled; leave only when stdin is closed.",
        ),
    ),
)

SUITE.follows["wire.utf8"] = ("wire.json",)  # what is not UTF-8 is not JSON either
SUITE.follows["capability.plan"] = SUITE.follows["capability.subagents"] = ("schema.draft",)  # only the draft has them


# --- odd messages: whether the agent still responds, and to which request


def breaks(*rules: str, by: Iterable[str]) -> None:
    """Declare that an agent which breaks one of these requirements breaks those rules of all traffic too."""
    for one in by:
        SUITE.follows[one] = (*SUITE.follows.get(one, ()), *rules)


async def survived(run: AgentRun, requirement: str, sent: Entry) -> bool:
    """Check whether the agent still responds after an odd message. One that does not is replaced: the next scenario gets
    another."""
    run.odd = True
    try:
        await run.fence()
    except NoResponse as silent:
        if silent.left and run.inherited:
            raise  # it is run again, with another agent
        text = "the agent left" if silent.left else "the agent answers no more"
        await run.wire.close()
        return run.holds(requirement, False, text, sent)
    return run.holds(requirement, True, "", sent)


async def soon(run: AgentRun, pending: PendingRequest) -> PeerResponse | None:
    """The response to something that takes no thought, None where it does not come.

    Raises:
        NoResponse: the agent left, or answers nothing at all any more.
    """
    await run.fence()
    try:
        return await pending.response()
    except NoResponse as silence:
        if silence.left:
            raise
        return None


async def settled(run: AgentRun, sent: Entry) -> list[Entry]:
    """Wait until all is quiet; return the responses without a request since a line of ours."""
    await run.settle()
    return stray_responses(run, sent)


def stray_responses(run: AgentRun, sent: Entry) -> list[Entry]:
    """Responses after a line of ours that have the id of no request; those to broken lines have null or no id."""
    ours = {_key(one.msg["id"]) for one in run.wire.trace if one.dir is run.wire.own_direction and one.is_request}
    return [
        one
        for one in run.wire.received
        if one.number > sent.number and one.is_response and _key(one.msg.get("id")) not in ours
    ]


def same_id(run: AgentRun, asked: Entry) -> list[Entry]:
    """The responses after a request that have its id exactly, type and all."""
    return [
        one
        for one in run.wire.received
        if one.number > asked.number
        and one.is_response
        and "id" in one.msg
        and _key(one.msg["id"]) == _key(asked.msg["id"])
    ]


def _key(id: object) -> str:
    return json.dumps(id)
