"""The page folds a session as the terminal and the exports do: both folds get the same updates, made up at random."""

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.protocol.base import UNSET, Unknown, encode
from antiphon.protocol.v1 import methods as m
from antiphon.transcript.transcript import (
    CallEntry,
    CompactionEntry,
    Entry,
    Message,
    NoticeEntry,
    Thought,
    Transcript,
)
from tests.interop.programs import NODE

pytestmark = pytest.mark.slow  # starts a program of others

DRIVER = Path(__file__).with_name("js") / "fold_driver.mjs"
Fold = Callable[..., Any]


@pytest.fixture(scope="module")
def fold() -> Iterator[Fold]:
    """The page's fold, in one process for all examples."""
    with subprocess.Popen([NODE, DRIVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as node:
        assert node.stdin is not None and node.stdout is not None
        written, read = node.stdin, node.stdout

        def folded(frames: list[Any], cut: int = 0) -> Any:
            written.write(json.dumps({"frames": frames, "cut": cut}) + "\n")
            written.flush()
            return json.loads(read.readline())

        yield folded
        written.close()


# Updates.

texts = st.sampled_from(["", "a", "two\nlines", "ünï 🎉", "x " * 5])
names = st.sampled_from(["1", "2"])
numbers = st.integers(0, 5)
values = (
    st.none()
    | st.booleans()
    | numbers
    | texts
    | st.lists(texts, max_size=2)
    | st.dictionaries(texts, numbers, max_size=2)
)
annotations = st.fixed_dictionaries({}, optional={"priority": st.sampled_from([0.5, 1]), "audience": st.just(["user"])})


def fields(required: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(required, optional=optional)


def words(*known: str) -> st.SearchStrategy[str]:
    return st.sampled_from([*known, "from tomorrow"])


text_blocks = fields({"type": st.just("text"), "text": texts}, annotations=st.none() | annotations)
blocks = (
    text_blocks
    | fields(
        {"type": st.just("image"), "data": st.just("AA=="), "mimeType": st.just("image/png")}, uri=st.none() | texts
    )
    | fields({"type": st.just("resource_link"), "name": texts, "uri": texts}, size=numbers)
)
contents = st.lists(
    fields({"type": st.just("content"), "content": blocks})
    | fields({"type": st.just("diff"), "path": texts, "newText": texts}, oldText=st.none() | texts)
    | fields({"type": st.just("terminal"), "terminalId": names}),
    max_size=2,
)
places = st.lists(fields({"path": texts}, line=st.none() | numbers), max_size=2)
kinds = words("read", "edit", "execute", "other", "write", "command")
statuses = words("pending", "in_progress", "completed", "failed", "cancelled")
denials = st.just({"antiphon": {"denied": True}}) | st.just({"x": 1})
steps = st.lists(
    fields({"content": texts, "priority": words("high", "low"), "status": words("pending", "completed")}), max_size=2
)


def update(
    session_update: str, required: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    return fields({"sessionUpdate": st.just(session_update), **required}, **optional)


def chunk(kind: str, **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return update(kind, {"content": text_blocks | blocks}, **optional)


CHUNKS = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")
announcements = update(
    "tool_call", {"toolCallId": names, "title": texts}, kind=kinds, status=statuses, name=st.none() | texts, content=contents,
    locations=places, rawInput=values, rawOutput=values, toolKind=st.none() | kinds, input=values, _meta=denials,
)  # fmt: skip
patches = update(
    "tool_call_update", {"toolCallId": names}, kind=st.none() | kinds, status=st.none() | statuses, title=st.none() | texts,
    name=st.none() | texts, content=st.none() | contents, locations=st.none() | places, rawInput=values, rawOutput=values,
    toolKind=st.none() | kinds, input=values, _meta=denials,
)  # fmt: skip
others = st.one_of(
    update("notice", {"severity": words("info", "error"), "title": texts}, description=st.none() | texts),
    update(
        "compaction_update", {"compactionId": names, "status": words("in_progress", "completed")},
        summary=st.none() | st.lists(blocks, max_size=2), error=st.none() | texts,
    ),
    update("compaction_summary_chunk", {"compactionId": names, "content": blocks}),
    update("plan", {"entries": steps}),
    update("plan_update", {"plan": fields({"type": st.just("items"), "planId": names, "entries": steps})}),
    update("plan_removed", {"planId": names}),
    update("usage_update", {"used": numbers, "size": numbers}),
    update("current_mode_update", {"currentModeId": names}),
    update("current_model_update", {"currentModelId": names}),
    update("session_info_update", {}, title=st.none() | texts),
    update("subagent_update", {"sessionId": names}),
    update("from_tomorrow", {"x": values}),
)  # fmt: skip
messages = st.one_of(*(chunk(kind, messageId=st.none() | names) for kind in CHUNKS))
updates = st.one_of(messages, messages, announcements, patches, others)


def frame(update: Any, number: int) -> dict[str, Any]:
    about = {"antiphon": {"number": number, "time": float(number)}}
    return {"method": "session/update", "params": {"sessionId": "s", "update": update, "_meta": about}}


# What Python shows of them, in the same form.


def plain(value: Any) -> Any:
    """A value as JSON, without members that are null: absent ones and those mean the same."""
    given = json.loads(encode(value)) if not isinstance(value, dict | list) else value
    if isinstance(given, dict):
        return {name: plain(each) for name, each in given.items() if each is not None}
    return (
        [plain(each) if isinstance(each, dict | list) else each for each in given] if isinstance(given, list) else given
    )


def shown(entry: Entry) -> dict[str, Any]:
    match entry:
        case Message():
            return {"type": "message", "speaker": entry.speaker, "messageId": entry.message_id, **_written(entry)}
        case Thought():
            return {"type": "thought", "messageId": entry.message_id, **_written(entry)}
        case CallEntry():
            raw = [[] if value is UNSET else [value] for value in (entry.raw_input, entry.raw_output)]
            return {
                "type": "call", "id": entry.id, "title": entry.title, "label": entry.label, "kindWord": str(entry.kind), "kind": str(entry.kind.meaning),
                "statusWord": str(entry.status), "status": str(entry.status.meaning), "name": entry.name, "content": [json.loads(encode(each)) for each in entry.content],
                "locations": [json.loads(encode(each)) for each in entry.locations], "raw": raw, "denied": entry.denied, "announced": entry.announced,
                "finished": entry.finished,
            }  # fmt: skip
        case NoticeEntry():
            return {
                "type": "notice",
                "severity": str(entry.severity),
                "title": entry.title,
                "description": entry.description,
            }
        case CompactionEntry():
            return {
                "type": "compaction",
                "id": entry.id,
                "status": str(entry.status),
                "error": entry.error,
                **_written(entry),
            }


def _written(entry: Message | Thought | CompactionEntry) -> dict[str, Any]:
    return {"text": entry.text, "blocks": [json.loads(encode(block)) for block in entry.blocks]}


def read_update(given: Any) -> Any:
    return m.SESSION_UPDATE.read_params(msgspec.json.encode({"sessionId": "s", "update": given})).value.update


def without_raw(entries: list[Any]) -> list[Any]:
    """Entries without null members; what an agent sent as raw input or output is compared as it is."""
    return [
        {**plain({name: each for name, each in entry.items() if name != "raw"}), "raw": entry.get("raw")}
        for entry in entries
    ]


@settings(max_examples=300, deadline=None)
@given(given=st.lists(updates, max_size=12))
def test_the_page_folds_updates_as_the_terminal_does(fold: Fold, given: list[Any]) -> None:
    transcript = Transcript()
    for each in given:
        transcript.apply(read_update(each))
    page = fold([frame(each, number) for number, each in enumerate(given, 1)])
    assert without_raw(page["entries"]) == without_raw([shown(entry) for entry in transcript.entries])
    assert page["ordered"]
    state = page["state"]
    assert plain(state["plan"]) == [plain(step) for step in transcript.plan]
    plans = {id: plan.fields if isinstance(plan, Unknown) else plan for id, plan in transcript.plans.items()}
    assert plain(state["plans"]) == {id: plain(plan) for id, plan in plans.items()}
    assert plain(state["usage"] or {}) == ({} if transcript.usage is None else plain(transcript.usage))
    assert (state["mode"], state["model"], state["title"]) == (transcript.mode, transcript.model, transcript.title)
    assert state["unshown"] == transcript.unshown_count


# Pages.

named_messages = st.one_of(*(chunk(kind, messageId=names) for kind in CHUNKS))


def _tidy(given: list[Any], named: bool) -> list[Any]:
    """Updates of an agent that names all of its messages or none of them."""
    return [
        each | ({"messageId": each.get("messageId") or "0"} if named else {})
        if each["sessionUpdate"] in CHUNKS
        else each
        for each in given
    ]


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_pages_that_are_put_in_front_give_what_the_whole_session_gives(fold: Fold, data: st.DataObject) -> None:
    named = data.draw(st.booleans())
    pieces = named_messages if named else st.one_of(*(chunk(kind) for kind in CHUNKS))
    given = _tidy(data.draw(st.lists(st.one_of(pieces, announcements, patches, others), max_size=12)), named)
    frames = [frame(each, number) for number, each in enumerate(given, 1)]
    cut = data.draw(st.integers(0, len(frames)))
    whole, paged = fold(frames), fold(frames, cut)
    assert paged["ordered"]
    assert paged["entries"] == whole["entries"]
    assert {**paged["state"], "plans": None} == {**whole["state"], "plans": None}
