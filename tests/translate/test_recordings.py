"""Recorded conversations through one translator: valid messages on both sides, all requests answered, and a counted number of losses.

The recordings are our own, in the shapes of real traffic: what agents of version 2 show, how their turns live, and an agent of version 1.
`dir` is the way of a message, from the client to the agent (`c2a`) or back; ids of requests are those of the side that sent them.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from antiphon.protocol.methods import AnyMethod, Call
from antiphon.protocol.translate.base import Translator
from antiphon.protocol.translate.v1_client import V1ClientTranslator
from antiphon.protocol.translate.v2_client import V2ClientTranslator
from antiphon.protocol.v1 import methods as m1
from antiphon.protocol.v2 import methods as m2
from tests.translate.pump import Json, Pump

RECORDINGS = Path(__file__).parent / "recordings"


class Replayed:
    """A recording, played through a translator: the ids of its responses are those that the translator gave the requests."""

    def __init__(self, name: str, kind: type[Translator]) -> None:
        self.pump = Pump(kind)
        self.methods: dict[tuple[str, Any], str] = {}
        self._ids: dict[tuple[str, Any], Any] = {}
        for line in (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            self._play(record["dir"], record["msg"])
        self.pump.wait(10)

    def _play(self, way: str, message: Json) -> None:
        from_client = way == "c2a"
        give = self.pump.client if from_client else self.pump.agent
        far = self.pump.at_agent if from_client else self.pump.at_client
        if "method" in message:
            before = len(far)
            give(message)
            for sent in far[before:]:
                if "id" in message and "id" in sent and "method" in sent:
                    self._ids[way, message["id"]] = sent["id"]
                    self.methods[way, sent["id"]] = sent["method"]
            return
        there = self._ids.get(("a2c" if from_client else "c2a", message["id"]))
        if there is not None:
            give({**message, "id": there})

    def unanswered(self) -> list[str]:
        links: Any = self.pump.links[0]
        open_prompts = [f"prompt {each.id}" for s in links._sessions.values() for each in getattr(s, "prompts", ())]
        return [each.method for each in links.of_client.by_new.values()] + open_prompts


def check(messages: list[Json], methods: dict[str, AnyMethod], version: int) -> None:
    """Every request and notification is one of the version, and strictly so but for kinds that belong to implementers."""
    for message in messages:
        method = methods.get(message.get("method", ""))
        if method is not None:
            rules = method.read_params(msgspec.json.encode(message.get("params", {}))).rules
            assert all("unknown kind `_" in rule for rule in rules), (message, rules)
        elif "method" in message:
            assert message["method"].startswith(("_", "$")), f"version {version} has no {message['method']}"


CASES = {
    "shop-show": (V1ClientTranslator, 22),
    "shop-life": (V1ClientTranslator, 7),
    "old-agent": (V2ClientTranslator, 6),
}


@pytest.mark.parametrize("name", CASES)
def test_a_recording_crosses_and_loses_no_more_than_it_may(name: str) -> None:
    kind, most = CASES[name]
    found = Replayed(name, kind)
    at_client, at_agent = (m1, m2) if kind is V1ClientTranslator else (m2, m1)
    check(found.pump.at_client, {**at_client.NOTICES_BY_NAME, **_client_calls(at_client)}, 1)
    check(found.pump.at_agent, at_agent.BY_NAME, 2)
    assert found.unanswered() == []
    losses = Counter((loss.what, loss.reason) for loss in found.pump.losses)
    assert sum(losses.values()) <= most, losses


def _client_calls(methods: Any) -> dict[str, Call[Any, Any]]:
    return {name: call for name, call in methods.CALLS_BY_NAME.items() if call.side != "agent"}


def answers(found: Replayed) -> dict[Any, Json]:
    return {message["id"]: message for message in found.pump.at_client if "id" in message and "method" not in message}


def test_turns_of_an_agent_of_version_2_end_as_the_client_expects() -> None:
    found = answers(Replayed("shop-life", V1ClientTranslator))
    assert found[3]["result"]["stopReason"] == "end_turn"
    assert found[4]["result"]["stopReason"] == "cancelled"
    assert found[5]["error"] == {"code": -32010, "message": "no ink"}
    assert found[6]["result"]["modes"]["currentModeId"] == "ask"
    assert found[7]["result"] == {}


def test_permission_requests_of_version_2_are_about_tool_calls_in_version_1() -> None:
    asked = [
        m["params"]
        for m in Replayed("shop-life", V1ClientTranslator).pump.at_client
        if m.get("method") == "session/request_permission"
    ]
    assert [each["toolCall"]["title"] for each in asked] == ["Edit it?", "Run it?", "Spend?"]
    assert asked[0]["toolCall"]["content"][0]["content"]["text"] == "The build is red."
    assert [option["kind"] for option in asked[0]["options"]] == ["allow_once", "reject_once", "reject_once"]
    assert asked[1]["toolCall"]["rawInput"] == {"command": "make", "cwd": "/w"}


def test_an_old_agent_is_a_whole_agent_of_version_2() -> None:
    replayed = Replayed("old-agent", V2ClientTranslator)
    found = answers(replayed)
    assert found[1]["result"]["authMethods"] == [{"type": "agent", "methodId": "key", "name": "Key"}]
    assert [option["configId"] for option in found[2]["result"]["configOptions"]] == ["mode", "model"]
    assert found[3]["result"] == {"messageId": "user-1"}
    assert (found[4]["error"]["code"], found[7]["error"]["code"]) == (-32602, -32601)
    assert found[5]["result"]["configOptions"][0]["currentValue"] == "ask"
    assert found[6]["result"]["sessions"] == [{"sessionId": "s1", "cwd": "/w"}]
    assert found[9]["error"]["code"] == -32603  # before it was inserted
    updates = [m["params"]["update"] for m in replayed.pump.at_client if m.get("method") == "session/update"]
    states = [(each["state"], each.get("stopReason")) for each in updates if each["sessionUpdate"] == "state_update"]
    assert states == [
        ("running", None),
        ("requires_action", None),
        ("running", None),
        ("idle", "end_turn"),
        ("idle", None),
    ]
    assert {"sessionUpdate": "_mood", "word": "glad"} in updates
    refused = [m for m in replayed.pump.at_agent if m.get("id") == 1 and "error" in m]
    assert refused[0]["error"]["code"] == -32601  # it has no files of the client
