"""Every line is one message."""

from antiphon.traffic.entries import Entry
from antiphon.traffic.judging import Level, Side, rule
from antiphon.traffic.ledger import Ledger


@rule(
    "wire.utf8",
    Side.BOTH,
    Level.MUST,
    "What is sent is UTF-8.",
    link="transports",
    fix="Encode every message as UTF-8, whatever the encoding of the system is.",
)
def utf8(entry: Entry, ledger: Ledger) -> list[str] | None:
    if not entry.is_noise:
        return []
    try:
        entry.raw.decode()
    except UnicodeDecodeError as error:
        return [f"byte {error.start + 1} of the line is no UTF-8"]
    return None


@rule(
    "wire.json",
    Side.BOTH,
    Level.MUST,
    "Every line is one JSON value; nothing else is written where messages go.",
    link="transports#stdio",
    fix="Write logs and everything else that is no message to stderr.",
)
def json(entry: Entry, ledger: Ledger) -> list[str] | None:
    return ["the line is no JSON"] if entry.is_noise else []


@rule(
    "wire.no-batch",
    Side.BOTH,
    Level.MUST,
    "Messages are sent one by one, not as JSON-RPC batches.",
    link="transports",
    fix="Send each message of the array as a line of its own.",
)
def no_batch(entry: Entry, ledger: Ledger) -> list[str] | None:
    if entry.is_noise or (isinstance(entry.msg, list) and ledger.batches[entry.dir.other]):
        return None  # a batch may be answered by a batch
    return [f"an array of {len(entry.msg)}, which is a batch"] if isinstance(entry.msg, list) else []
