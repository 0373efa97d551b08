"""Every line is one message of JSON-RPC: a request, a notification or a response, and responses find their requests."""

from antiphon.errors import Code
from antiphon.traffic.checker import ALL_VERSIONS, Level, Side, rule
from antiphon.traffic.entries import Entry, as_object, shown
from antiphon.traffic.state import TrafficState, id_shown, is_id

# --- lines


@rule(
    "wire.utf8",
    Side.BOTH,
    Level.MUST,
    "What is sent is UTF-8.",
    link="transports",
    fix="Encode every message as UTF-8, whatever the encoding of the system is.",
    versions=ALL_VERSIONS,
)
def utf8(entry: Entry, state: TrafficState) -> list[str] | None:
    if not entry.is_noise:
        return []
    try:
        entry.raw.decode()
    except UnicodeDecodeError as error:
        return [f"byte {error.start + 1} of the line is not UTF-8"]
    return None


@rule(
    "wire.json",
    Side.BOTH,
    Level.MUST,
    "Every line is one JSON value; nothing else is written where messages go.",
    link="transports#stdio",
    fix="Write logs and everything else that is not a message to stderr.",
    versions=ALL_VERSIONS,
)
def json(entry: Entry, state: TrafficState) -> list[str] | None:
    return ["the line is not JSON"] if entry.is_noise else []


@rule(
    "wire.no-batch",
    Side.BOTH,
    Level.MUST,
    "Messages are sent one by one, not as JSON-RPC batches.",
    link="transports",
    fix="Send each message of the array as a line of its own.",
    versions=ALL_VERSIONS,
)
def no_batch(entry: Entry, state: TrafficState) -> list[str] | None:
    if entry.is_noise or (isinstance(entry.msg, list) and state.batches[entry.dir.other]):
        return None  # a batch may be answered by a batch
    return [f"an array of {len(entry.msg)}, which is a batch"] if isinstance(entry.msg, list) else []


@rule(
    "rpc.version",
    Side.BOTH,
    Level.MUST,
    'Every message is marked as JSON-RPC "2.0".',
    link="overview#communication-model",
    fix='Add `"jsonrpc": "2.0"` to every message, answers too.',
    versions=ALL_VERSIONS,
)
def version(entry: Entry, state: TrafficState) -> list[str] | None:
    if not isinstance(entry.msg, dict):
        return None
    if "jsonrpc" not in entry.msg:
        return ["`jsonrpc` is missing"]
    return [] if entry.msg["jsonrpc"] == "2.0" else [f'`jsonrpc` is {shown(entry.msg["jsonrpc"])}, not "2.0"']


@rule(
    "rpc.shape",
    Side.BOTH,
    Level.MUST,
    "Every message is an object that is a request, a notification or an answer with either a result or an error.",
    link="overview#communication-model",
    fix="Send `method` and `params` (an object), or `id` with exactly one of `result` and `error`.",
    versions=ALL_VERSIONS,
)
def shape(entry: Entry, state: TrafficState) -> list[str] | None:
    msg = entry.msg
    if entry.is_noise or isinstance(msg, list):
        return None
    if not isinstance(msg, dict):
        return [f"{shown(msg)} is no object"]
    if "method" in msg:
        found = [] if isinstance(msg["method"], str) else [f"`method` is {shown(msg['method'])}, not a string"]
        found += [f"it has `method` and `{name}`" for name in ("result", "error") if name in msg]
        if "params" in msg and not isinstance(msg["params"], dict):
            found.append(f"`params` is {shown(msg['params'])}, not an object")
        return found
    if "result" in msg and "error" in msg:
        return ["it has both `result` and `error`"]
    return [] if entry.is_response else ["it has neither `method` nor `result` nor `error`"]


@rule(
    "rpc.id",
    Side.BOTH,
    Level.MUST,
    "The id of a request is a string or an integer.",
    link="overview#communication-model",
    fix="Count requests, or give them strings; null, fractions, lists and objects are not ids.",
    on=["request"],
    versions=ALL_VERSIONS,
)
def id_type(entry: Entry, state: TrafficState) -> list[str] | None:
    return [] if is_id(entry.msg["id"]) else [f"the id is {shown(entry.msg['id'])}"]


@rule(
    "rpc.id-unique",
    Side.BOTH,
    Level.MUST,
    "An id is not used again while the request that has it is open.",
    link="overview#communication-model",
    fix="Give every request an id of its own.",
    on=["request"],
    versions=ALL_VERSIONS,
)
def id_unique(entry: Entry, state: TrafficState) -> list[str] | None:
    same = state.pairs.duplicate_of(entry)
    if same is None:
        return []
    return [f"the id {shown(entry.msg['id'])} is still that of `{same.method}` in message {same.number}"]


