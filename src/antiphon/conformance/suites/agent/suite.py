"""The suite that the modules beside this one fill."""

from typing import Final

from antiphon.conformance.requirements import Suite, must
from antiphon.conformance.stage import Stage
from antiphon.traffic.checker import Side

__all__ = ["SUITE"]

SUITE: Final[Suite[Stage]] = Suite(
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

SUITE.follows["wire.utf8"] = ("wire.json",)  # what is no UTF-8 is no JSON either
SUITE.follows["capability.plan"] = SUITE.follows["capability.subagents"] = ("schema.draft",)  # only the draft has them
