"""Rows about sessions: opened, prompted, changed, and answered with nothing at all."""

from collections.abc import Iterator
from typing import Any

from antiphon.protocol.v1.dialects import BANJO_NOTES, BANJO_WIRE, GO_CLIENT, OPENCODE
from antiphon.protocol.v1.dialects.table import NULL_IS_ENOUGH
from tests.dialects.row import Row, wire

__all__ = ["SESSION_ROWS"]

MODES = [{"id": "code", "name": "Code"}, {"id": "plan", "name": "Plan", "description": "Look, do not touch"}]
STATE = {"currentModeId": "plan", "availableModes": MODES}
EXAMPLES = "Python SDK 0.12.1 and 1.0.0rc3, example agents"
OWN = {"antiphon/ownDirectory": True}
OPENING = ("session/new", "session/load", "session/resume", "session/fork")


def _answered(session_id: dict[str, Any]) -> dict[str, Any]:
    """A question in the OpenCode dialect: what our handler says, and what the asker receives."""
    return {
        "says": {**session_id, "modes": STATE},
        "received": {"sessionId": "s9", "modes": MODES, "currentModeId": "plan"},
    }


OPENING_ROWS = [
    Row(
        "a session with model and mode", OPENCODE, "session/new", "params",
        b'{"cwd":"/w","model":{"providerID":"anthropic","modelID":"opus"},"modeId":"plan","mcpServers":[]}',
        {"cwd": "/w", "mcpServers": [], "modeId": "plan", "model": {"providerID": "anthropic", "modelID": "opus"}},
        ("session with model or mode",), **_answered({"sessionId": "s9"}),
    ),
    Row(
        "a session with a model", OPENCODE, "session/new", "params",
        b'{"cwd":"/w","model":{"providerID":"anthropic","modelID":"opus"}}',
        {"cwd": "/w", "mcpServers": [], "model": {"providerID": "anthropic", "modelID": "opus"}},
        ("session with model or mode", "no MCP servers"), **_answered({"sessionId": "s9"}),
    ),
    Row(
        "a session with a mode, and none to offer", OPENCODE, "session/new", "params", b'{"cwd":"/w","modeId":"plan","mcpServers":[]}',
        {"cwd": "/w", "mcpServers": [], "modeId": "plan"}, ("session with model or mode",),
        says={"sessionId": "s9"}, received={"sessionId": "s9"},
    ),
    Row(
        "a session as the schema has it", "the schema", "session/new", "params", b'{"cwd":"/w","mcpServers":[]}',
        {"cwd": "/w", "mcpServers": []}, says={"sessionId": "s9", "modes": STATE},
    ),
    Row(
        "a session loaded without cwd", OPENCODE, "session/load", "params", b'{"sessionId":"s9"}',
        {"sessionId": "s9", "cwd": "", "mcpServers": [], "_meta": OWN}, ("session without cwd", "no MCP servers"), **_answered({}),
    ),
    Row(
        "a session resumed by its older name", BANJO_NOTES, "session/resume", "params", b'{"sessionId":"s9"}',
        {"sessionId": "s9", "cwd": "", "_meta": OWN}, ("session without cwd",), sent_as="unstable_resumeSession", says={"modes": STATE},
    ),
    Row(
        "a session resumed by its older name, in full", BANJO_NOTES, "session/resume", "params",
        b'{"sessionId":"s9","cwd":"/w","mcpServers":[]}', {"sessionId": "s9", "cwd": "/w"}, sent_as="unstable_resumeSession",
    ),
]  # fmt: skip


def _offers() -> Iterator[Row]:
    """What the answers to the four opening requests offer."""
    models = {"availableModels": [{"modelId": "sonnet", "name": "Claude Sonnet"}], "currentModelId": "sonnet"}
    by_id = {**models, "availableModels": [{"id": "sonnet", "name": "Claude Sonnet"}]}
    for method in OPENING:
        kept = {"sessionId": "s9"}
        yield Row(
            f"modes as a list from {method}", OPENCODE, method, "result",
            wire({**kept, "modes": MODES, "currentModeId": "plan"}), {**kept, "modes": STATE}, ("modes as a list",),
        )  # fmt: skip
        yield Row(
            f"modes and no current one from {method}", OPENCODE, method, "result", wire({**kept, "modes": MODES}),
            {**kept, "modes": {"currentModeId": "", "availableModes": MODES}}, ("modes as a list",),
        )  # fmt: skip
        yield Row(
            f"models by id from {method}", BANJO_WIRE, method, "result", wire({**kept, "models": by_id}),
            {**kept, "models": models}, ("models by id",),
        )  # fmt: skip
        yield Row(
            f"models from {method}", "gemini-cli 0.61", method, "result", wire({**kept, "models": models}),
            {**kept, "models": models},
        )  # fmt: skip


CHANGING_ROWS = [
    Row(
        "mode", BANJO_NOTES, "session/set_mode", "params", b'{"sessionId":"s","mode":"plan"}',
        {"sessionId": "s", "modeId": "plan"}, ("mode for modeId",),
    ),
    Row(
        "another model", "gemini-cli 0.61", "session/set_model", "params", b'{"sessionId":"s","modelId":"opus"}',
        {"sessionId": "s", "modelId": "opus"},
    ),
    Row(
        "content for prompt", OPENCODE, "session/prompt", "params",
        b'{"sessionId":"s","content":[{"type":"text","text":"hi"}]}',
        {"sessionId": "s", "prompt": [{"type": "text", "text": "hi"}]}, ("content for prompt",),
    ),
    Row(
        "content for prompt, and in it a block of the same dialect", OPENCODE, "session/prompt", "params",
        b'{"sessionId":"s","content":[{"type":"embedded_resource","uri":"a:b","text":"x"}]}',
        {"sessionId": "s", "prompt": [{"type": "resource", "resource": {"uri": "a:b", "text": "x"}}]},
        ("content for prompt", "embedded_resource"),
    ),
    Row(
        "auth_required", BANJO_NOTES, "session/prompt", "result", b'{"stopReason":"auth_required"}',
        {"stopReason": "auth_required"}, meanings={"auth_required": "refusal"},
    ),
    Row(
        "tool_error", OPENCODE, "session/prompt", "result", b'{"stopReason":"tool_error"}',
        {"stopReason": "tool_error"}, meanings={"tool_error": "end_turn"},
    ),
    Row(
        "messages and sessionId", GO_CLIENT, "session/prompt", "result",
        b'{"sessionId":"s","messages":[{"role":"assistant","content":"hi"}],"stopReason":"end_turn"}',
        {"stopReason": "end_turn", "sessionId": "s", "messages": [{"role": "assistant", "content": "hi"}]},
    ),
    *(
        Row(f"sessionId from {method}", "claude-agent-acp 0.99.1", method, "result", b'{"sessionId":"s"}', {"sessionId": "s"})
        for method in ("session/load", "session/resume")
    ),
    # Nothing at all.
    *(
        Row(f"null from {method}", OPENCODE, method, "result", b"null", {}, ("null for an empty answer",))
        for method in NULL_IS_ENOUGH
    ),
    *(
        Row(f"{sent.decode()} from session/list", EXAMPLES, "session/list", "result", sent, {"sessions": []}, ("no sessions",))
        for sent in (b"null", b"{}")
    ),
    *(
        Row(
            f"{sent.decode()} from session/set_config_option", EXAMPLES, "session/set_config_option", "result", sent,
            {"configOptions": []}, ("no settings",),
        )
        for sent in (b"{}", b"null")
    ),
]  # fmt: skip

SESSION_ROWS = [*OPENING_ROWS, *_offers(), *CHANGING_ROWS]
