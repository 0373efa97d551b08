"""The scenario that every pair plays, and the one place that judges what was seen. Knows no SDK and starts nothing.

A client program plays the steps by name and prints one line of JSON for each: `{"step": …, "ok": …, "detail": …}`, where
`ok` says that the step came to its end and `detail` what was seen. All clients see the same things, so one judge does.
"""

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

Facts = dict[str, Any]

SAID: Final = frozenset(
    {
        "agent_message_chunk", "agent_thought_chunk", "available_commands_update", "config_option_update",
        "current_mode_update", "plan", "session_info_update", "tool_call", "tool_call_update", "usage_update",
    }
)  # fmt: skip
"""The updates that every agent says when asked for all, whatever listens."""

SAID_IF_WANTED: Final = frozenset({"notice", "compaction_update", "compaction_summary_chunk"})
"""The updates that are only for clients that offered to take them."""

KINDS: Final = frozenset({"allow_once", "allow_always", "reject_once", "reject_always"})

LACKING: Final = "Lacking: "
"""How a client program begins an error that says: this SDK has no way to do it."""


class Seen(NamedTuple):
    """What one client program reported about one step."""

    step: str
    ok: bool
    detail: Facts

    @property
    def error(self) -> str:
        return str(self.detail.get("error", ""))

    @property
    def lacking(self) -> bool:
        return self.error.startswith(LACKING)


def ended(facts: Facts) -> str:
    return "" if facts["stop"] == "end_turn" else f"the turn ended with {facts['stop']}"


def cancelled(facts: Facts) -> str:
    return "" if facts["stop"] == "cancelled" else f"the turn ended with {facts['stop']}"


def called(facts: Facts, *wanted: str) -> str:
    missing = [call for call in wanted if call not in facts["calls"]]
    return f"never called: {', '.join(missing)}" if missing else ""


def missing_updates(facts: Facts, wanted: frozenset[str]) -> str:
    missing = sorted(wanted - set(facts["kinds"]))
    return f"never came: {', '.join(missing)}" if missing else ""


def in_order(facts: Facts) -> str:
    """Against what went over the wire."""
    sent = facts["sent"]
    handled = facts["handled"][-len(sent) :]  # some get what came before the turn, too
    if handled == sent:
        return ""
    if len(handled) < len(sent):
        return f"out of order: {len(sent)} were sent and {len(handled)} handled"
    early, late = next((a, b) for a, b in zip(sent, handled, strict=True) if a != b)
    return f"out of order: {early} was sent before {late}, and handled after it"


def asked(facts: Facts) -> str:
    return "" if set(facts["options"]) == KINDS else f"the options were {facts['options']}"


def held(facts: Facts, words: str) -> str:
    return "" if facts["file"].rstrip("\n") == words else f"the file holds {facts['file']!r}"


def same_mode(facts: Facts) -> str:
    wanted = facts["wanted_mode"]
    return "" if facts["mode"] == wanted else f"the mode is {facts['mode']}, it was set to {wanted}"


def refused(facts: Facts) -> str:
    """Each kind of wrong question has an answer that says so; only what is missing is left to the agent's own words."""
    wanted = {"unknown method": -32601, "unknown mode": -32602, "missing params": -32602}
    for case, code in facts["codes"].items():
        if not isinstance(code, int) or code != wanted.get(case, code):
            return f"{case}: {code}"
    return ""


