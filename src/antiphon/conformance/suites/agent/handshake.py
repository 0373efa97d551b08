"""`initialize`: the version, what the agent says of itself, and that nothing is assumed of a client that says little."""

from antiphon.conformance.requirements import must, should
from antiphon.conformance.stage import Stage
from antiphon.conformance.suites.agent.suite import SUITE

__all__: list[str] = []


@SUITE.scenario(
    "handshake",
    "a client introduces itself with version 1",
    alone=True,
    shows=(
        must(
            "init.answers",
            "`initialize` is answered with a result.",
            link="initialization",
            fix="Answer `initialize` with the version, your capabilities and your ways to sign in.",
        ),
        must(
            "init.version",
            "A client that asks for version 1 is answered with version 1.",
            link="initialization#protocol-version",
            fix="Answer with the version that the client asked for, if you speak it.",
            needs=("init.answers",),
        ),
        should(
            "init.info",
            "The agent says its name and version.",
            link="initialization#implementation-information",
            fix="Put `agentInfo` with `name` and `version` into the answer to `initialize`.",
            needs=("init.answers",),
        ),
    ),
)
async def handshake(stage: Stage) -> None:
    answer = await stage.introduce()
    if not stage.holds("init.answers", answer.error is None, "it was answered with an error", answer):
        return
    version = answer.get("protocolVersion")
    stage.holds("init.version", version == 1, f"the answer says version {version}", answer)
    name = answer.get("agentInfo", "name")
    told = isinstance(name, str) and bool(name) and isinstance(answer.get("agentInfo", "version"), str)
    stage.holds("init.info", told, "the answer has no `agentInfo` with a name and a version", answer)
