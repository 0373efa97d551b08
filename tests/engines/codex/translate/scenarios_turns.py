"""Scenarios about what is said, how turns end, and what goes wrong."""

from typing import Any

from tests.engines.codex.translate.harness import Stage, failure
from tests.engines.codex.translate.scenario import DONE, RETRYING, SCENARIOS, TOUCH, done, scenario


@scenario(
    "badconfig",
    "notice warning: Invalid configuration; using defaults. | /c/config.toml:18:15: invalid type",
    "notice warning: Something else | /c/config.toml:18:15",
)
def _(stage: Stage) -> None:
    place = {
        "path": "/c/config.toml",
        "range": {"start": {"line": 18, "column": 15}, "end": {"line": 18, "column": 18}},
    }
    stage.told(
        "configWarning",
        summary="Invalid configuration; using defaults.",
        details="/c/config.toml:18:15: invalid type",
        **place,
    )
    stage.told("configWarning", summary="Something else", details=None, **place)


@scenario("compact", "compaction k [in_progress]", "compaction k [completed]", "usage 90/9000", "end u1 end_turn")
def _(stage: Stage) -> None:
    stage.begin()
    stage.started("contextCompaction", "k")
    stage.completed("contextCompaction", "k")
    stage.told("thread/compacted")
    stage.answered(last=90)
    stage.over()


@scenario("eof", "say m 'long long lo'", TOUCH, "update c [failed]")
def _(stage: Stage) -> None:
    stage.begin()
    stage.started("agentMessage", "m")
    stage.told("item/agentMessage/delta", itemId="m", delta="long long lo")
    stage.command("c", "touch made.txt", processId="1")
    stage.news += stage.translator.close_open()


def failing(name: str, message: str, info: Any, *tale: str, retry: str | None = None, retry_info: Any = None) -> None:
    """A turn that comes to nothing but an error."""

    def play(stage: Stage) -> None:
        stage.begin()
        if retry is not None:
            stage.error("Reconnecting... 1/1", retry_info, retry=True, details=retry)
        stage.error(message, info)
        stage.over("failed", failure(message, info))

    SCENARIOS[name] = play, [*([RETRYING + retry] if retry is not None else []), *tale]


_401 = "unexpected status 401 Unauthorized: bad key, url: http://127.0.0.1:1/v1/responses"
_BODY = '{"error": {"message": "%s", "type": "%s", "code": %s, "param": null}}'
failing(
    "err400",
    _BODY % ("bad thing", "invalid_request_error", "null"),
    "other",
    "end u1 error invalid_request -32603 bad thing",
)
failing(
    "err401", _401, {"httpConnectionFailed": {"httpStatusCode": 401}}, f"end u1 error auth -32000 {_401}", retry=_401,
    retry_info={"responseStreamDisconnected": {"httpStatusCode": 401}},
)  # fmt: skip
failing("err404", "No such model", "modelNotFound", "end u1 error model_not_found -32603 No such model")
failing(
    "err429", "exceeded retry limit", {"responseTooManyFailedAttempts": {"httpStatusCode": 429}},
    "end u1 error rate_limit -32603 exceeded retry limit", retry="429 Too Many Requests",
)  # fmt: skip
failing(
    "err500", "High demand", "internalServerError", "end u1 error server_error -32603 High demand", retry="High demand"
)
failing("err529", "At capacity", "serverOverloaded", "end u1 error overloaded -32603 At capacity", retry="At capacity")
failing(
    "errctx", _BODY % ("too long", "server_error", '"context_length_exceeded"'), "other",
    "end u1 error prompt_too_long -32603 too long",
)  # fmt: skip
failing(
    "noauth-envkey", "Missing environment variable: `A_KEY`.", "other",
    "end u1 error configuration -32603 Missing environment variable: `A_KEY`.",
)  # fmt: skip
failing(
    "noauth-openai", _401, {"httpConnectionFailed": {"httpStatusCode": 401}}, f"end u1 error auth -32000 {_401}",
    retry="unexpected status 404 Not Found",
)  # fmt: skip
failing("proto-errors", "", None, "end u1 error api -32603 Codex ended the turn with an error that it did not name")