@rule(
    "rpc.answer-id",
    Side.BOTH,
    Level.MUST,
    "Every answer has an id; it is null where the id of the request could not be read.",
    link="overview#communication-model",
    fix="Write `id` into every answer, as null into the error for a line that is not JSON.",
    on=["answer"],
    versions=ALL_VERSIONS,
)
def answer_id(entry: Entry, state: TrafficState) -> list[str] | None:
    return [] if "id" in entry.msg else ["`id` is missing"]


@rule(
    "rpc.answer-known",
    Side.BOTH,
    Level.MUST,
    "An answer is for an open request of the other side and bears its very id.",
    link="overview#communication-model",
    fix="Answer each request once, with the id exactly as it came: a number stays a number, a string a string.",
    on=["answer"],
    versions=ALL_VERSIONS,
)
def answer_known(entry: Entry, state: TrafficState) -> list[str] | None:
    if state.request is not None:
        return []
    if "id" not in entry.msg:
        return None  # which is another rule
    id = entry.msg.get("id")
    if id is None and "error" in entry.msg:
        return None  # what could not be read has no id to be answered with
    if (entry.dir.other, id_shown(entry.msg)) in state.malformed_ids:
        return None  # it was asked, though not properly
    if state.initialize is None:
        return None  # the recording begins later than the connection, and so may the request be missing
    if as_object(entry.msg.get("error")).get("code") == Code.PARSE_ERROR and state.malformed[entry.dir.other]:
        return None  # an id that was found in a line which is not JSON, so that the peer does not wait for ever
    alike = state.pairs.similar_to(entry)
    if alike is not None:
        return [f"the id {shown(id)} is not that of `{alike.method}`, which was asked with {shown(alike.msg['id'])}"]
    return [f"no request with the id {shown(id)} is open"]


@rule(
    "rpc.answer-to-notification",
    Side.BOTH,
    Level.MUST,
    "A notification is never answered, not even with an error.",
    link="overview#error-handling",
    fix="Ignore notifications that are not understood.",
    on=["answer"],
    versions=ALL_VERSIONS,
)
def answer_to_notification(entry: Entry, state: TrafficState) -> list[str] | None:
    """An error without an id is for a line that could not be read; where all could be, it must be for a notification."""
    if entry.msg.get("id") is not None or "error" not in entry.msg or state.request is not None:
        return [] if state.request is not None else None
    if state.malformed[entry.dir.other]:
        return None
    return ["an error without an id, although every line of the other side was a proper message"]


@rule(
    "rpc.error-object",
    Side.BOTH,
    Level.MUST,
    "An error has an integer code and a message.",
    link="overview#error-handling",
    fix='Send errors as `{"code": -32603, "message": "what happened"}`; more goes into `data`.',
    on=["error"],
    versions=ALL_VERSIONS,
)
def error_object(entry: Entry, state: TrafficState) -> list[str] | None:
    error = entry.msg["error"]
    if not isinstance(error, dict):
        return [f"`error` is {shown(error)}, not an object"]
    code, message = error.get("code"), error.get("message")
    found = []
    if not isinstance(code, int) or isinstance(code, bool):
        found.append(f"`error.code` is {shown(code)}, not an integer" if "code" in error else "`error.code` is missing")
    if not isinstance(message, str):
        found.append(
            f"`error.message` is {shown(message)}, not a string" if "message" in error else "`error.message` is missing"
        )
    return found


@rule(
    "rpc.error-code",
    Side.BOTH,
    Level.SHOULD,
    "The code of an error is one of JSON-RPC's: from -32768 to -32000, or -32800 for a cancelled request.",
    link="schema#errorcode",
    fix="Use -32603 for what went wrong inside, and put the status of an upstream service into `data`.",
    on=["error"],
    versions=ALL_VERSIONS,
)
def error_code(entry: Entry, state: TrafficState) -> list[str] | None:
    code = as_object(entry.msg.get("error")).get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        return None
    if -32768 <= code <= -32000 or code == -32800:
        return []
    return [f"`error.code` is {shown(code)}" + (", which looks like an HTTP status" if 100 <= code < 600 else "")]


@rule(
    "rpc.error-message",
    Side.BOTH,
    Level.ADVICE,
    "The message of an error is a short sentence on one line.",
    link="overview#error-handling",
    fix="Write in one sentence what went wrong; stack traces and documents belong in `data`, or in the log.",
    on=["error"],
    versions=ALL_VERSIONS,
)
def error_message(entry: Entry, state: TrafficState) -> list[str] | None:
    message = as_object(entry.msg.get("error")).get("message")
    if not isinstance(message, str):
        return None
    if not message.strip():
        return ["`error.message` is empty"]
    lines = len(message.splitlines())
    return [f"`error.message` has {lines} lines"] if lines > 1 else []
