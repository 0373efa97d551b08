"""A connection begins with `initialize`, and nothing else is sent before that is done."""

from antiphon.traffic.checker import ALL_VERSIONS, Level, Side, rule
from antiphon.traffic.entries import Entry, objects_in, shown, texts_in, twice_in
from antiphon.traffic.state import SECOND, TrafficState, is_malformed

VERSIONS = ALL_VERSIONS
"""The versions of the protocol that there are."""


@rule(
    "init.first",
    Side.CLIENT,
    Level.MUST,
    "The first message of the client is `initialize`.",
    link="initialization",
    fix="Send `initialize` before anything else.",
    versions=ALL_VERSIONS,
)
def first(entry: Entry, state: TrafficState) -> list[str] | None:
    if state.initialize is not None or is_malformed(entry) or not state.first_time("init.first"):
        return None
    return [] if entry.method == "initialize" else [f"the first message is `{entry.method or 'an answer'}`"]


@rule(
    "init.once",
    Side.CLIENT,
    Level.SHOULD,
    "`initialize` is sent once on a connection.",
    link="initialization",
    fix="Keep what the agent answered; start another process to begin anew.",
    on=["initialize"],
)
def once(entry: Entry, state: TrafficState) -> list[str] | None:
    if state.initialize is None:
        return []
    if state.initialized is None and state.pairs.duplicate_of(state.initialize) is None:
        return None  # it was refused, so asking again for another version is right
    return [f"`initialize` was sent already, in message {state.initialize.number}"]


@rule(
    "init.waits",
    Side.CLIENT,
    Level.SHOULD,
    "The client asks for nothing else until `initialize` is answered: only then does it know what the agent can do.",
    link="initialization",
    fix="Wait for the answer to `initialize` before the next request.",
    on=["request"],
    versions=ALL_VERSIONS,
)
def waits(entry: Entry, state: TrafficState) -> list[str] | None:
    if entry.method == "initialize" or state.initialize is None:
        return None
    if state.initialized is None and state.pairs.duplicate_of(state.initialize) is not None:
        return [f"`{entry.method}` was asked before `initialize` was answered"]
    return []


@rule(
    "init.speaks-after",
    Side.AGENT,
    Level.SHOULD,
    "The agent sends nothing before it has answered `initialize`.",
    link="initialization",
    fix="Answer `initialize` first; send everything else after it.",
    on=["request", "notification", "answer initialize"],
    versions=ALL_VERSIONS,
)
def silent_before(entry: Entry, state: TrafficState) -> list[str] | None:
    if state.initialize is None or state.opened:  # a client that opens sessions before gets updates of them before
        return None
    if entry.method is None:
        return []
    waiting = state.initialized is None and state.pairs.duplicate_of(state.initialize) is not None
    return [f"`{entry.method}` was sent before `initialize` was answered"] if waiting else []


@rule(
    "init.no-echo",
    Side.AGENT,
    Level.MUST,
    "The agent answers with a version that it supports, not with whatever was requested.",
    link="initialization#version-negotiation",
    fix="Answer with the version of the client if you support it, else with the newest that you do.",
    on=["answer initialize"],
)
def version(entry: Entry, state: TrafficState) -> list[str] | None:
    result = entry.msg.get("result")
    answered = result.get("protocolVersion") if isinstance(result, dict) else None
    if not isinstance(answered, int):
        return None
    return [] if answered in VERSIONS else [f"there is no version {answered}"]


@rule(
    "auth.ids",
    Side.AGENT,
    Level.MUST,
    "Every way to log in has an id of its own.",
    link="authentication",
    fix="Give each entry of `authMethods` an id of its own.",
    on=["answer initialize"],
    link_v2="schema#authmethod",
    versions=ALL_VERSIONS,
)
def auth_ids(entry: Entry, state: TrafficState) -> list[str] | None:
    result = entry.msg.get("result")
    offered = result.get("authMethods") if isinstance(result, dict) else None
    if not objects_in(offered):
        return None
    name = "methodId" if state.speaks == SECOND else "id"
    return [f"more than one method has the id {shown(id)}" for id in twice_in(texts_in(offered, name))]


@rule(
    "auth.offered",
    Side.CLIENT,
    Level.MUST,
    "The client logs in by a method that the agent offered.",
    link="authentication",
    fix="Send the `id` of one of the `authMethods` in the answer to `initialize`.",
    on=["authenticate"],
)
def auth_offered(entry: Entry, state: TrafficState) -> list[str] | None:
    wanted = entry.params.get("methodId")
    if state.initialized is None or not isinstance(wanted, str):
        return None
    if wanted in state.auth_methods:
        return []
    return [f"{shown(wanted)} is not one of the methods that were offered ({', '.join(state.auth_methods) or 'none'})"]
