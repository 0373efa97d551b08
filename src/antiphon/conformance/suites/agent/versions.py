"""Versions that the agent does not speak, and how it says which one it does."""

from typing import Final

from antiphon.conformance.requirements import must, should
from antiphon.conformance.stage import Answer, Stage
from antiphon.conformance.suites.agent.sounding import breaks
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.verdicts import NoAnswer, Unseen

__all__: list[str] = []

breaks("init.no-echo", by=("version.no-echo", "version.zero"))
breaks("schema.result", by=("version.word",))

HIGH: Final = 65535
"""The highest version that can be asked for, and one that there will not be for a while."""

NEGOTIATION: Final = "initialization#version-negotiation"


def _number(answer: Answer) -> int | None:
    version = answer.get("protocolVersion")
    return version if isinstance(version, int) and not isinstance(version, bool) else None


@SUITE.scenario(
    "version-of-the-future",
    f"a client that can do nothing asks for version {HIGH}",
    alone=True,
    shows=(
        must(
            "version.answers",
            "A client that asks for a version that nobody speaks is answered with one that the agent speaks, not with an error.",
            link=NEGOTIATION,
            fix="Answer `initialize` with the latest version that you speak; whether that is good enough is for the client to say.",
            needs=("init.empty-capabilities",),
        ),
        must(
            "version.no-echo",
            "The agent does not promise a version that it cannot speak.",
            link=NEGOTIATION,
            fix="Answer with the version asked for only if you speak it, else with your latest one.",
        ),
        must(
            "init.empty-capabilities",
            "A client whose capabilities are an empty object is answered.",
            link="initialization#client-capabilities",
            fix="Treat every capability that is left out as not there.",
        ),
    ),
)
async def future(stage: Stage) -> None:
    answer = await stage.introduce(HIGH, {})
    if stage.holds("version.answers", answer.error is None, "it was answered with an error", answer):
        spoken = _is_real(answer) and _number(answer) != HIGH
        stage.holds("version.no-echo", spoken, _said(answer), answer)
    else:
        answer = await stage.introduce(1, {})
    stage.holds("init.empty-capabilities", answer.error is None, "it was answered with an error", answer)


@SUITE.scenario(
    "version-2",
    "a client that speaks versions 1 and 2 asks for version 2",
    alone=True,
    shows=(
        must(
            "version.two",
            "A client that asks for version 2 is answered with version 1, or with version 2 and in its shapes.",
            link=NEGOTIATION,
            fix="Answer with version 1 unless you speak version 2, where the answer has `info` and `capabilities`.",
        ),
    ),
)
async def two(stage: Stage) -> None:
    told = {"name": "antiphon-check", "version": "1"}
    params = {
        "protocolVersion": 2,
        "info": told,
        "capabilities": {},
        "clientInfo": told,
        "clientCapabilities": {"terminal": False},
    }
    answer = await stage.ask("initialize", params)
    version = _number(answer)
    in_shape = isinstance(answer.get("info"), dict) and isinstance(answer.get("capabilities"), dict)
    text = "it was answered with an error" if answer.error else _said(answer)
    shape = " in the shapes of version 1" if version == 2 else ""
    stage.holds("version.two", version == 1 or (version == 2 and in_shape), text + shape, answer)


@SUITE.scenario(
    "version-0",
    "a client asks for version 0",
    alone=True,
    shows=(
        should(
            "version.zero",
            "A client that asks for version 0 is refused, or answered with a version that there is.",
            link=NEGOTIATION,
            fix="Answer with the latest version that you speak, or with an error; do not repeat what was asked for.",
        ),
    ),
)
async def zero(stage: Stage) -> None:
    answer = await stage.ask("initialize", {"protocolVersion": 0, "clientCapabilities": {"terminal": False}})
    stage.holds("version.zero", answer.error is not None or _is_real(answer), _said(answer), answer)


@SUITE.scenario(
    "version-in-words",
    "a client asks for a version that is a word, then for version 1",
    provokes=True,
    alone=True,
    shows=(
        should(
            "version.word",
            "A version that is no number is refused, or taken for an unknown one.",
            link="schema#protocolversion",
            fix="Refuse a `protocolVersion` that is no number with -32602.",
        ),
        should(
            "version.again",
            "After an `initialize` that was refused a correct one is answered.",
            link=NEGOTIATION,
            fix="Count the handshake as done only when it was; until then let the client try again.",
        ),
    ),
)
async def word(stage: Stage) -> None:
    answer = await stage.ask("initialize", {"protocolVersion": "one", "clientCapabilities": {}})
    stage.holds("version.word", answer.error is not None or _is_real(answer), _said(answer), answer)
    if answer.error is None:
        raise Unseen("the agent took a word for a version, so nothing was refused")
    try:
        again = await stage.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    except NoAnswer as silence:
        if silence.left:
            stage.holds("version.again", False, "it left after it had refused the first", answer, silence.asked)
        raise
    stage.holds("version.again", again.error is None, "it was answered with an error", answer, again)


def _is_real(answer: Answer) -> bool:
    return (_number(answer) or 0) > 0


def _said(answer: Answer) -> str:
    return f"the answer says version {answer.get('protocolVersion')!r}"
