"""Faults of opening, listing, closing and deleting sessions."""

from collections.abc import Iterable
from typing import Any, Final

from tests.conformance.faults.one_scenario import (
    PROMPT,
    UPDATE,
    Made,
    MessageOnItsWay,
    SessionNotes,
    accept,
    answer,
    change_sent,
    in_scene,
    prompt,
    refuse,
    spoil,
    stop,
)
from tests.conformance.faults.wire_faults import Faults, Message

NEW, LIST, LOAD = "session/new", "session/list", "session/load"


def elsewhere(message: Message) -> None:
    message["params"]["cwd"] = "/"


def forgets(kind: str) -> Made:
    """Loading leaves one side of the session out."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        loading = any(asked.get("method") == LOAD for asked, _ in exchange.asked.values())
        if not (loading and reply.has_method(UPDATE) and reply.message["params"]["update"]["sessionUpdate"] == kind):
            yield reply.message

    return in_scene("load", meddle)


def takes_unoffered() -> Made:
    """A session has no modes, and takes any mode all the same."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        if reply.answers(NEW):
            reply.message["result"].pop("modes")
        elif reply.answers("session/set_mode"):
            accept({})(reply.message)
        yield reply.message

    return in_scene("not-offered", meddle)


def other_settings(message: Message) -> None:
    """Every setting has another value than it was left with."""
    for option in message["result"]["configOptions"]:
        if option["type"] == "boolean":
            option["currentValue"] = not option["currentValue"]
        else:
            values = [each["value"] for one in option["options"] for each in one.get("options", [one])]
            option["currentValue"] = next(one for one in values if one != option["currentValue"])


def listed(record: str, number: int, *more: Message, without: bool = False) -> Made:
    """One answer to `session/list` is longer than it should be, or empty."""

    def change(message: Message) -> None:
        message["result"]["sessions"] = [*([] if without else message["result"]["sessions"]), *more]

    return answer(record, LIST, change, number)


STRANGER: Final[Message] = {"sessionId": "antiphon-stranger", "cwd": "/antiphon/stranger"}


def again_and_again() -> Made:
    """The last page leads to itself."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        if reply.answers(LIST) and reply.asked is not None and "cwd" not in reply.asked["params"]:
            if "result" in reply.message and reply.asked["params"].get("cursor", "more") == "more":
                reply.message["result"]["nextCursor"] = "more"
            elif reply.asked["params"].get("cursor") == "more":
                accept({"sessions": [STRANGER, STRANGER]})(reply.message)
        yield reply.message

    return in_scene("list-pages", meddle)


def still_listed() -> Made:
    """A session that was deleted is listed as before."""

    def meddle(reply: MessageOnItsWay, exchange: SessionNotes) -> Iterable[Any]:
        if reply.answers(LIST):
            if exchange.notes:
                reply.message["result"]["sessions"] = exchange.notes["sessions"]
            exchange.notes["sessions"] = reply.message["result"]["sessions"]
        yield reply.message

    return in_scene("delete", meddle)


FAULTS: Faults = {
    "unoffered.refused": takes_unoffered(),
    "session.opens": spoil("session-new", NEW),
    "session.relative-directory": answer("where", NEW, accept({"sessionId": "antiphon-odd-1"}), 1),
    "session.lost-server": spoil("session-mcp", NEW),
    "session.http-server": spoil("session-http", NEW),
    "session.sse-server": spoil("session-sse", NEW),
    "session.directories": spoil("session-directories", NEW),
    "session.directory": change_sent("session-cwd", "terminal/create", elsewhere),
    "load.loads": answer("load", LOAD, refuse),
    "load.user": forgets("user_message_chunk"),
    "load.agent": forgets("agent_message_chunk"),
    "load.next": prompt("load", refuse, 2),
    "load.unknown": answer("load-unknown", LOAD, accept({})),
    "load.settings": answer("load-settings", LOAD, other_settings),
    "resume.resumes": answer("resume", "session/resume", refuse, 2),
    "resume.unknown": answer("resume", "session/resume", accept({}), 1),
    "resume.next": prompt("resume", refuse, 2),
    "fork.another": spoil("fork", "session/fork"),
    "fork.next": prompt("fork", refuse, 2),
    "fork.original": prompt("fork", refuse, 3),
    "list.lists": answer("list", LIST, refuse, 2),
    "list.has": listed("list", 3, without=True),
    "list.directory": listed("list", 3, STRANGER),
    "list.none": listed("list", 4, STRANGER),
    "list.cursor": answer("list", LIST, accept({"sessions": []}), 1),
    "list.pages": again_and_again(),
    "delete.deletes": answer("delete", "session/delete", refuse, 1),
    "delete.unlisted": still_listed(),
    "delete.twice": answer("delete", "session/delete", refuse, 2),
    "close.closes": answer("close", "session/close", refuse),
    "close.closed": prompt("close", stop("end_turn"), 2),
    "close.cancels": answer("close-busy", PROMPT, stop("end_turn")),
}
