"""Whatever the server says: nothing raises, calls are sent in order, and none is left open."""

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from antiphon.engines.codex import wire
from antiphon.engines.codex.translate import CodexTranslator
from antiphon.engines.codex.wire.notifications import NOTIFICATIONS
from antiphon.engines.codex.wire.requests import REQUESTS
from antiphon.engines.events import TurnEnded
from antiphon.protocol import v1
from antiphon.protocol.base import UNSET, encode
from tests.engines.anything import anything
from tests.engines.object_count import object_count

TYPES = (
    "userMessage", "hookPrompt", "agentMessage", "functionCallOutput", "plan", "reasoning", "commandExecution", "fileChange", "mcpToolCall",
    "dynamicToolCall", "collabAgentToolCall", "subAgentActivity", "webSearch", "imageView", "sleep", "imageGeneration",
    "enteredReviewMode", "exitedReviewMode", "contextCompaction", "dance",
)  # fmt: skip
IDS = st.sampled_from(["a", "b", "c"])
VALUES: Any = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "x", "y\n", "completed", "failed", "@@ -1 +1 @@\n-a\n+b\n", "data:image/png;base64,AA"])  # fmt: skip
THINGS = VALUES | st.lists(
    VALUES | st.dictionaries(st.sampled_from(["type", "text", "path", "diff", "kind", "url"]), VALUES, max_size=3),
    max_size=2,
)
FIELDS = (
    "text", "command", "status", "changes", "aggregatedOutput", "exitCode", "content", "summary", "query", "action", "path", "result",
    "arguments", "processId", "output", "contentItems", "review", "fragments", "server", "tool", "commandActions",
)  # fmt: skip
ITEMS = st.builds(lambda type, id, rest: {"type": type, "id": id, **rest}, st.sampled_from(TYPES), IDS, st.dictionaries(st.sampled_from(FIELDS), THINGS, max_size=4))  # fmt: skip
TURNS = st.builds(lambda id, status, items: {"id": id, "status": status, "items": items}, IDS, st.sampled_from(["completed", "failed", "interrupted"]), st.lists(ITEMS, max_size=2))  # fmt: skip
PARAMS = st.fixed_dictionaries({}, optional={
    "item": ITEMS, "itemId": IDS, "delta": VALUES, "turn": TURNS, "error": st.fixed_dictionaries({"message": VALUES, "codexErrorInfo": THINGS}),
    "willRetry": st.booleans(), "summaryIndex": st.integers(0, 2), "stdin": VALUES, "changes": THINGS, "message": VALUES, "plan": THINGS,
    "callId": IDS, "command": THINGS, "fileChanges": THINGS, "serverName": VALUES, "_meta": THINGS, "run": THINGS, "threadName": VALUES,
})  # fmt: skip
LINES = st.lists(st.tuples(st.sampled_from([*NOTIFICATIONS, *REQUESTS]), PARAMS), max_size=25)


def check(events: list[Any]) -> None:
    """Calls begin once, are updated only then, and come to an end; every update can be sent."""
    known: dict[str, object] = {}
    for each in events:
        if isinstance(each, v1.ToolCall):
            assert each.tool_call_id not in known
            known[each.tool_call_id] = each.status
        elif isinstance(each, v1.ToolCallUpdate):
            assert each.tool_call_id in known
            known[each.tool_call_id] = known[each.tool_call_id] if each.status is UNSET else each.status
        if isinstance(each, v1.ToolCall | v1.ToolCallUpdate):
            assert each.raw_output is UNSET or isinstance(each.raw_output, dict)  # older clients drop anything else
        if type(each).__module__.startswith("antiphon.protocol"):
            encode(each)
    assert set(known.values()) <= {v1.ToolStatus.COMPLETED, v1.ToolStatus.FAILED}
    ends = [id for each in events if isinstance(each, TurnEnded) for id in each.ids]
    assert len(ends) == len(set(ends))
    assert all(
        (each.end.error is None) != (each.end.stop_reason is None) for each in events if isinstance(each, TurnEnded)
    )


@given(LINES, st.booleans(), st.booleans(), st.sampled_from([None, "a\n", "b\n"]))
def test_no_message_breaks_the_translator(
    lines: list[tuple[str, Any]], terminals: bool, mirror: bool, text: str | None
) -> None:
    translator = CodexTranslator("/w", terminals=terminals, mirror=mirror, read=lambda _: text)
    events: list[Any] = []
    for number, (method, params) in enumerate(lines):
        line = {"method": method, "params": params, **({"id": number} if method in REQUESTS else {})}
        read = wire.decode(msgspec.json.encode(line))
        if isinstance(read, wire.ServerNotification):
            events += translator.feed(read.method, read.params)
        elif isinstance(read, wire.ServerRequest):
            patch = translator.patch_of(read.params)
            encode(patch)
            events += translator.allowed(patch.tool_call_id) if patch is not None and number % 2 else ()
    events += translator.close_open()
    check(events)


@given(st.lists(ITEMS, max_size=8))
def test_any_history_is_replayed(items: list[Any]) -> None:
    raw = msgspec.Raw(msgspec.json.encode({"thread": {"id": "t", "turns": [{"id": "u", "items": items}]}}))
    check(list(CodexTranslator("/w").turns(wire.read(raw, wire.ThreadOpened).thread.turns)))


@pytest.mark.slow
@pytest.mark.parametrize("method", [*NOTIFICATIONS, *REQUESTS])
@settings(max_examples=12, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.data(), st.booleans())
def test_any_values_are_taken(method: str, data: st.DataObject, terminals: bool) -> None:
    translator = CodexTranslator("/w", terminals=terminals, mirror=not terminals, read=lambda _: "a\n")
    events: list[Any] = []
    for each in ("item/started", method, "item/completed", method, "account/rateLimits/updated", "turn/completed"):
        if each in REQUESTS:
            encode(translator.patch_of(data.draw(anything(REQUESTS[each]))))
        else:
            events += translator.feed(each, data.draw(anything(NOTIFICATIONS[each])))
    events += translator.close_open()
    check(events)
    for message in events:
        if isinstance(message, TurnEnded) and message.end.error is not None:
            _ = message.end.error.refusal()


def test_ten_thousand_turns_leave_nothing_behind_that_grows() -> None:
    translator = CodexTranslator("/w", terminals=True)
    for turn in range(5_000):
        play_a_turn(translator, turn)
    before = object_count(translator)
    for turn in range(5_000, 10_000):
        play_a_turn(translator, turn)
    assert object_count(translator) <= before + 10
    assert len(translator.unknown) <= 101


def play_a_turn(translator: CodexTranslator, turn: int) -> None:
    id = f"{turn:020d}"
    ran = wire.CommandExecution(id=f"c{id}", command="ls", process_id="1")
    made = wire.FileChange(id=f"f{id}", changes=[])
    update = wire.AgentMessage(id=f"m{id}", text="words")
    turned = wire.TurnNotification(
        thread_id="t", turn=wire.CodexTurn(id=f"t{id}", status="interrupted", items=[update])
    )
    for method, params in (
        ("turn/started", turned),
        ("item/started", wire.ItemNotification(item=ran)),
        ("item/commandExecution/outputDelta", wire.Delta(item_id=ran.id, delta="x" * 100)),
        ("item/started", wire.ItemNotification(item=made)),
        ("item/completed", wire.ItemNotification(item=update)),
        ("item/completed", wire.ItemNotification(item=wire.ContextCompaction(id=f"k{id}"))),
        ("turn/completed", turned),
    ):
        translator.feed(method, params)
    translator.feed(f"telepathy/{turn}", wire.UnreadParams())
