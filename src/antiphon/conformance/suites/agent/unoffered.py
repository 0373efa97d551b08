"""A client that asks for what the agent does not offer. It should not; the answer has to be an error or a correct one all the same."""

from typing import Any, Final

from antiphon.conformance.requirements import should
from antiphon.conformance.stage import Stage
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.verdicts import NotOffered

__all__: list[str] = []

OFFERED: Final[dict[str, tuple[str, ...]]] = {
    "session/load": ("loadSession",),
    "session/list": ("sessionCapabilities", "list"),
    "session/resume": ("sessionCapabilities", "resume"),
    "session/close": ("sessionCapabilities", "close"),
}
"""Method → the capability that offers it. Those that could do harm, such as signing out, are not tried."""

SETTINGS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "session/set_mode": ("modes", {"modeId": "antiphon-no-such-mode"}),
    "session/set_config_option": ("configOptions", {"configId": "antiphon-no-such-option", "value": "none"}),
}
"""Method → what of a new session offers it, and what it is asked for."""


@SUITE.scenario(
    "not-offered",
    "a client asks for what the agent does not offer",
    shows=(
        should(
            "unoffered.refused",
            "What the agent does not offer it refuses: a success for nothing done misleads whoever asked.",
            link="initialization#capabilities",
            fix="Answer methods that you do not implement with -32601; empty methods of a base class that answer null or {} are a trap.",
            needs=("init.capabilities",),
        ),
    ),
)
async def not_offered(stage: Stage) -> None:
    session, opened = await stage.opened()
    asked: dict[str, dict[str, Any]] = {name: {} for name, path in OFFERED.items() if not stage.offers(*path)}
    asked |= {name: params for name, (field, params) in SETTINGS.items() if not opened.get(field)}
    if not asked:
        raise NotOffered("the agent offers all of it")
    place = {"cwd": str(stage.cwd), "mcpServers": []}
    for method, params in asked.items():
        around = {} if method == "session/list" else {"sessionId": session}
        more = place if method in ("session/load", "session/resume") else {}
        answer = await stage.ask(method, {**around, **more, **params})
        stage.holds("unoffered.refused", answer.error is not None, f"`{method}` was answered with a result", answer)