@scenario("image", *DONE)
@scenario("overrides", *DONE)
@scenario("text", *DONE)
def _(stage: Stage) -> None:
    """What the user sent is not said back."""
    stage.begin()
    done(stage)


@scenario("interrupt", "say m 'a long'", "end u1 cancelled", "say n 'fine'", "end u2 end_turn")
def _(stage: Stage) -> None:
    stage.begin()
    stage.started("agentMessage", "m")
    stage.told("item/agentMessage/delta", itemId="m", delta="a long")
    stage.over("interrupted")
    stage.begin()
    stage.says("n", "fine")
    stage.over()


@scenario("plan", "plan A:in_progress, B:pending", "plan A:completed, B:in_progress", *DONE)
def _(stage: Stage) -> None:
    stage.begin()
    for first, second in (("inProgress", "pending"), ("completed", "inProgress")):
        stage.told(
            "turn/plan/updated",
            explanation=None,
            plan=[{"step": "A", "status": first}, {"step": "B", "status": second}],
        )
    done(stage)


@scenario("resume", "usage 1025/9000", *DONE)
def _(stage: Stage) -> None:
    stage.answered()
    stage.told(
        "deprecationNotice", summary="Full hydration is deprecated; page with `thread/turns/list`.", details=None
    )
    stage.begin()
    done(stage)


@scenario("sessions", "think r 'hmm'", "say m 'I will'", "end u1 end_turn", "title A name")
def _(stage: Stage) -> None:
    stage.begin()
    stage.thinks("r", "hmm")
    stage.says("m", "I will")
    stage.over()
    stage.told("thread/name/updated", threadName="A name")


@scenario("steer", "say m 'one'", "say n 'two'", "end u1 end_turn")
def _(stage: Stage) -> None:
    """What is said into a running turn is part of it."""
    stage.begin()
    stage.says("m", "one")
    stage.completed("userMessage", "more", content=[{"type": "text", "text": "and?"}])
    stage.says("n", "two")
    stage.over()


@scenario(
    "stop-failed",
    "say a 'half'",
    RETRYING + "stream disconnected",
    "end u1 error connection -32603 stream disconnected before completion",
)
def _(stage: Stage) -> None:
    """The stream breaks twice, and the item is there twice. An answer that broke is counted as nothing."""
    stage.begin()
    stage.says("a", "half")
    stage.answered(0, 0)
    stage.error(
        "Reconnecting... 1/1",
        {"responseStreamDisconnected": {"httpStatusCode": None}},
        retry=True,
        details="stream disconnected",
    )
    stage.says("b", "half")
    stage.over("failed", failure("stream disconnected before completion", "other"))


@scenario(
    "stop-filter",
    "say a 'I c'",
    RETRYING + "content_filter",
    "notice warning: The answer was refused | Incomplete response returned, reason: content_filter",
    "end u1 refusal",
)
def _(stage: Stage) -> None:
    stage.begin()
    stage.says("a", "I c")
    stage.error("Reconnecting... 1/1", {"responseStreamDisconnected": {}}, retry=True, details="content_filter")
    stage.says("b", "I", " c")
    stage.over("failed", failure("Incomplete response returned, reason: content_filter", "other"))


@scenario(
    "stop-maxtokens",
    "say m 'cut he'",
    "notice warning: The answer was cut off because it got too long | Incomplete response returned, reason: max_output_tokens",
    "end u1 max_tokens",
)
def _(stage: Stage) -> None:
    stage.begin()
    stage.says("m", "cut he")
    stage.answered(1025, 0)
    stage.over("failed", failure("Incomplete response returned, reason: max_output_tokens", "other"))
