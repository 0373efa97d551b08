"""The suite for clients that the modules beside this one fill."""

from typing import Final

from antiphon.conformance.client_run import ClientRun
from antiphon.conformance.requirements import Suite, must
from antiphon.traffic.checker import Side

__all__ = ["SUITE"]

SUITE: Final[Suite[ClientRun]] = Suite(
    Side.CLIENT,
    follows={
        "cancel.notification": ("schema.method",),
        "capability.fork": ("schema.draft",),
        "sessions.close": ("session.id",),
        "sessions.delete": ("session.id",),
        "wire.utf8": ("wire.json",),
    },
    general=(
        must(
            "requests.answered",
            "Every request of the agent's is answered, with a result or with an error.",
            link="overview#error-handling",
            fix="Answer each request once, also those that fail or that you do not know.",
        ),
        must(
            "turn.stays",
            "The client stays until the turn has ended, whatever the agent asks for meanwhile.",
            link="prompt-turn#the-prompt-turn-lifecycle",
            fix="Catch errors where a message is handled, and leave only when the prompt has been answered.",
        ),
    ),
)
