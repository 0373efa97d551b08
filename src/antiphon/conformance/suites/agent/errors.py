"""What is wrong is answered with an error that says what, and does no harm to what comes after."""

from typing import Any, Final

from antiphon.conformance.requirements import advice, must, should
from antiphon.conformance.stage import Answer, Stage
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.verdicts import Blocked, NoAnswer

__all__: list[str] = []

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
NOT_FOUND: Final = -32002

LINK: Final = "overview#error-handling"

TRACES: Final = ("Traceback (most recent call last)", '\n  File "', "\n    at ", "\n   at ", "stack backtrace:")
"""How the languages that agents are written in begin to tell where they were when it happened."""


@SUITE.scenario(
    "unknown-methods",
    "a client asks for what the agent does not know",
    provokes=True,
    shows=(
        must(
            "error.unknown-method",
            "A method that the agent does not know is answered with an error.",
            link=LINK,
            fix="Answer methods that you do not know with the error -32601.",
        ),
        should(
            "error.unknown-method-code",
            "The error for a method that the agent does not know is -32601.",
            link=LINK,
            fix="Answer methods that you do not know with the error -32601.",
            needs=("error.unknown-method",),
        ),
        should(
            "error.unknown-extension",
            "A method of others, whose name begins with `_`, is answered with -32601 if the agent does not know it.",
            link="extensibility#custom-requests",
            fix="Answer extension methods that you do not know with the error -32601.",
        ),
    ),
)
async def unknown(stage: Stage) -> None:
    answer = await stage.ask("session/antiphon_check", {})
    if stage.holds("error.unknown-method", answer.error is not None, "it was answered with a result", answer):
        said = f"the code is {answer.code}"
        stage.holds("error.unknown-method-code", answer.code == METHOD_NOT_FOUND, said, answer)
    extension = await stage.ask("_antiphon/unknown", {})
    said = "it was answered with a result" if extension.error is None else f"the code is {extension.code}"
    stage.holds("error.unknown-extension", extension.code == METHOD_NOT_FOUND, said, extension)


@SUITE.scenario(
    "wrong-params",
    "a client leaves out what is required, or sends something else",
    provokes=True,
    shows=(
        must(
            "error.missing",
            "A request without a field that is required is answered with an error.",
            link="schema",
            fix="Check params before you use them.",
        ),
        should(
            "error.missing-code",
            "The error for a field that is missing is -32602.",
            link=LINK,
            fix="Answer params that are not what the schema says with the error -32602.",
            needs=("error.missing",),
        ),
        should(
            "error.wrong-type",
            "A request with a field of another type than it has to be is answered with an error.",
            link="schema",
            fix="Check the types of params before you use them.",
        ),
        should(
            "error.list",
            "A request whose params are a list is answered with an error.",
            link="schema",
            fix="Take params by name only, and refuse a list with -32602.",
        ),
        should(
            "error.no-params",
            "A request without params, where some are required, is answered with an error.",
            link="schema",
            fix="Treat missing params as an empty object, and find the fields missing.",
        ),
        must(
            "error.usable",
            "After errors the agent works as before.",
            link=LINK,
            fix="Let an error end the request that it belongs to and nothing else.",
        ),
        should(
            "error.stays",
            "The agent stays after a request that it had to refuse.",
            link=LINK,
            fix="Let an error end the request that it belongs to and nothing else; leave only when stdin is closed.",
        ),
        advice(
            "error.private",
            "Errors do not tell where in the agent's code they happened.",
            link=LINK,
            fix="Put one sentence into `message`; keep stack traces for stderr.",
        ),
    ),
)
async def wrong(stage: Stage) -> None:
    await stage.session()  # so that it is the params that are refused, and not everybody
    missing = [await _refused(stage, "error.missing", "session/new", {})]
    session = await _again(stage)
    missing.append(await _refused(stage, "error.missing", "session/prompt", {"sessionId": session}))
    for answer in missing:
        if answer is not None and answer.error is not None:
            stage.holds("error.missing-code", answer.code == INVALID_PARAMS, f"the code is {answer.code}", answer)
    others = [
        await _refused(stage, "error.wrong-type", "session/new", {"cwd": 7, "mcpServers": "none"}),
        await _refused(stage, "error.list", "session/new", [str(stage.cwd), []]),
        await _refused(stage, "error.no-params", "session/new"),
    ]
    answers = [answer for answer in (*missing, *others) if answer is not None]
    for answer in answers:
        told = answer.error is not None and _tells_where(answer)
        stage.holds("error.private", not told, "the error has a stack trace in it", answer)
    try:
        opened = await stage.new_session()
    except NoAnswer as silence:
        if silence.left:
            stage.holds("error.stays", False, "it left after it had answered", *answers[-1:], silence.asked)
            raise Blocked("the agent leaves after errors") from None
        raise
    stage.holds("error.stays", not stage.left, "it left after it had answered", *stage.left)
    usable = isinstance(opened.get("sessionId"), str)
    stage.holds("error.usable", usable, "no session could be opened", *answers[-1:], opened)


async def _refused(stage: Stage, requirement: str, method: str, params: object = None) -> Answer | None:
    """The answer to what has to be refused; None where there is none, because the agent left."""
    try:
        answer = await stage.provoke(method, params)
    except NoAnswer as silence:
        if not silence.left:
            raise
        stage.holds(requirement, False, "the agent left without an answer", silence.asked)
        await stage.renew()
        return None
    stage.holds(requirement, answer.error is not None, "it was answered with a result", answer)
    return answer


async def _again(stage: Stage) -> str:
    """A session, of another agent if this one has left."""
    try:
        return await stage.session()
    except NoAnswer as silence:
        if not silence.left or stage.wire.provocation is None:
            raise
    await stage.renew()
    return await stage.session()


def _tells_where(answer: Answer) -> bool:
    return any(trace in text for text in _texts(answer.error) for trace in TRACES)


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inside for text in _texts(one)]


@SUITE.scenario(
    "unknown-session",
    "a client prompts in a session that there is not",
    provokes=True,
    shows=(
        advice(
            "error.unknown-session-code",
            "The error for a session that the agent does not know is -32002 or -32602.",
            link="schema#errorcode",
            fix="Answer with the error -32002 where a session is not known.",
        ),
    ),
)
async def nowhere(stage: Stage) -> None:
    """That it is an error at all is a rule of all traffic."""
    await stage.session()
    params = {"sessionId": "antiphon-check-nobody", "prompt": [{"type": "text", "text": "Hello"}]}
    answer = await stage.ask("session/prompt", params)
    if answer.error is None:
        raise Blocked("it was answered with a result")
    known = answer.code in (NOT_FOUND, INVALID_PARAMS)
    stage.holds("error.unknown-session-code", known, f"the code is {answer.code}", answer)