JUDGES: Final[dict[str, Callable[[Facts], str]]] = {
    "initialize": lambda facts: "" if facts["version"] == 1 and facts["methods"] else f"{facts}",
    "authenticate": lambda facts: "",
    "new": lambda facts: "" if facts["modes"] and facts["options"] else f"{facts}",
    "updates": lambda facts: ended(facts) or missing_updates(facts, SAID),
    "updates_if_wanted": lambda facts: missing_updates(facts, SAID_IF_WANTED),
    "order": lambda facts: ended(facts) or in_order(facts),
    "permission_allow": lambda facts: ended(facts) or asked(facts) or called(facts, "write") or held(facts, "Sung by one."),
    "permission_reject": lambda facts: ended(facts) or asked(facts) or held(facts, "Sung by one."),
    "files": lambda facts: ended(facts) or called(facts, "read") or ("" if facts["shown"] else "it was not shown"),
    "terminal": lambda facts: ended(facts)
    or called(facts, "create", "output", "wait", "release")
    or ("" if facts["output"] == "sung aloud\n" else facts["output"]),
    "terminal_kill": lambda facts: cancelled(facts) or called(facts, "create", "release"),
    "terminal_race": lambda facts: cancelled(facts) or called(facts, "create", "release"),
    "cancel": cancelled,
    "set_mode": lambda facts: "",
    "set_config_option": lambda facts: "" if facts["now"] == facts["asked"] else f"it is {facts['now']}",
    "list": lambda facts: "" if facts["mine"] == [facts["folder"]] else f"listed: {facts['mine']}",
    "load": lambda facts: same_mode(facts)
    or missing_updates(facts, frozenset({"user_message_chunk", "agent_message_chunk", "tool_call"}))
    or ("" if facts["shown"] else "the last prompts did not come"),
    "resume": same_mode,
    "errors": refused,
    "afterwards": lambda facts: ended(facts) or missing_updates(facts, frozenset({"agent_message_chunk"})),
    "close": lambda facts: "",
    "quiet": lambda facts: f"logged: {facts['logged']}" if facts["logged"] else "",
    "delete": lambda facts: "" if not facts["mine"] else "it is still listed",
}  # fmt: skip

TITLES: Final = {
    "initialize": "initialize",
    "authenticate": "authenticate",
    "new": "new session, with modes and settings",
    "updates": "a prompt with every update that all clients know",
    "updates_if_wanted": "notices and compaction, for clients that ask for them",
    "order": "updates in order, though the first takes its handler a while",
    "permission_allow": "permission asked and given, file written",
    "permission_reject": "permission asked and refused, file untouched",
    "files": "file read",
    "terminal": "terminal: create, wait, output, release",
    "terminal_kill": "cancel while a terminal runs: it is ended and released",
    "terminal_race": "cancel while a terminal is being created: it is released",
    "cancel": "cancel in the middle of a turn",
    "set_mode": "set mode",
    "set_config_option": "set a setting",
    "list": "list sessions",
    "load": "load a session, with replay",
    "resume": "resume a session",
    "errors": "unknown session, method and mode, missing params, a failing prompt",
    "afterwards": "a prompt after all of that",
    "close": "close a session",
    "delete": "delete a session",
    "quiet": "neither side had anything to log",
}


def read(output: str) -> list[Seen]:
    """What a client program printed. The step with all the updates is judged twice, once for those that are optional."""
    steps = []
    for line in output.splitlines():
        seen = Seen(**json.loads(line))
        steps.append(seen)
        if seen.step == "updates":
            steps.append(seen._replace(step="updates_if_wanted"))
    return steps


def quiet(logged: str, traffic: str) -> Seen:
    """What both sides logged, as one more step: each line once, without where it happened."""
    lines = logged.splitlines() + [line[2:] for line in traffic.splitlines() if line.startswith("!")]
    words = [line for line in lines if line and not line.startswith((" ", "Traceback "))]
    return Seen("quiet", True, {"logged": " | ".join(dict.fromkeys(words))})


def problem(seen: Seen, folder: str, traffic: str) -> str:
    """What went wrong in a step, in one line; nothing if all is well."""
    if not seen.ok:
        return seen.error or "no reason given"
    return JUDGES[seen.step](seen.detail | {"folder": folder, "sent": sent_after(traffic, '"/all"', 2)})


def sent_after(traffic: str, words: str, which: int) -> list[str]:
    """The kinds of the updates that the agent sent in answer to the prompt with these words, for the n-th time."""
    kinds: list[str] = []
    prompt: object = None
    for line in traffic.splitlines():
        direction, message = line[0], json.loads(line[2:]) if line[0] in "<>" else {}
        if direction == ">" and message.get("method") == "session/prompt" and words in line:
            which -= 1
            prompt = message["id"] if which == 0 else prompt
        elif direction == "<" and prompt is not None and "method" not in message and message.get("id") == prompt:
            break
        elif direction == "<" and prompt is not None and message.get("method") == "session/update":
            kinds.append(message["params"]["update"]["sessionUpdate"])
    return kinds
