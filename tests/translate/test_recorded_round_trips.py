"""Recorded conversations through two translators and back: a client of the same version is shown the same.

The recordings were made with the agents of `tests/thirdparty` and a fake model: prompts, a queue, permission, cancel, a question, an
error. Long texts and descriptions are cut. A client and an agent play their parts as recorded; the ids of requests are those of the pump.
"""

import json
from collections import deque
from typing import Any

import pytest

from antiphon.protocol.translate.v1_client import V1ClientTranslator
from antiphon.protocol.translate.v2_client import V2ClientTranslator
from tests.translate.conversations import shown_by_v1, shown_by_v2
from tests.translate.pump import Json, Pump
from tests.translate.test_recordings import RECORDINGS
from tests.translate.test_round_trips import joined, updates_of

BACK = {"c2a": "a2c", "a2c": "c2a"}


class Recorded:
    """A recording, played through a chain of translators. A response waits until its request has come through."""

    def __init__(self, name: str, pump: Pump) -> None:
        self.pump = pump
        self.updates: list[Json] = []
        """The updates that the agent sent."""
        self.responses: dict[Any, Json] = {}
        """The responses of the agent, by the ids of the client's requests."""
        self._asked: dict[str, list[Json]] = {"c2a": [], "a2c": []}
        self._ids: dict[str, dict[Any, Any]] = {"c2a": {}, "a2c": {}}
        self._early: dict[str, deque[Json]] = {"c2a": deque(), "a2c": deque()}
        self._seen = {"c2a": 0, "a2c": 0}
        for line in (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            self._play(record["dir"], record["msg"])
        pump.wait(10)
        self._match()

    def _play(self, way: str, message: Json) -> None:
        if "method" in message:
            if "id" in message:
                self._asked[way].append(message)
            elif message["method"] == "session/update":
                self.updates.append(message["params"]["update"])
            self._give(way, message)
        else:
            if way == "a2c":
                self.responses[message["id"]] = message
            self._early[BACK[way]].append(message)
        self._match()

    def _give(self, way: str, message: Json) -> None:
        (self.pump.client if way == "c2a" else self.pump.agent)(message)

    def _match(self) -> None:
        """Find the requests that have arrived at the other end, and give the responses that wait for them."""
        moved = True
        while moved:
            moved = False
            for way, far in (("c2a", self.pump.at_agent), ("a2c", self.pump.at_client)):
                for message in far[self._seen[way] :]:
                    asked = [each for each in self._asked[way] if each["method"] == message.get("method")]
                    if "id" in message and asked:
                        self._asked[way].remove(asked[0])
                        self._ids[way][asked[0]["id"]] = message["id"]
                self._seen[way] = len(far)
                for response in tuple(self._early[way]):
                    if response["id"] in self._ids[way]:
                        self._early[way].remove(response)
                        self._give(BACK[way], {**response, "id": self._ids[way][response["id"]]})
                        moved = True

    def answers(self) -> dict[Any, Json]:
        """The responses that the client got. None of its requests has two."""
        found = [each for each in self.pump.at_client if "id" in each and "method" not in each]
        assert len({each["id"] for each in found}) == len(found)
        return {each["id"]: each for each in found}

    @property
    def unanswered(self) -> int:
        """The responses that never found their request."""
        return sum(map(len, self._early.values()))


def outcome(answer: Json) -> Any:
    """Why a turn ended, or the code of its error."""
    return answer["error"]["code"] if "error" in answer else answer["result"].get("stopReason")


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize(("name", "most"), [("claude-v2", 2), ("codex-v2", 1)])
def test_a_recorded_conversation_of_version_2_is_the_same_through_version_1(name: str, most: int, depth: int) -> None:
    played = Recorded(name, Pump(*(V2ClientTranslator, V1ClientTranslator) * depth))
    answers = played.answers()
    assert played.unanswered == 0 and answers.keys() >= played.responses.keys()
    for id, response in played.responses.items():
        assert ("error" in answers[id]) == ("error" in response), (answers[id], response)
    direct, through = shown_by_v2(played.updates), shown_by_v2(updates_of(played.pump.at_client))
    assert through["users"] == direct["users"] and through["messages"] == direct["messages"]
    ends = [[each for each in found["states"] if each["state"] == "idle"] for found in (direct, through)]
    assert ends[0] == ends[1]
    assert through["calls"].keys() >= direct["calls"].keys()
    for id, call in direct["calls"].items():
        for field in ("status", "title", "rawInput"):
            if field in call:
                assert through["calls"][id][field] == call[field], (id, field)
    assert len(played.pump.losses) <= most * depth, played.pump.losses


@pytest.mark.parametrize("depth", [1, 2])
def test_a_recorded_conversation_of_version_1_is_the_same_through_version_2(depth: int) -> None:
    played = Recorded("kimi-v1", Pump(*(V1ClientTranslator, V2ClientTranslator) * depth))
    answers = played.answers()
    assert played.unanswered == 0 and answers.keys() >= played.responses.keys()
    prompts = {id: response for id, response in played.responses.items() if outcome(response) is not None}
    assert prompts and {id: outcome(answers[id]) for id in prompts} == {
        id: outcome(each) for id, each in prompts.items()
    }
    direct, through = shown_by_v1(played.updates), shown_by_v1(updates_of(played.pump.at_client))
    assert joined(through["messages"]) == joined(direct["messages"])
    for id, call in direct["calls"].items():
        for field in ("status", "title", "rawInput", "content"):
            if field in call:
                assert through["calls"][id][field] == call[field], (id, field)
    assert not played.pump.losses
