"""Additions to the protocol: `_meta` in everything, fields that are not known yet, nulls for what is left out."""

from typing import Final

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import Blocked, must, should
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.suites.agent.turns import hold
from antiphon.conformance.wire import PeerResponse
from antiphon.traffic.entries import JsonObject, objects_in

__all__: list[str] = []

META: Final = {
    "antiphon.check/odd": {"deep": [None, 1.5, "x"]},
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "antiphon=1",
    "baggage": "a=b",
}
"""The content of `_meta`: anything may be in it; three names are reserved for tracing."""


def _opened(run: AgentRun, requirement: str, response: PeerResponse) -> None:
    run.holds(requirement, isinstance(response.get("sessionId"), str), "it was refused", response)


@SUITE.scenario(
    "additions",
    "a client adds to its messages what it may",
    provokes=True,
    shows=(
        must(
            "meta.new",
            "`_meta` in `session/new` is taken, whatever is in it.",
            link="extensibility",
            fix="Accept `_meta` with any keys in every message.",
        ),
        must(
            "meta.prompt",
            "`_meta` in `session/prompt` and in what is prompted is taken.",
            link="extensibility",
            fix="Accept `_meta` with any keys in every message and every content block.",
        ),
        should(
            "unknown.new",
            "A field of `session/new` that the agent does not know is ignored.",
            link="extensibility",
            fix="Ignore fields that you do not know.",
        ),
        should(
            "unknown.prompt",
            "A field of `session/prompt` that the agent does not know is ignored.",
            link="extensibility",
            fix="Ignore fields that you do not know.",
        ),
        should(
            "nulls.new",
            "`_meta` of `session/new` may be null, which is like leaving it out.",
            link="session-setup#creating-a-session",
            fix="Treat null like a field that is left out.",
        ),
    ),
)
async def additions(run: AgentRun) -> None:
    _opened(run, "meta.new", await run.new_session(_meta=META))
    _opened(run, "nulls.new", await run.new_session(_meta=None))  # nothing else of it may be sent as null
    session = await run.session()
    text = run.words("say")
    for one, around, inside in (
        ("meta.prompt", {"_meta": META}, {"_meta": META, "annotations": {"_meta": META}}),
        ("unknown.prompt", {"antiphonCheck": 1}, {"antiphonCheck": [1]}),
    ):
        block: JsonObject = {"type": "text", "text": text, **inside}
        response = await run.request("session/prompt", {"sessionId": session, "prompt": [block], **around})
        run.holds(one, response.error is None, "it was refused", response)
    _opened(run, "unknown.new", await run.new_session(antiphonCheck={"unknown": True}))


@SUITE.scenario(
    "additions-to-answers",
    "a client adds to its answer about permission what it may",
    provokes=True,
    shows=(
        should(
            "unknown.permission",
            "An answer about permission may have `_meta` and fields that the agent does not know.",
            link="tool-calls#requesting-permission",
            fix="Read what you know of an answer and pass over the rest.",
        ),
    ),
)
async def responses(run: AgentRun) -> None:
    session = await run.session()
    file = run.cwd / "permission.txt"
    turn, asked = await hold(run, "session/request_permission", session, "ask", file=file, text="asked")
    options = [one for one in objects_in(asked.params.get("options")) if "optionId" in one]
    if not options:
        await run.client.handle(asked)
        raise Blocked("it gave no option to choose")
    allowed = next((one for one in options if one.get("kind") == "allow_once"), options[0])
    chosen = {"outcome": "selected", "optionId": allowed["optionId"], "antiphonCheck": 1, "_meta": META}
    await run.client.respond(asked, {"outcome": chosen, "antiphonCheck": {"unknown": True}, "_meta": META})
    response = await turn.response()
    run.holds("unknown.permission", response.error is None, "the turn ended with an error", response)
