"""Faults of `initialize` and of the choice of a version."""

from typing import Any

from tests.conformance.faults.one_message import Wanted, accept, after, asks, before, change_reply, refuse, when
from tests.conformance.faults.wire_faults import Change, Faults, change_answer
from tests.conformance.memory import Message


def initializes(**params: Any) -> Wanted:
    """Whether a line is `initialize` with these params among others."""
    return asks("initialize", lambda found: all(name in found and found[name] == params[name] for name in params))


def _is_ordinary(params: Message) -> bool:
    return params["protocolVersion"] == 1 and params.get("clientCapabilities") != {} and bool(params.get("clientInfo"))


ORDINARY = asks("initialize", _is_ordinary)
BARE = asks("initialize", lambda params: params == {"protocolVersion": 1})
OPENS = asks("session/new")
AGAIN = {"protocolVersion": 1, "clientCapabilities": {}}


def without(name: str) -> Change:
    def change(message: Message) -> None:
        message["result"].pop(name)

    return change


def version(number: object) -> Change:
    def change(message: Message) -> None:
        message["result"]["protocolVersion"] = number

    return change


FAULTS: Faults = {
    "init.answers": refuse(ORDINARY),
    "init.version": change_reply(ORDINARY, version(0)),
    "init.info": change_answer("initialize", without("agentInfo")),
    "init.capabilities": change_answer("initialize", without("agentCapabilities")),
    "init.auth-methods": change_answer("initialize", without("authMethods")),
    "init.twice": accept(initializes(**AGAIN), {"protocolVersion": 7}),
    "init.bare": refuse(BARE),
    "init.bare-session": when(refuse, after(BARE, OPENS)),
    "init.refuses-early": when(lambda aim: accept(aim, {"sessionId": "early"}), before(asks("initialize"), OPENS)),
    "init.after-early": when(
        refuse, after(lambda line: not asks("initialize")(line), asks("initialize"))
    ),  # only one of them is early
    "init.unknown-capability": refuse(
        asks("initialize", lambda params: "antiphonCheck" in params.get("clientCapabilities", {}))
    ),
    "init.unknown-field": refuse(asks("initialize", lambda params: "antiphonCheck" in params)),
    "init.meta": refuse(asks("initialize", lambda params: "_meta" in params)),
    "init.nulls": refuse(initializes(clientInfo=None)),
    "init.empty-capabilities": refuse(
        asks("initialize", lambda params: params.get("clientCapabilities") == {} and "clientInfo" in params)
    ),
    "version.answers": refuse(initializes(protocolVersion=65535)),
    "version.no-echo": change_reply(initializes(protocolVersion=65535), version(65535)),
    "version.two": change_reply(initializes(protocolVersion=2), version(2)),
    "version.zero": change_reply(initializes(protocolVersion=0), version(0)),
    "version.word": accept(initializes(protocolVersion="one"), {"protocolVersion": "one"}),
    "version.again": when(refuse, after(initializes(protocolVersion="one"), asks("initialize"))),
}
