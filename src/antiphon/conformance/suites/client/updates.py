"""All that an agent tells while it works, as the specification has it."""

from typing import Any

from antiphon.conformance.client_stage import ClientStage
from antiphon.conformance.requirements import Requirement, capability, must
from antiphon.conformance.suites.client.suite import SUITE
from antiphon.conformance.verdicts import NotOffered

__all__ = ["text"]

Update = dict[str, Any]

FIX = "Handle every kind of `session/update`; one that you have no use for is read and dropped."


def text(words: str) -> dict[str, str]:
    """A block of text."""
    return {"type": "text", "text": words}


def _content(words: str) -> Update:
    return {"type": "content", "content": text(words)}


MESSAGES: list[Update] = [
    {"sessionUpdate": "user_message_chunk", "content": text("what was asked")},
    {"sessionUpdate": "agent_thought_chunk", "content": text("hm")},
    {"sessionUpdate": "agent_message_chunk", "content": text("an answer"), "messageId": "m-1"},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "resource_link", "uri": "file:///a", "name": "a"}},
    {"sessionUpdate": "agent_message_chunk", "content": {"type": "resource", "resource": {"uri": "x:a", "text": "t"}}},
]

CALLS: list[Update] = [
    {"sessionUpdate": "tool_call", "toolCallId": "c-1", "title": "Read", "kind": "read", "status": "pending",
     "locations": [{"path": "/a", "line": 3}], "rawInput": {"path": "/a"}},
    {"sessionUpdate": "tool_call_update", "toolCallId": "c-1", "status": "in_progress", "content": [_content("so far")]},
    {"sessionUpdate": "tool_call_update", "toolCallId": "c-1", "status": "completed", "rawOutput": "all", "content": [
        {"type": "diff", "path": "/a", "oldText": None, "newText": "new\n"}, _content("done")]},
    {"sessionUpdate": "tool_call", "toolCallId": "c-2", "title": "Only a title"},
    {"sessionUpdate": "tool_call_update", "toolCallId": "c-2", "status": "failed", "title": None},
]  # fmt: skip

PLANS: list[Update] = [
    {"sessionUpdate": "plan", "entries": [{"content": "one", "priority": "high", "status": "pending"}]},
    {"sessionUpdate": "plan", "entries": [{"content": "one", "priority": "low", "status": "completed"}]},
    {"sessionUpdate": "plan", "entries": []},
]

NOTICES: list[Update] = [
    {"sessionUpdate": "notice", "severity": "warning", "title": "Look", "description": "here"},
]

COMPACTION: list[Update] = [
    {"sessionUpdate": "compaction_update", "compactionId": "k", "status": "in_progress"},
    {"sessionUpdate": "compaction_summary_chunk", "compactionId": "k", "content": text("in short")},
    {"sessionUpdate": "compaction_update", "compactionId": "k", "status": "completed", "summary": [text("in short")]},
]


def _told(id: str, what: str, link: str) -> Requirement:
    return must(id, f"{what} taken without complaint.", link=link, fix=FIX)


@SUITE.scenario(
    "updates",
    "a turn with every kind of update",
    shows=(
        _told("updates.messages", "Messages and thoughts, in every kind of content, are", "content"),
        _told("updates.tool-calls", "Tool calls and their updates are", "tool-calls#updating"),
        _told("updates.plan", "Plans, also empty ones, are", "agent-plan"),
        _told("updates.commands", "The commands that an agent offers are", "slash-commands"),
        _told("updates.mode", "A mode that the agent changed by itself is", "session-modes#from-the-agent"),
        _told("updates.options", "Settings that the agent changed by itself are", "session-config-options"),
        _told("updates.session", "The title of a session and what it has used are", "session-list"),
        capability(
            "updates.notices",
            "A client that wants notices takes them without complaint.",
            link="schema#sessionupdate",
            fix=FIX,
        ),
        capability(
            "updates.compaction",
            "A client that wants to hear of compaction takes it without complaint.",
            link="schema#sessionupdate",
            fix=FIX,
        ),
    ),
)
async def updates(stage: ClientStage) -> None:
    await stage.start()
    turn = await stage.prompted()
    options = turn.meeting.agent.options(turn.session)
    told: dict[str, list[Update]] = {
        "messages": MESSAGES,
        "tool-calls": CALLS,
        "plan": PLANS,
        "commands": [{"sessionUpdate": "available_commands_update", "availableCommands": [
            {"name": "plan", "description": "Plan", "input": {"hint": "what"}}, {"name": "go", "description": "Go"}]}],
        "mode": [{"sessionUpdate": "current_mode_update", "currentModeId": "plan"}],
        "options": [{"sessionUpdate": "config_option_update", "configOptions": options}],
        "session": [{"sessionUpdate": "session_info_update", "title": "A title", "updatedAt": "2026-01-01T00:00:00Z"},
                    {"sessionUpdate": "usage_update", "used": 10, "size": 100, "cost": {"amount": 0.1, "currency": "USD"}}],
    }  # fmt: skip
    if stage.offers("session", "notices"):
        told["notices"] = NOTICES
    if stage.offers("session", "compaction"):
        told["compaction"] = COMPACTION
    for name, several in told.items():
        said = [await stage.update(one) for one in several]
        await stage.survives(f"updates.{name}", f"updates of the kind `{several[-1]['sessionUpdate']}`", *said)
    await turn.end()
    if left := [name for name in ("notices", "compaction") if name not in told]:
        raise NotOffered(f"the client does not offer `session.{'` and `session.'.join(left)}`")
