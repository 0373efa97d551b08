"""What the facts say about a value is what the official schema says about it."""

import importlib
import json
from typing import Any

import pytest

from antiphon.traffic.schema import look, methods
from tests.protocol.test_parity import INSTALLED
from tests.rows import each_row
from tests.traffic.samples import changed, samples

NAMES = sorted({name for method in methods().values() for name in (method.params, method.result) if name})
EVERY = 16
"""One in so many of the changed values is compared: the other validator takes two milliseconds for each."""


def validators(file: str) -> dict[str, Any]:
    jsonschema = importlib.import_module("jsonschema")  # it has no types

    parts = json.loads((INSTALLED / file).read_text(encoding="utf-8"))["$defs"]
    return {name: jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": parts}) for name in parts}


@pytest.mark.slow
@pytest.mark.prove  # needs the package of npm
def test_our_verdict_is_that_of_the_official_schema() -> None:
    if not INSTALLED.is_dir():
        pytest.skip("npm package @agentclientprotocol/sdk is not installed")
    draft, stable = validators("schema.unstable.json"), validators("schema.json")
    compared = 0
    for name in NAMES:
        valid = [*samples(name, whole=True), *samples(name, whole=False)]
        for value in [*valid, *[other for one in valid for other in changed(one)][compared % EVERY :: EVERY]]:
            compared += 1
            found = look(name, value)
            assert draft[name].is_valid(value) == (not found.faults), (name, value, found.faults)
            if not found.faults and not found.drafts and name in stable:
                assert stable[name].is_valid(value), (name, value)
    assert compared > 1_500


def test_what_only_the_draft_knows_is_reported() -> None:
    found = look("PromptResponse", {"stopReason": "end_turn", "usage": None}, "result")
    assert (found.faults, found.drafts, found.unknown_fields) == ([], ["result.usage"], [])
    found = look("SessionNotification", {"sessionId": "s", "update": {"sessionUpdate": "plan_removed", "planId": "p"}})
    assert (found.faults, found.drafts, found.unknown_fields) == ([], ["update.sessionUpdate=plan_removed"], [])


def test_fields_that_no_schema_knows_are_reported_with_their_path() -> None:
    text = {"type": "text", "text": "x", "timestamp": 1, "_meta": {"anything": 1}}
    found = look(
        "SessionNotification", {"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk", "content": text}}
    )
    assert (found.faults, found.drafts, found.unknown_fields) == ([], [], ["update.content.timestamp"])
    found = look("McpServer", {"type": "stdio", "name": "n", "command": "c", "args": [], "env": []})
    assert (found.faults, found.unknown_fields) == ([], ["type"])


@each_row(
    ("name", "value", "text"),
    [
        ("StopReason", "done", 'p is "done", which is not one of "end_turn", "max_tokens", "max_turn_requests", "refusal" or "cancelled"'),
        ("PromptResponse", None, "p is null, not an object"),
        ("PromptRequest", {"sessionId": 1, "prompt": []}, "p.sessionId is 1, not a string"),
        ("PromptRequest", {"sessionId": "s", "prompt": [{"type": "text"}]}, "p.prompt[0].text is missing"),
        ("PromptRequest", {"sessionId": "s", "prompt": [{"type": "video"}]},
         'p.prompt[0].type is "video", which is not one of "text", "image", "audio", "resource_link" or "resource"'),
        ("InitializeRequest", {"protocolVersion": 70_000}, "p.protocolVersion is 70000, which is more than 65535"),
        ("Notice", {"severity": "info", "title": ""}, "p.title is empty"),
        ("Annotations", {"priority": "high"}, 'p.priority is "high", not a number'),
    ],
)  # fmt: skip
def test_a_fault_is_one_sentence_with_its_place(name: str, value: Any, text: str) -> None:
    [fault] = look(name, value, "p").faults
    assert f"{fault.path} {fault.text}" == text


def test_depth_does_no_harm() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    call = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "rawInput": deep, "_meta": {"x": deep}}
    assert look("SessionNotification", {"sessionId": "s", "update": call}).faults == []
    assert look("SessionNotification", {"sessionId": deep, "update": call}).faults != []
