"""Error codes and their meanings."""

from hypothesis import given
from hypothesis import strategies as st

from antiphon import errors
from antiphon.errors import Code, ProcessDied, RequestError, RequestRefused, ResponseError, SpawnFailed, meaning_of
from antiphon.rpc.envelope import ErrorObject, error_frame
from tests.rows import each_row


@each_row(
    ("code", "message", "meaning"),
    [
        (-32000, "Authentication required", "authentication required"),
        (-32000, "Connection closed by server", "connection closed"),
        (-32001, "Request timed out", "request timeout"),
        (-32001, "Unsupported protocol version 7", "unsupported protocol version"),
        (-32002, "Resource not found", "resource not found"),
        (-32002, "Permission denied", "permission denied"),
        (-32003, "Session expired", "session expired"),
        (-32022, "no such version", "unsupported protocol version"),
        (-32800, "", "request cancelled"),
        (-32050, "", "server error"),
        (400, "bad", "error"),
    ],
)
def test_colliding_codes_are_distinguished_by_their_messages(code: int, message: str, meaning: str) -> None:
    assert meaning_of(code, message) == meaning


def test_every_code_has_a_name() -> None:
    codes = [value for name, value in vars(Code).items() if name.isupper()]
    assert len(set(codes)) == len(codes)
    assert all(meaning_of(code) not in ("error", "server error") for code in codes)


def test_the_type_shows_whose_fault_it_is() -> None:
    assert issubclass(errors.RemoteProtocolError, errors.ProtocolError)
    assert issubclass(errors.LocalProtocolError, errors.ProtocolError)
    assert not issubclass(errors.RequestError, errors.ProtocolError)
    assert issubclass(errors.ConnectionClosed, errors.AcpError)


def test_an_error_reads_as_a_sentence() -> None:
    assert str(RequestError(-32601, "Method not found", "x/y")) == "Method not found: x/y (-32601)"
    assert str(RequestError(-32603, "Internal error", "it is full", hint="make room")) == (
        "it is full (-32603, internal error)\nhint: make room"
    )
    assert str(RequestError(-32603, "Internal error")) == "Internal error (-32603)"


PIECES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=20).filter(str.strip)


@given(
    PIECES, PIECES, PIECES, st.sampled_from(["message", "text", "details", "field"]), st.sampled_from([-32603, -32050])
)
def test_people_read_a_sentence_without_the_code_and_then_the_hint(
    message: str, details: str, hint: str, place: str, code: int
) -> None:
    """Wherever the peer puts them."""
    match place:
        case "message":
            error = RequestError(code, f"{message}", {"details": details}, hint=hint)
        case "text":
            error = RequestError(code, message, details, hint=hint)
        case "details":
            error = RequestError(code, message, {"details": f"{details}\nhint: {hint}"})
        case _:
            error = RequestError(code, message, {"details": details, "hint": hint})
    sentence, shown = errors.sentence_and_hint(error)
    assert shown == hint
    assert (
        details in sentence
        and "\nhint: " not in sentence
        and str(code) not in sentence.replace(message, "").replace(details, "")
    )
    assert str(error).endswith(f"\nhint: {hint}") and f"({code}, " in str(error).partition("\nhint: ")[0]


def test_the_error_of_a_dead_process_has_its_status_and_its_stderr() -> None:
    assert "exited with status 3" in str(ProcessDied("agent --acp", 3, "boom")) and "boom" in str(
        ProcessDied("agent --acp", 3, "boom")
    )
    assert "signal 9" in str(ProcessDied("agent", -9))


def test_a_program_that_does_not_start_ends_with_a_hint() -> None:
    for cause in (FileNotFoundError(), PermissionError(), ValueError("embedded null byte")):
        assert str(SpawnFailed("agent", cause)).splitlines()[-1].startswith("hint: ")


def test_a_refusal_of_ours_is_distinguished_from_one_of_the_peer() -> None:
    assert not issubclass(RequestRefused, RequestError)
    assert issubclass(RequestRefused, ResponseError) and issubclass(RequestError, ResponseError)


@each_row(
    ("error", "code", "sentence"),
    [
        (RequestError.parse_error("no JSON"), Code.PARSE_ERROR, "Parse error: no JSON"),
        (RequestError.invalid_request(), Code.INVALID_REQUEST, "Invalid request"),
        (RequestError.method_not_found("x/y"), Code.METHOD_NOT_FOUND, "Method not found: x/y"),
        (RequestError.invalid_params("cwd"), Code.INVALID_PARAMS, "Invalid params: cwd"),
        (RequestError.internal("the disk is full"), Code.INTERNAL_ERROR, "the disk is full"),
        (RequestError.cancelled(), Code.REQUEST_CANCELLED, "Request cancelled"),
        (RequestError.auth_required(), Code.AUTH_REQUIRED, "Authentication required"),
        (RequestError.not_found("session s"), Code.RESOURCE_NOT_FOUND, "Resource not found: session s"),
    ],
    ids=lambda value: str(value),
)
def test_each_constructor_has_its_code_and_message(error: RequestError, code: Code, sentence: str) -> None:
    assert (error.code, error.sentence) == (code, sentence)
    assert error.meaning == code.name.lower().replace("_", " ").replace("auth ", "authentication ")
    assert type(error).invalid_params("x", hint="do y").hint == "do y"


def test_a_code_is_a_number_on_the_wire_and_a_name_in_the_program() -> None:
    assert Code(-32602) is Code.INVALID_PARAMS
    assert error_frame(1, ErrorObject(Code.INVALID_PARAMS, "x")).endswith(b'"error":{"code":-32602,"message":"x"}}')
