"""The suite for clients of version 2 that the modules beside this one fill."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Final

from antiphon.conformance import requirements as levels
from antiphon.conformance.client_run import ClientRun
from antiphon.conformance.requirements import Suite
from antiphon.conformance.suites.client import SUITE
from antiphon.conformance.v2.client_run import ClientRunV2
from antiphon.traffic.checker import SPECS, Side

__all__ = ["CLIENT_SUITE_V2", "advice", "capability", "must", "play_v2", "should", "take_over"]

must = partial(levels.must, version=2)
should = partial(levels.should, version=2)
capability = partial(levels.capability, version=2)
advice = partial(levels.advice, version=2)

CLIENT_SUITE_V2: Final[Suite[ClientRun]] = Suite(
    Side.CLIENT,
    version=2,
    follows={
        "cancel.notification": ("schema.method",),
        "cancel.one-call": ("cancel.offered",),
        "hello.no-sessions": ("capability.sessions",),
        "capability.sessions": ("hello.no-sessions",),
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
            "The client stays until the session is idle, whatever the agent asks for meanwhile.",
            link="schema#stateupdate",
            fix="Catch errors where a message is handled, and leave only when the session is idle again.",
        ),
    ),
)

Play = Callable[[ClientRunV2], Awaitable[None]]


def play_v2(play: Play) -> Callable[[ClientRun], Awaitable[None]]:
    """Give a scenario the run as one of version 2, which all runs of this suite are."""

    async def played(run: ClientRun) -> None:
        if not isinstance(run, ClientRunV2):
            raise TypeError("this suite is for runs of version 2")
        await play(run)

    return played


def take_over(name: str) -> None:
    """Take a scenario over from version 1: it is about lines, processes or errors, which both versions have in common."""
    shared = SUITE.scenarios[name]
    shown = [replace(one, link=one.link.replace(SPECS[1], SPECS[2])) for one in shared.shows]
    CLIENT_SUITE_V2.scenario(shared.name, shared.title, shows=shown, process=shared.process)(shared.play)
