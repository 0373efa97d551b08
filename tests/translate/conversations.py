"""Conversations made up at random, and what a client of each version shows of them."""

from typing import Any

from hypothesis import strategies as st

from antiphon.protocol.translate.v1_client import V1ClientTranslator
from tests.translate.pump import Json, Pump

__all__ = ["Turns", "opened", "shown_by_v1", "shown_by_v2", "v1_turns", "v2_turns"]

texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
paths = st.sampled_from(["/w/a.py", "/w/ä b.txt", '/w/"q"'])
statuses = ["pending", "in_progress", "completed", "failed"]
kinds = ["read", "edit", "execute", "other", "think"]
Turns = list[tuple[str, list[Json], str]]
"""For each turn: the text of the prompt, the updates, and why it stopped."""


def block(text: str) -> Json:
    return {"type": "text", "text": text}


blocks = st.one_of(
    texts.map(block),
    st.just({"type": "image", "data": "aGk=", "mimeType": "image/png"}),
    st.just({"type": "resource_link", "name": "n", "uri": "file:///w/x", "size": 3, "_meta": {"k": 1}}),
)
diffs = st.builds(
    lambda path, old, new: {"type": "diff", "path": path, "newText": new, **({} if old is None else {"oldText": old})},
    paths,
    st.none() | st.text("ab\n", max_size=6),
    st.text("ab\n", max_size=6),
)
items = st.lists(blocks.map(lambda one: {"type": "content", "content": one}) | diffs, max_size=2)
locations = st.lists(st.builds(lambda path, line: {"path": path, "line": line}, paths, st.integers(1, 9)), max_size=2)
entries = st.lists(
    st.builds(
        lambda text, priority, status: {"content": text, "priority": priority, "status": status},
        texts,
        st.sampled_from(["high", "medium", "low"]),
        st.sampled_from(["pending", "in_progress", "completed"]),
    ),
    max_size=3,
)
common = st.one_of(
    st.builds(lambda used: {"sessionUpdate": "usage_update", "used": used, "size": 100}, st.integers(0, 100)),
    st.builds(lambda title: {"sessionUpdate": "session_info_update", "title": title}, st.none() | texts),
)


def chunk(kind: str, content: Json, message_id: str | None = None) -> Json:
    return {
        "sessionUpdate": f"{kind}_chunk",
        "content": content,
        **({} if message_id is None else {"messageId": message_id}),
    }


def patches(ids: st.SearchStrategy[str]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {"sessionUpdate": st.just("tool_call_update"), "toolCallId": ids},
        optional={
            "title": texts,
            "kind": st.sampled_from(kinds),
            "status": st.sampled_from(statuses),
            "locations": locations,
            "rawInput": st.just({"a": 1}),
            "rawOutput": st.sampled_from(["done", 7, {"b": [1]}]),
            "_meta": st.just({"x.y": 1}),
        },
    )


def v1_updates(message_ids: st.SearchStrategy[str | None]) -> st.SearchStrategy[Json]:
    calls = st.sampled_from(["t1", "t2"])
    started = st.fixed_dictionaries(
        {"sessionUpdate": st.just("tool_call"), "toolCallId": calls, "title": texts},
        optional={"kind": st.sampled_from(kinds), "status": st.sampled_from(statuses), "content": items},
    )
    changed = st.builds(
        lambda patch, content: {**patch, **content},
        patches(calls),
        st.one_of(st.just({}), items.map(lambda one: {"content": one})),
    )
    return st.one_of(
        st.builds(chunk, st.sampled_from(["agent_message", "agent_thought"]), blocks, message_ids),
        started,
        changed,
        st.builds(lambda found: {"sessionUpdate": "plan", "entries": found}, entries),
        st.just(
            {
                "sessionUpdate": "available_commands_update",
                "availableCommands": [
                    {"name": "n", "description": "d", "input": {"hint": "h"}},
                    {"name": "m", "description": "e"},
                ],
            }
        ),
        st.sampled_from(["a", "b"]).map(lambda mode: {"sessionUpdate": "current_mode_update", "currentModeId": mode}),
        common,
    )


stops = st.sampled_from(["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"])


@st.composite
def v1_turns(draw: st.DrawFn) -> Turns:
    """Turns of an agent of version 1, which gives all of its messages an id, or none."""
    ids = st.none() if draw(st.booleans()) else st.sampled_from(["m1", "m2"])
    turn = st.tuples(texts, st.lists(v1_updates(ids), max_size=8), stops)
    return draw(st.lists(turn, min_size=1, max_size=3))


@st.composite
def v2_turns(draw: st.DrawFn) -> Turns:
    """Turns of an agent of version 2 that version 1 can express: messages grow, words are known to both, one plan."""
    grown: dict[tuple[str, str], str] = {}
    turns: Turns = []
    for number in range(draw(st.integers(1, 3))):
        updates: list[Json] = []
        for _ in range(draw(st.integers(0, 8))):
            kind = draw(st.sampled_from(["chunk", "message", "call", "content", "plan", "common"]))
            if kind in ("chunk", "message"):
                name, id = draw(st.sampled_from(["agent_message", "agent_thought"])), f"m{draw(st.integers(1, 2))}"
                text = draw(texts)
                grown[name, id] = grown.get((name, id), "") + text
                if kind == "chunk":
                    updates.append(chunk(name, block(text), id))
                else:
                    updates.append({"sessionUpdate": name, "messageId": id, "content": [block(grown[name, id])]})
            elif kind == "call":
                updates.append(draw(patches(st.sampled_from(["t1", "t2"]))))
            elif kind == "content":
                item = {"type": "content", "content": block(draw(texts))}
                updates.append({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "t1", "content": item})
            elif kind == "plan":
                plan = {"type": "items", "planId": "plan", "entries": draw(entries)}
                updates.append({"sessionUpdate": "plan_update", "plan": plan})
            else:
                updates.append(draw(common))
        turns.append((f"prompt {number} {draw(texts)}", updates, draw(stops)))
    return turns


