"""What crosses two translators, from one version to the other and back, shows a client the same as without them; and so does twice that."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.protocol.translate.v1_client import V1ClientTranslator
from antiphon.protocol.translate.v2_client import V2ClientTranslator
from tests.translate.conversations import Turns, opened, shown_by_v1, shown_by_v2, v1_turns, v2_turns
from tests.translate.pump import Json, Pump

MODES = {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]}
some = settings(max_examples=60, deadline=None)
depths = st.sampled_from([1, 1, 2])
"""How often a conversation crosses to the other version and back."""


def update(body: Json) -> Json:
    return {"method": "session/update", "params": {"sessionId": "s", "update": body}}


def updates_of(messages: list[Json]) -> list[Json]:
    return [message["params"]["update"] for message in messages if message.get("method") == "session/update"]


def last_request(pump: Pump) -> Any:
    return [message for message in pump.at_agent if "method" in message and "id" in message][-1]["id"]


def played_by_v1_agent(pump: Pump, turns: Turns) -> list[tuple[str, list[Json]]]:
    """Let the agent play the turns; returns what the client got in each: why it stopped, and the updates."""
    opened(pump, 1, {"modes": MODES})
    found = []
    for number, (text, updates, stop) in enumerate(turns):
        start = len(pump.at_client)
        prompt = {"sessionId": "s", "prompt": [{"type": "text", "text": text}]}
        pump.client({"id": f"p{number}", "method": "session/prompt", "params": prompt})
        for body in updates:
            pump.agent(update(body), settle=False)
        pump.agent({"id": last_request(pump), "result": {"stopReason": stop}})
        got = pump.at_client[start:]
        [answer] = [message for message in got if message.get("id") == f"p{number}"]
        assert got[-1] == answer
        found.append((answer["result"]["stopReason"], updates_of(got)))
    return found


@some
@given(v1_turns(), st.booleans(), depths)
def test_a_conversation_of_version_1_is_the_same_through_version_2(turns: Turns, fast: bool, depth: int) -> None:
    direct = played_by_v1_agent(Pump(), turns)
    pump = Pump(*(V1ClientTranslator, V2ClientTranslator) * depth, fast=fast)
    through = played_by_v1_agent(pump, turns)
    assert [stop for stop, _ in through] == [stop for stop, _ in direct]
    mine, theirs = (shown_by_v1([body for _, bodies in found for body in bodies]) for found in (through, direct))
    assert joined(mine.pop("messages")) == joined(theirs.pop("messages"))
    for id, call in theirs["calls"].items():
        if "title" not in call:  # an agent that changes a call which it never began
            assert mine["calls"][id].pop("title")
    assert mine == theirs
    assert not pump.losses


def joined(messages: list[Any]) -> list[Any]:
    """Messages of a kind that follow each other, as one: where an agent gives no ids, only this can be seen."""
    found: list[Any] = []
    for kind, content in messages:
        if found and found[-1][0] == kind:
            pieces = found[-1][1]
            for piece in content:
                if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
                    pieces[-1] += piece
                else:
                    pieces.append(piece)
        else:
            found.append((kind, list(content)))
    return found


def played_by_v2_agent(pump: Pump, turns: Turns) -> list[Json]:
    opened(pump, 2, {})
    start = len(pump.at_client)
    for number, (text, updates, stop) in enumerate(turns):
        content = [{"type": "text", "text": text}]
        pump.client({"id": f"p{number}", "method": "session/prompt", "params": {"sessionId": "s", "prompt": content}})
        pump.agent({"id": last_request(pump), "result": {"messageId": f"u{number}"}})
        pump.agent(update({"sessionUpdate": "user_message", "messageId": f"u{number}", "content": content}))
        pump.agent(update({"sessionUpdate": "state_update", "state": "running"}))
        for body in updates:
            pump.agent(update(body))
        pump.agent(update({"sessionUpdate": "state_update", "state": "idle", "stopReason": stop}))
        answers = [message for message in pump.at_client if message.get("id") == f"p{number}"]
        assert len(answers) == 1 and isinstance(answers[0]["result"]["messageId"], str)
    return updates_of(pump.at_client[start:])


@some
@given(v2_turns(), st.booleans(), depths)
def test_a_conversation_of_version_2_is_the_same_through_version_1(turns: Turns, fast: bool, depth: int) -> None:
    direct = shown_by_v2(played_by_v2_agent(Pump(), turns))
    pump = Pump(*(V2ClientTranslator, V1ClientTranslator) * depth, fast=fast)
    through = shown_by_v2(played_by_v2_agent(pump, turns))
    for found in (direct, through):
        for call in found["calls"].values():  # what a client shows of a call that has not been given it
            call.setdefault("kind", "other")
            call.setdefault("status", "pending")
            call.pop("title", None) if found is direct and "title" not in call else None
    for id, call in through["calls"].items():
        if "title" not in direct["calls"][id]:
            assert call.pop("title")  # version 1 wants one
        for name in ("content", "locations"):
            if not call.get(name) and not direct["calls"][id].get(name):
                call.pop(name, None)
                direct["calls"][id].pop(name, None)
    assert through == direct
    assert not pump.losses
