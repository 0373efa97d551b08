"""Every message matches the schema."""

import re
from collections.abc import Iterable

from antiphon.traffic.checker import ALL_VERSIONS, Level, Side, rule
from antiphon.traffic.entries import Entry, as_object, objects_in
from antiphon.traffic.schema import Look, look, methods
from antiphon.traffic.state import SECOND, TrafficState

REMOVED_METHODS = ("session/set_model",)
OFFERS = ("params.clientCapabilities.", "params.capabilities.")
"""Places where a client sends its capabilities: an agent ignores one that it does not know."""
REMOVED_FIELDS = ("result.models",)


def _looked(entry: Entry, state: TrafficState) -> Look | None:
    """The finding of the schema about a line, looked up once for all rules; None if the schema has nothing about it."""
    if state.looked[0] is not entry:
        state.looked = entry, _look(entry, state.request, state.speaks)
    return state.looked[1]


def _look(entry: Entry, asked: Entry | None, version: int) -> Look | None:
    if entry.method is not None:
        method = methods(version).get((entry.method, entry.is_request))
        params = entry.msg.get("params", {})
        return look(method.params, params, "params", version=version) if method is not None else None
    if asked is None or "result" not in entry.msg:
        return None
    method = methods(version).get((asked.method or "", True))
    if method is None or method.result is None:
        return None
    return look(method.result, entry.msg["result"], "result", version=version)


def _faults(seen: Look | None) -> list[str] | None:
    return [f"`{fault.path}` {fault.text}" for fault in seen.faults] if seen is not None else None


@rule(
    "schema.params",
    Side.BOTH,
    Level.MUST,
    "The params of every request and notification match the schema.",
    link="schema",
    fix="Send each field that is required, with the type that the schema gives it.",
    on=["request", "notification"],
    versions=ALL_VERSIONS,
)
def params(entry: Entry, state: TrafficState) -> list[str] | None:
    return _faults(_looked(entry, state)) if entry.method != "session/update" else None


@rule(
    "schema.result",
    Side.BOTH,
    Level.MUST,
    "The result of every response matches the schema.",
    link="schema",
    fix="Answer with an object, also where it is empty, and with each field that is required.",
    on=["answer"],
    versions=ALL_VERSIONS,
)
def result(entry: Entry, state: TrafficState) -> list[str] | None:
    return _faults(_looked(entry, state))


@rule(
    "schema.update",
    Side.AGENT,
    Level.MUST,
    "Every update of a session matches the schema.",
    link="schema#sessionupdate",
    fix="Send one of the updates that the schema knows, with the fields it requires; what is your own goes into `_meta`.",
    on=["session/update"],
    versions=ALL_VERSIONS,
)
def update(entry: Entry, state: TrafficState) -> list[str] | None:
    return _faults(_looked(entry, state))


@rule(
    "schema.method",
    Side.BOTH,
    Level.MUST,
    "A method that the protocol does not have begins with an underscore, and the others go to the side that has them.",
    link="extensibility#extension-methods",
    fix="Name methods of your own `_maker/method`, and send those of the protocol in its direction, with an id or without as it demands.",
    on=["request", "notification"],
    versions=ALL_VERSIONS,
)
def method(entry: Entry, state: TrafficState) -> list[str] | None:
    name = entry.method or ""
    if name.startswith("_"):
        return []
    if _is_removed(name, state.speaks):
        return None
    listed = methods(state.speaks)
    known = listed.get((name, entry.is_request))
    if known is None and (name, not entry.is_request) in listed:
        kind = (
            "a notification, but was sent with an id" if entry.is_request else "a request, but was sent without an id"
        )
        return [f"`{name}` is {kind}"]
    if known is None:
        return [f"`{name}` is no method of the protocol and does not begin with `_`"]
    if known.side in ("agent", "client") and known.side == entry.dir.sender:
        return [f"`{name}` is for the {known.side} to answer, not to send"]
    return []


def _offers_models(entry: Entry) -> bool:
    options = objects_in(as_object(entry.msg.get("result")).get("configOptions"))
    return any(one.get("category") == "model" for one in options)


def _is_removed(name: str, version: int) -> bool:
    if version == SECOND:
        return not any((name, request) in methods(SECOND) for request in (True, False)) and any(
            (name, request) in methods(1) for request in (True, False)
        )
    return name in REMOVED_METHODS or name.startswith("unstable_")


