"""The demo agent uses every part of the protocol: what it says and asks is compared with the schema's own lists."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.engines.demo_client import DemoClient, demo

FACTS = json.loads(
    (Path(__file__).parents[2] / "src" / "antiphon" / "traffic" / "facts.json").read_text(encoding="utf-8")
)
DEFINITIONS = FACTS["definitions"]


def tags(definition: str, field: str) -> set[str]:
    """The kinds of a union in the schema."""
    return {variant["tag"][field] for variant in DEFINITIONS[definition]["variants"] if "tag" in variant}


def words(definition: str) -> set[str]:
    """The words of a list in the schema."""
    return set(DEFINITIONS[definition]["words"])


def everywhere(frames: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Every object in the frames, at any depth."""
    waiting: list[Any] = [*frames]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield value
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


async def play_everything(client: DemoClient) -> None:
    """A tour through all that the demo does."""
    session = await client.new()
    await client.prompt(session, "/all")
    for reason in ("max_tokens", "max_turn_requests", "refusal"):
        await client.prompt(session, f"/stop {reason}")
    async with client.connection.stream(m.PROMPT, v1.Prompt(session, [v1.TextBlock("/slow 100")])) as turn:
        async for message in turn:
            if isinstance(message.update, v1.AgentMessageChunk):
                break
        await client.connection.notify(m.CANCEL, v1.Cancel(session))
        assert (await turn).stop_reason == v1.StopReason.CANCELLED
    await client.connection.request(m.LOAD_SESSION, v1.LoadSession(session, str(client.workspace), []))


@pytest.mark.slow
async def test_the_demo_uses_every_part_of_the_protocol(workspace: Path) -> None:
    async with demo(workspace) as client:
        await play_everything(client)
    updates = [frame["params"]["update"] for frame in client.frames if frame.get("method") == "session/update"]
    objects = list(everywhere(client.frames))

    def of(*kinds: str) -> list[dict[str, Any]]:
        """Every object in the updates of these kinds."""
        return list(everywhere([update for update in updates if update["sessionUpdate"] in kinds]))

    def seen(key: str, within: list[dict[str, Any]]) -> set[Any]:
        return {each[key] for each in within if isinstance(each.get(key), str)}

    chunks, calls = of("agent_message_chunk"), of("tool_call", "tool_call_update")
    forms = [frame["params"] for frame in client.frames if frame.get("method") == "elicitation/create"]
    questions = [frame["params"] for frame in client.frames if frame.get("method") == "session/request_permission"]
    assert tags("SessionUpdate", "sessionUpdate") <= seen("sessionUpdate", updates)
    assert tags("ContentBlock", "type") <= seen("type", chunks)
    assert {"text", "blob"} <= {key for each in chunks for key in each if "uri" in each}
    assert tags("ToolCallContent", "type") <= seen("type", calls)
    assert words("ToolKind") - {"other"} <= seen("kind", calls)  # the default is left out, here and below
    assert words("ToolCallStatus") - {"pending"} <= seen("status", calls)
    assert words("PlanEntryStatus") <= seen("status", of("plan"))
    assert words("PlanEntryPriority") <= seen("priority", of("plan"))
    assert words("CompactionStatus") <= seen("status", of("compaction_update"))
    assert words("NoticeSeverity") <= seen("severity", of("notice"))
    assert words("SessionConfigOptionCategory") <= seen("category", of("config_option_update"))
    assert tags("ElicitationPropertySchema", "type") <= seen("type", list(everywhere(forms)))
    assert {"form", "url"} == seen("mode", forms)
    assert words("PermissionOptionKind") <= {option["kind"] for each in questions for option in each["options"]}
    assert words("StopReason") <= seen("stopReason", objects)
    asked = {frame["method"] for frame in client.frames if "method" in frame}
    client_side = {
        method["name"] for method in FACTS["methods"] if method["side"] == "client" and not method.get("unstable")
    }
    assert client_side <= asked
