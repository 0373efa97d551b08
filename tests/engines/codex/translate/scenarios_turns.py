"""Scenarios about what is sent, how turns end, and what goes wrong."""

from typing import Any

from tests.engines.codex.translate.harness import TranslatedThread, failure
from tests.engines.codex.translate.scenario import DONE, RETRYING, SCENARIOS, TOUCH, done, scenario


@scenario(
    "badconfig",
    "notice warning: Invalid configuration; using defaults. | /c/config.toml:18:15: invalid type",
    "notice warning: Something else | /c/config.toml:18:15",
)
def _(thread: TranslatedThread) -> None:
    place = {
        "path": "/c/config.toml",
        "range": {"start": {"line": 18, "column": 15}, "end": {"line": 18, "column": 18}},
    }
    thread.notify(
        "configWarning",
        summary="Invalid configuration; using defaults.",
        details="/c/config.toml:18:15: invalid type",
        **place,
    )
    thread.notify("configWarning", summary="Something else", details=None, **place)


@scenario("compact", "compaction k [in_progress]", "compaction k [completed]", "usage 90/9000", "end u1 end_turn")
def _(thread: TranslatedThread) -> None:
    thread.begin()
    thread.started("contextCompaction", "k")
    thread.completed("contextCompaction", "k")
    thread.notify("thread/compacted")
    thread.answered(last=90)
    thread.over()


@scenario("eof", "say m 'long long lo'", TOUCH, "update c [failed]")
def _(thread: TranslatedThread) -> None:
    thread.begin()
    thread.started("agentMessage", "m")
    thread.notify("item/agentMessage/delta", itemId="m", delta="long long lo")
    thread.command("c", "touch made.txt", processId="1")
    thread.events += thread.translator.close_open()


def failing(
    name: str, message: str, info: Any, *outline: str, retry: str | None = None, retry_info: Any = None
) -> None:
    """A turn that comes to nothing but an error."""

    def play(thread: TranslatedThread) -> None:
        thread.begin()
        if retry is not None:
            thread.error("Reconnecting... 1/1", retry_info, retry=True, details=retry)
        thread.error(message, info)
        thread.over("failed", failure(message, info))

    SCENARIOS[name] = play, [*([RETRYING + retry] if retry is not None else []), *outline]


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
def _(thread: TranslatedThread) -> None:
    """What the user sent is not sent back."""
    thread.begin()
    done(thread)


@scenario("interrupt", "say m 'a long'", "end u1 cancelled", "say n 'fine'", "end u2 end_turn")
def _(thread: TranslatedThread) -> None:
    thread.begin()
    thread.started("agentMessage", "m")
    thread.notify("item/agentMessage/delta", itemId="m", delta="a long")
    thread.over("interrupted")
    thread.begin()
    thread.says("n", "fine")
    thread.over()


@scenario("plan", "plan A:in_progress, B:pending", "plan A:completed, B:in_progress", *DONE)
def _(thread: TranslatedThread) -> None:
    thread.begin()
    for first, second in (("inProgress", "pending"), ("completed", "inProgress")):
        thread.notify(
            "turn/plan/updated",
            explanation=None,
            plan=[{"step": "A", "status": first}, {"step": "B", "status": second}],
        )
    done(thread)


@scenario("resume", "usage 1025/9000", *DONE)
def _(thread: TranslatedThread) -> None:
    thread.answered()
    thread.notify(
        "deprecationNotice", summary="Full hydration is deprecated; page with `thread/turns/list`.", details=None
    )
    thread.begin()
    done(thread)


@scenario("sessions", "think r 'hmm'", "say m 'I will'", "end u1 end_turn", "title A name")
def _(thread: TranslatedThread) -> None:
    thread.begin()
    thread.thinks("r", "hmm")
    thread.says("m", "I will")
    thread.over()
    thread.notify("thread/name/updated", threadName="A name")


@scenario("steer", "say m 'one'", "say n 'two'", "end u1 end_turn")
def _(thread: TranslatedThread) -> None:
    """What is sent into a running turn is part of it."""
    thread.begin()
    thread.says("m", "one")
    thread.completed("userMessage", "more", content=[{"type": "text", "text": "and?"}])
    thread.says("n", "two")
    thread.over()


@scenario(
    "stop-failed",
    "say a 'half'",
    RETRYING + "stream disconnected",
    "end u1 error connection -32603 stream disconnected before completion",
)
def _(thread: TranslatedThread) -> None:
    """The stream breaks twice, and the item is there twice. An answer that broke is counted as nothing."""
    thread.begin()
    thread.says("a", "half")
    thread.answered(0, 0)
    thread.error(
        "Reconnecting... 1/1",
        {"responseStreamDisconnected": {"httpStatusCode": None}},
        retry=True,
        details="stream disconnected",
    )
    thread.says("b", "half")
    thread.over("failed", failure("stream disconnected before completion", "other"))


@scenario(
    "stop-filter",
    "say a 'I c'",
    RETRYING + "content_filter",
    "notice warning: The answer was refused | Incomplete response returned, reason: content_filter",
    "end u1 refusal",
)
def _(thread: TranslatedThread) -> None:
    thread.begin()
    thread.says("a", "I c")
    thread.error("Reconnecting... 1/1", {"responseStreamDisconnected": {}}, retry=True, details="content_filter")
    thread.says("b", "I", " c")
    thread.over("failed", failure("Incomplete response returned, reason: content_filter", "other"))


@scenario(
    "stop-maxtokens",
    "say m 'cut he'",
    "notice warning: The answer was cut off because it got too long | Incomplete response returned, reason: max_output_tokens",
    "end u1 max_tokens",
)
def _(thread: TranslatedThread) -> None:
    thread.begin()
    thread.says("m", "cut he")
    thread.answered(1025, 0)
    thread.over("failed", failure("Incomplete response returned, reason: max_output_tokens", "other"))