@rule(
    "schema.removed",
    Side.BOTH,
    Level.ADVICE,
    "What was taken out of the protocol is not used any more.",
    link="session-config-options",
    fix="Offer models as a configuration option of the category `model`, beside the old way for as long as clients need it.",
    on=["request", "notification", "answer"],
)
def removed(entry: Entry, state: TrafficState) -> list[str] | None:
    if entry.method is not None:
        if not _is_removed(entry.method, state.speaks):
            return None
        return _once("removed", [f"the method `{entry.method}`"], entry, state, "was removed")
    seen = _looked(entry, state)
    if seen is None or state.request is None or not (state.request.method or "").startswith("session/"):
        return None
    if _offers_models(entry):
        return []  # and the old way beside it, for clients that were written before there were settings
    return _once(
        "removed", (f"`{one}`" for one in seen.unknown_fields if one in REMOVED_FIELDS), entry, state, "was removed"
    )


@rule(
    "schema.removed",
    Side.BOTH,
    Level.MUST,
    "Methods that version 2 has no more are not used: those for files and terminals of the client, modes and `session/load`.",
    link="migration",
    fix="Read, write and run by yourself, set modes as options, and load a session by `session/resume` with `replayFrom`.",
    on=["request", "notification"],
    versions=(SECOND,),
)
def removed_methods(entry: Entry, state: TrafficState) -> list[str] | None:
    name = entry.method or ""
    return [f"`{name}` is a method of version 1"] if _is_removed(name, SECOND) else []


@rule(
    "schema.own-words",
    Side.BOTH,
    Level.MUST,
    "A word of your own, such as a status or the type of an update, begins with an underscore: the others belong to later versions.",
    link="extensibility",
    fix="Write `_maker_word`, or use one of the words that the schema has.",
    on=["request", "notification", "answer"],
    versions=(SECOND,),
)
def own_words(entry: Entry, state: TrafficState) -> list[str] | None:
    seen = _looked(entry, state)
    if seen is None:
        return None
    return _once("word", (f"`{one}`" for one in seen.invented), entry, state, "is a word that the schema does not know")


@rule(
    "schema.draft",
    Side.BOTH,
    Level.ADVICE,
    "Nothing is sent that only the draft of the protocol has: it may change or go.",
    link="schema",
    fix="Leave it out, or make sure that the other side knows the same draft.",
    on=["request", "notification"],
    versions=ALL_VERSIONS,
)
def draft(entry: Entry, state: TrafficState) -> list[str] | None:
    """What a response has besides does no harm: a client that does not know it ignores it, and one that does looks for it there, such as the
    `fork` among an agent's capabilities and the `usage` of a turn, which most agents send."""
    seen = _looked(entry, state)
    if seen is None:
        return None
    found = [f"`{one}`" for one in seen.drafts if not one.startswith(OFFERS)]
    known = methods(state.speaks).get((entry.method, entry.is_request)) if entry.method is not None else None
    if known is not None and known.draft:
        found.append(f"the method `{known.name}`")
    return _once("draft", found, entry, state, "is only in the draft of the protocol")


@rule(
    "schema.unknown-field",
    Side.BOTH,
    Level.MUST,
    "The types of the protocol have no fields of your own: those go into `_meta`.",
    link="extensibility",
    fix="Move the field into `_meta` of the same object.",
    on=["request", "notification", "answer"],
    versions=ALL_VERSIONS,
)
def unknown_field(entry: Entry, state: TrafficState) -> list[str] | None:
    seen = _looked(entry, state)
    if seen is None:
        return None
    if not seen.unknown_fields:
        return []
    found = (f"`{one}`" for one in seen.unknown_fields if one not in REMOVED_FIELDS)
    return _once("stranger", found, entry, state, "is a field that the schema does not know")


def _once(topic: str, found: Iterable[str], entry: Entry, state: TrafficState, text: str) -> list[str]:
    """Each path once on a connection: a peer that sends a field sends it a thousand times."""
    where = entry.method or (state.request.method if state.request is not None else "")
    problems = []
    for one in found:
        place = re.sub(r"\[\d+\]", "[]", one)
        if state.first_time(topic, entry.dir, where, place):
            problems.append(f"{place} {text}")
    return problems
