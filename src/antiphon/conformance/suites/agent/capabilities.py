"""Capabilities: an agent gets along with a client that offers nothing, and refuses what it does not offer itself.

What it may not request from such a client is checked by the rules of all traffic.
"""

from typing import Final

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import NotOffered, NotSeen, Requirement, must, should
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.suites.agent.turns import breaks_off, calls, ended

__all__: list[str] = []


PURPOSES = {
    "read": "reads a file",
    "write": "writes a file",
    "run": "runs a command",
    "form": "asks for a form",
    "visit": "asks to open a page",
}

ASKED_BY_NAME = ("form", "visit")
"""Purposes without a general prompt: only agents with a prompt of their own for them can be made to do these."""


def _ends(purpose: str, what: str) -> Requirement:
    return must(
        f"modest.{purpose}",
        f"A turn that {what} ends, also with a client that cannot help with it.",
        link="initialization#client-capabilities",
        fix="Look at `clientCapabilities`: do it by yourself, or report to the model that it cannot be done.",
    )


@SUITE.scenario(
    "modest",
    "a client that can do nothing",
    files=True,
    alone=True,
    shows=tuple(_ends(purpose, what) for purpose, what in PURPOSES.items()),
)
async def modest(run: AgentRun) -> None:
    await run.initialize(capabilities={})
    session = await run.session()
    file = run.cwd / "modest.txt"
    file.write_text("modest\n", encoding="utf-8")
    for purpose in PURPOSES:
        text = run.options.prompts.text(purpose, file=file, text="modest too", command="echo modest")
        if text:
            pending = await run.prompt(session, text)
            response = await ended(run, f"modest.{purpose}", pending, "the turn did not end")
            if purpose in ASKED_BY_NAME or calls(run, session, after=pending.request.number):
                run.holds(f"modest.{purpose}", True, "", response)
    await run.settle()
    raise NotSeen("the agent did not try: a prompt file can name words that make it")


breaks_off(*(f"modest.{purpose}" for purpose in PURPOSES))


# --- requests for what the agent does not offer: the response is an error, or a correct one


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
            "What the agent does not offer it refuses: success for nothing done misleads the client.",
            link="initialization#capabilities",
            fix="Answer methods that you do not implement with -32601; empty methods of a base class that answer null or {} are a trap.",
            needs=("init.capabilities",),
        ),
    ),
)
async def not_offered(run: AgentRun) -> None:
    session, opened = await run.opened()
    asked: dict[str, dict[str, str]] = {name: {} for name, path in OFFERED.items() if not run.offers(*path)}
    asked |= {name: params for name, (field, params) in SETTINGS.items() if not opened.get(field)}
    if not asked:
        raise NotOffered("the agent offers all of it")
    place = {"cwd": str(run.cwd), "mcpServers": []}
    for method, params in asked.items():
        around = {} if method == "session/list" else {"sessionId": session}
        more = place if method in ("session/load", "session/resume") else {}
        response = await run.request(method, {**around, **more, **params})
        run.holds("unoffered.refused", response.error is not None, f"`{method}` was answered with a result", response)
