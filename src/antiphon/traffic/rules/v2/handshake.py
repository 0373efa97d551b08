"""A version is settled by `initialize`, and logins are those that were offered."""

from antiphon.traffic.checker import Level, Side, rule
from antiphon.traffic.entries import Entry, as_object, objects_in, shown
from antiphon.traffic.state import SECOND, TrafficState

UNSUPPORTED_VERSION = -32022


@rule(
    "init.version",
    Side.AGENT,
    Level.MUST,
    "The agent answers with the highest version that it supports and that is not higher than the requested one.",
    link="schema#initializeresponse",
    fix="Answer with the requested version or a lower one; where there is none, with the error -32022.",
    on=["answer initialize"],
    versions=(SECOND,),
)
def version(entry: Entry, state: TrafficState) -> list[str] | None:
    answered = as_object(entry.msg.get("result")).get("protocolVersion")
    requested = state.request.params.get("protocolVersion") if state.request is not None else None
    if not isinstance(answered, int) or not isinstance(requested, int):
        return None
    return [] if answered <= requested else [f"version {requested} was requested and {answered} is the answer"]


@rule(
    "init.refused",
    Side.AGENT,
    Level.MUST,
    "The error -32022 says which version was requested and which ones the agent supports.",
    link="schema#unsupportedprotocolversionerrordata",
    fix='Send `data` with the error: `{"requested": 0, "supported": [1, 2]}`.',
    on=["answer initialize"],
    versions=(SECOND,),
)
def refused(entry: Entry, state: TrafficState) -> list[str] | None:
    error = as_object(entry.msg.get("error"))
    if error.get("code") != UNSUPPORTED_VERSION or state.request is None:
        return None
    data, requested = as_object(error.get("data")), state.request.params.get("protocolVersion")
    found = [] if data.get("requested") == requested else [f"`error.data.requested` is not {shown(requested)}"]
    supported = data.get("supported")
    if not isinstance(supported, list) or not all(isinstance(one, int) for one in supported):
        found.append("`error.data.supported` is not a list of versions")
    elif isinstance(requested, int) and any(one <= requested for one in supported):
        found.append(f"one of the supported versions ({shown(min(supported))}) is not higher than the requested one")
    return found


@rule(
    "init.once",
    Side.CLIENT,
    Level.MUST,
    "`initialize` is sent again only before the first other request.",
    link="schema#clientrequest",
    fix="Keep what the agent answered; start another connection to begin anew.",
    on=["initialize"],
    versions=(SECOND,),
)
def once(entry: Entry, state: TrafficState) -> list[str] | None:
    return ["a session was opened already"] if state.opened and state.initialized is not None else []


@rule(
    "auth.offered",
    Side.CLIENT,
    Level.MUST,
    "The client logs in by a method that the agent offered, and not by one that runs in a terminal.",
    link="schema#loginauthrequest",
    fix="Send the `methodId` of one of the `authMethods` in the answer to `initialize`; run those of the type `terminal` in one.",
    on=["auth/login", "auth/logout"],
    versions=(SECOND,),
)
def auth_offered(entry: Entry, state: TrafficState) -> list[str] | None:
    if state.initialized is None:
        return None
    if not state.auth_methods:
        return [f"`{entry.method}` was sent, although the agent offers no method to log in"]
    wanted = entry.params.get("methodId")
    if entry.method == "auth/logout" or not isinstance(wanted, str):
        return []
    if wanted not in state.auth_methods:
        return [f"{shown(wanted)} is not one of the methods that were offered ({', '.join(state.auth_methods)})"]
    offered = objects_in(as_object(state.initialized.msg.get("result")).get("authMethods"))
    in_terminal = any(one.get("methodId") == wanted and one.get("type") == "terminal" for one in offered)
    return [f"the method {shown(wanted)} runs in a terminal"] if in_terminal else []
