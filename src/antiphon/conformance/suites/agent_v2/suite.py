"""The suite for agents of version 2 that the modules beside this one fill."""

from functools import partial
from typing import Final

from antiphon.conformance import requirements as levels
from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import Suite
from antiphon.conformance.v2.agent_run import AgentRunV2
from antiphon.conformance.wire import PeerResponse
from antiphon.traffic.checker import Side
from antiphon.traffic.entries import Entry, as_object

__all__ = ["INVALID_PARAMS", "SUITE_V2", "capability", "is_code", "kind_of", "must", "run_of", "should"]

must = partial(levels.must, version=2)
should = partial(levels.should, version=2)
capability = partial(levels.capability, version=2)

INVALID_PARAMS: Final = -32602

SUITE_V2: Final[Suite[AgentRun]] = Suite(
    Side.AGENT,
    version=2,
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
SUITE_V2.follows.update(
    {
        "wire.utf8": ("wire.json",),
        "config.complete": ("options.set",),
        "cancel.later": ("cancel.covers",),
        "cancel.covers": ("cancel.later",),
        "session.refused": ("session.not-found",),
        "state.error": ("turn.reason",),
        "cancel.unasked": ("turn.reason",),
        "request.cancel-unknown": ("rpc.answer-to-notification",),
        "permission.state": ("call.ends",),
        **dict.fromkeys(
            ("turn.idle", "cancel.confirmed", "cancel.held", "permission.goes-on", "form.unknown"), ("close.ends",)
        ),
    }
)


def run_of(run: AgentRun) -> AgentRunV2:
    """The run as one of version 2, which all runs of this suite are."""
    if not isinstance(run, AgentRunV2):
        raise TypeError("this suite is for runs of version 2")
    return run


def kind_of(entry: Entry) -> str:
    """The kind of an update."""
    return str(as_object(entry.params.get("update")).get("sessionUpdate"))


def is_code(run: AgentRun, requirement: str, response: PeerResponse, *codes: int) -> bool:
    """Judge whether a request was refused with one of these codes."""
    seen = "it succeeded" if response.error is None else f"it was answered with the error {response.code}"
    return run.holds(requirement, response.code in codes, seen, response)