# What a client shows.


def shown_by_v1(updates: list[Json]) -> Json:
    """Messages in their order, tool calls by id, and the last of everything else, as a client of version 1 has them."""
    entries: list[Any] = []
    calls: dict[str, Json] = {}
    state: Json = {"mode": "a"}
    for update in updates:
        kind = update["sessionUpdate"]
        if kind.endswith("_chunk"):
            key = kind, update.get("messageId")
            piece = _piece(update["content"])
            if entries and entries[-1][0] == key:
                entries[-1][1].append(piece)
            else:
                entries.append((key, [piece]))
        elif kind in ("tool_call", "tool_call_update"):
            if kind == "tool_call" or update["toolCallId"] not in calls:
                calls[update["toolCallId"]] = {"kind": "other", "status": "pending", "content": [], "locations": []}
            call = calls[update["toolCallId"]]
            call |= {key: value for key, value in update.items() if key not in ("sessionUpdate", "toolCallId", "_meta")}
            entries.append(("call", update["toolCallId"]))
        elif kind == "plan":
            state["plan"] = update["entries"]
            entries.append(("plan", None))
        elif kind == "current_mode_update":
            state["mode"] = update["currentModeId"]
        elif kind == "config_option_update":
            state["mode"] = update["configOptions"][0]["currentValue"]
        else:
            state[kind] = {key: value for key, value in update.items() if key != "sessionUpdate"}
    messages = [(entry[0][0], _joined(entry[1])) for entry in entries if isinstance(entry[0], tuple)]
    return {"messages": messages, "calls": calls, **state}


def _piece(content: Json) -> Any:
    return content["text"] if content["type"] == "text" and content.keys() == {"type", "text"} else content


def _joined(pieces: list[Any]) -> list[Any]:
    found: list[Any] = []
    for piece in pieces:
        if isinstance(piece, str) and found and isinstance(found[-1], str):
            found[-1] += piece
        else:
            found.append(piece)
    return found


def shown_by_v2(updates: list[Json]) -> Json:
    """Messages and tool calls by id, states in their order, and the last of everything else, as a client of version 2 has them."""
    messages: dict[tuple[str, str], list[Any]] = {}
    calls: dict[str, Json] = {}
    states: list[Any] = []
    rest: Json = {}
    for update in updates:
        kind = update["sessionUpdate"]
        fields = {key: value for key, value in update.items() if key not in ("sessionUpdate", "toolCallId", "_meta")}
        if kind in ("user_message", "agent_message", "agent_thought"):
            found = messages.setdefault((kind, update["messageId"]), [])
            if "content" in update:
                found[:] = [_piece(one) for one in update["content"] or ()]
        elif kind.endswith("_chunk") and "messageId" in update:
            messages.setdefault((kind.removesuffix("_chunk"), update["messageId"]), []).append(
                _piece(update["content"])
            )
        elif kind == "state_update":
            if not states or states[-1] != fields:
                states.append(fields)
        elif kind == "tool_call_update":
            call = calls.setdefault(update["toolCallId"], {})
            call |= fields
        elif kind == "tool_call_content_chunk":
            call = calls.setdefault(update["toolCallId"], {})
            call["content"] = [*call.get("content", ()), update["content"]]
        elif kind == "plan_update":
            rest["plan"] = update["plan"]
        else:
            rest[kind] = fields
    users = [_joined(content) for (kind, _), content in messages.items() if kind == "user_message"]
    others = {key: _joined(content) for key, content in messages.items() if key[0] != "user_message"}
    return {"users": users, "messages": others, "calls": calls, "states": states, **rest}


def opened(pump: Pump, version: int, result: Json) -> None:
    """Do the handshake and open the session `s` with an agent at the end of the pump."""
    name = {"name": "n", "version": "1"}
    if version == 1:
        able: Json = {"session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}}}
        pump.client(
            {
                "id": 1,
                "method": "initialize",
                "params": {"protocolVersion": 1, "clientCapabilities": able, "clientInfo": name},
            }
        )
        agent: Json = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}, "agentInfo": name}
    else:
        pump.client({"id": 1, "method": "initialize", "params": {"protocolVersion": 2, "info": name}})
        agent = {"protocolVersion": 2, "capabilities": {"session": {"mcp": {"stdio": {}}}}, "info": name}
    if pump.links and isinstance(pump.links[-1], V1ClientTranslator):
        agent = {"protocolVersion": 2, "capabilities": {"session": {"mcp": {"stdio": {}}}}, "info": name}
    elif pump.links:
        agent = {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}, "agentInfo": name}
    pump.agent({"id": pump.at_agent[-1]["id"], "result": agent})
    pump.client({"id": 2, "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}})
    pump.agent({"id": pump.at_agent[-1]["id"], "result": {"sessionId": "s", **result}})
    assert pump.at_client[-1]["result"]["sessionId"] == "s"
