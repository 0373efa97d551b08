"""A client that offers nothing: the agent has to get along without it. What it may not call is judged by the rules of all traffic."""

from antiphon.conformance.requirements import Requirement, must
from antiphon.conformance.stage import Stage
from antiphon.conformance.suites.agent.acting import breaks_off, ended
from antiphon.conformance.suites.agent.calls import calls
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.verdicts import Unseen

__all__: list[str] = []

PURPOSES = {
    "read": "reads a file",
    "write": "writes a file",
    "run": "runs a command",
    "form": "asks for a form",
    "visit": "asks to open a page",
}

ASKED_BY_NAME = ("form", "visit")
"""Only those who know how to make the agent do these have a prompt for them; the others are shown by a tool call."""


def _ends(purpose: str, what: str) -> Requirement:
    return must(
        f"modest.{purpose}",
        f"A turn that {what} ends, also with a client that cannot help with it.",
        link="initialization#client-capabilities",
        fix="Look at `clientCapabilities`: do it by yourself, or tell the model that it cannot be done.",
    )


@SUITE.scenario(
    "modest",
    "a client that can do nothing",
    alone=True,
    shows=tuple(_ends(purpose, what) for purpose, what in PURPOSES.items()),
)
async def modest(stage: Stage) -> None:
    await stage.introduce(capabilities={})
    session = await stage.session()
    file = stage.cwd / "modest.txt"
    file.write_text("modest\n", encoding="utf-8")
    for purpose in PURPOSES:
        text = stage.wishes.prompts.text(purpose, file=file, text="modest too", command="echo modest")
        if text:
            pending = await stage.prompt(session, text)
            answer = await ended(stage, f"modest.{purpose}", pending, "the turn did not end")
            if purpose in ASKED_BY_NAME or calls(stage, session, after=pending.asked.number):
                stage.holds(f"modest.{purpose}", True, "", answer)
    await stage.settle()
    raise Unseen("the agent did not try: a prompt file can name words that make it")


breaks_off(*(f"modest.{purpose}" for purpose in PURPOSES))
