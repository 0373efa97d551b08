"""What our SDKs have of version 2 beyond version 1: between them and the translators alone, and bounded."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from antiphon.protocol.extension import KEY, MAX_WORK, kept_in, work_of
from antiphon.protocol.translate.tables import MAX_ENTITIES
from antiphon.protocol.translate.v1_client import V1ClientTranslator
from antiphon.protocol.translate.v2_client import V2ClientTranslator
from tests.translate.conversations import opened
from tests.translate.pump import Json, Pump
from tests.translate.test_hostile_peers import prompt, session_of, update
from tests.translate.test_turns import V2ClientTurns


class ForOurAgent(V2ClientTranslator):
    """The translator below an agent of our SDK."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock, extended=True)


class ForOurClient(V1ClientTranslator):
    """The translator below a client of our SDK."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock, extended=True)


@pytest.fixture
def our_agent() -> Pump:
    pump = Pump(ForOurAgent)
    opened(pump, 2, {})
    return pump


@pytest.fixture
def our_client() -> Pump:
    pump = Pump(ForOurClient)
    opened(pump, 1, {})
    return pump


def extension(body: Json, session: str = "s") -> Json:
    return {"method": "_antiphon/v2/session/update", "params": {"sessionId": session, "update": body}}


def state(word: str, **fields: Any) -> Json:
    return {"sessionUpdate": "state_update", "state": word, **fields}


def cancel(id: Any, method: str = "tool_call/cancel", **item: str) -> Json:
    return {"id": id, "method": method, "params": {"sessionId": "s", **(item or {"toolCallId": "c"})}}


def states(pump: Pump) -> list[Json]:
    bodies = [each["params"]["update"] for each in pump.at_client if each.get("method") == "session/update"]
    return [body for body in bodies if body["sessionUpdate"] == "state_update"]


CALL = {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Build"}
OFFER = {"sessionUpdate": "tool_call_update", "toolCallId": "c", "capabilities": {"cancel": {}}}
BACKGROUND = [{"type": "tool_call", "toolCallId": "c"}]


# An agent of our SDK.


def test_a_call_is_cancelled_only_while_the_agent_offers_it(our_agent: Pump) -> None:
    our_agent.agent(update(CALL))
    our_agent.client(cancel(10))
    assert our_agent.at_client[-1]["error"]["code"] == -32602
    our_agent.agent(extension(OFFER))
    our_agent.client(cancel(11))
    there = our_agent.at_agent[-1]
    assert there["method"] == "_antiphon/v2/tool_call/cancel"
    assert there["params"] == {"sessionId": "s", "toolCallId": "c"}
    our_agent.agent({"id": there["id"], "result": {}})
    assert our_agent.at_client[-1] == {"id": 11, "result": {}}
    our_agent.agent(extension({**OFFER, "capabilities": {}}))
    our_agent.client(cancel(12))
    assert our_agent.at_client[-1]["error"]["code"] == -32602
    our_agent.client(cancel(13, "terminal/cancel", terminalId="t"))
    assert our_agent.at_client[-1]["error"]["code"] == -32602


def test_an_agent_that_refuses_the_cancellation_after_all_is_believed(our_agent: Pump) -> None:
    our_agent.agent(extension({"sessionUpdate": "terminal_update", "terminalId": "t", "capabilities": {"cancel": {}}}))
    our_agent.client(cancel(10, "terminal/cancel", terminalId="t"))
    error = {"code": -32602, "message": "Invalid params", "data": "it has ended"}
    our_agent.agent({"id": our_agent.at_agent[-1]["id"], "error": error})
    assert our_agent.at_client[-1] == {"id": 10, "error": error}


def test_every_state_has_the_background_work_once_it_was_reported(our_agent: Pump) -> None:
    our_agent.client(prompt(10))
    our_agent.agent(update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}))
    assert [each.get("background") for each in states(our_agent)] == [None]
    our_agent.agent(extension(state("idle", background=BACKGROUND)))
    our_agent.agent({"id": our_agent.at_agent[-1]["id"], "result": {"stopReason": "end_turn"}})
    assert [(each["state"], each.get("background")) for each in states(our_agent)] == [
        ("running", None),
        ("running", BACKGROUND),  # the prompt runs, whatever the agent does by itself
        ("idle", BACKGROUND),
    ]


def test_the_end_of_a_prompt_waits_for_the_end_of_the_work_beside_it(our_agent: Pump) -> None:
    our_agent.client(prompt(10))
    our_agent.agent(extension(state("running")))
    our_agent.agent({"id": our_agent.at_agent[-1]["id"], "error": {"code": -32099, "message": "out of ink"}})
    our_agent.client(prompt(11))
    our_agent.wait(1)
    our_agent.agent({"id": our_agent.at_agent[-1]["id"], "error": {"code": -32099, "message": "out of ink"}})
    assert states(our_agent)[-1]["state"] == "running"
    our_agent.agent(extension(state("idle", stopReason="end_turn")))
    idle = states(our_agent)[-1]
    assert (idle["state"], idle["stopReason"], idle["error"]["code"]) == ("idle", "error", -32099)
    our_agent.agent(extension(state("idle", background=[])))
    assert states(our_agent)[-1] == state("idle", background=[])  # no end of anything


def test_a_session_that_is_closed_during_such_work_ends_cancelled(our_agent: Pump) -> None:
    our_agent.client(prompt(10))
    there = our_agent.at_agent[-1]["id"]
    our_agent.wait(1)
    our_agent.agent(extension(state("running")))
    our_agent.client({"id": 11, "method": "session/close", "params": {"sessionId": "s"}})
    our_agent.agent({"id": there, "result": {"stopReason": "cancelled"}})
    assert states(our_agent)[-1] == state("idle", stopReason="cancelled")
    assert our_agent.at_client[-1] == {"id": 11, "result": {}}
    our_agent.agent(extension(state("running")))
    assert states(our_agent)[-1]["state"] == "idle" and our_agent.losses[-1].reason == "its session is not open"


def test_reports_of_an_agent_are_bounded(our_agent: Pump) -> None:
    many = [{"type": "tool_call", "toolCallId": f"c{number}"} for number in range(MAX_WORK + 5)]
    our_agent.agent(extension(state("idle", background=many)))
    assert len(states(our_agent)[-1]["background"]) == MAX_WORK and "background" in our_agent.losses[-1].reason
    for number in range(MAX_ENTITIES + 5):
        our_agent.agent(extension({**OFFER, "toolCallId": f"c{number}"}), settle=False)
    assert len(session_of(our_agent).cancellable) == MAX_ENTITIES
    before = len(our_agent.at_client)
    our_agent.agent(extension({"sessionUpdate": "agent_message", "messageId": "m", "content": []}))
    our_agent.agent(extension(OFFER, "another"))
    our_agent.agent({"method": "_antiphon/v2/session/update", "params": {"sessionId": 7}})
    assert len(our_agent.at_client) == before and len(our_agent.losses) >= 4


def test_a_prompt_comes_with_the_id_that_its_message_will_have(our_agent: Pump) -> None:
    for number in (1, 2):
        our_agent.client(prompt(number + 10))
        there = our_agent.at_agent[-1]
        assert there["params"]["_meta"] == {KEY: {"messageId": f"user-{number}"}}
        our_agent.agent({"id": there["id"], "result": {"stopReason": "end_turn"}})
        answer = next(each for each in our_agent.at_client if each.get("id") == number + 10)
        assert answer["result"] == {"messageId": f"user-{number}"}


class OurAgentTurns(V2ClientTurns):
    """A client of version 2, and an agent of our SDK that also works by itself and in the background, whenever it likes."""

    def __init__(self) -> None:
        super().__init__()
        self.pump = Pump(ForOurAgent)
        self.alone = False
        self.background: list[Json] | None = None

    @rule(word=st.sampled_from(["running", "idle"]), work=st.none() | st.lists(st.sampled_from("abc"), unique=True))
    def agent_works_by_itself(self, word: str, work: list[str] | None) -> None:
        self.alone = word == "running"
        body = state(word, **({"stopReason": "end_turn"} if word == "idle" else {}))
        if work is not None or self.background is not None:
            self.background = [{"type": "tool_call", "toolCallId": id} for id in work or ()]
            body["background"] = self.background
        self.pump.agent(extension(body))

    @property
    def at_work(self) -> bool:
        """Whether the agent has a prompt that is inserted."""
        texts = [each["params"]["prompt"][0]["text"] for each in self.open_at_agent()]
        return any(f"text of {id}" in texts for id in self.sent if any("result" in one for one in self.answers(id)))

    @invariant()
    def states_alternate_and_every_message_stands_before_its_response(self) -> None:
        """The last state is the one of both together, work ends once, and the list is on every state from its first report on."""
        if not hasattr(self, "ended"):
            return
        shown = states(self.pump)
        busy = self.alone or self.at_work
        assert (shown[-1]["state"] if shown else "idle") == ("running" if busy else "idle")
        for before, after in pairwise([state("idle"), *shown]):
            assert "stopReason" not in after or (before["state"], after["state"]) == ("running", "idle")
            assert "background" in after or "background" not in before
        if shown and self.background is not None:
            assert shown[-1]["background"] == self.background

    @invariant()
    def a_prompt_of_the_agent_ends_the_turn_of_its_own_message(self) -> None:
        """Not here: a prompt may share its idle with other work."""


OurAgentTurns.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
test_turns_of_an_agent_of_our_sdk = OurAgentTurns.TestCase


# A client of our SDK.


def test_states_reach_the_client_before_the_response_that_they_cause(our_client: Pump) -> None:
    our_client.client({**prompt(10), "params": {**prompt(10)["params"], "_meta": {KEY: {"prompt": 5}, "mine": 1}}})
    there = our_client.at_agent[-1]
    assert there["params"]["_meta"] == {"mine": 1}
    our_client.agent({"id": there["id"], "result": {"messageId": "m"}})
    inserted = {"sessionId": "s", "prompt": 5, "messageId": "m"}
    assert our_client.at_client[-1] == {"method": "_antiphon/v2/session/prompt", "params": inserted}
    our_client.agent(update(state("running", background=BACKGROUND)))
    our_client.agent(update(state("idle", stopReason="end_turn", background=[])))
    reported = [each["params"]["update"] for each in our_client.at_client if "update" in each.get("params", {})]
    assert [each["state"] for each in reported if "state" in each] == ["running", "idle"]
    assert our_client.at_client[-1]["result"]["stopReason"] == "end_turn" and not our_client.losses


def test_a_cancellation_that_is_not_offered_does_not_leave(our_client: Pump) -> None:
    before = len(our_client.at_agent)
    for id, method in enumerate(("_antiphon/v2/tool_call/cancel", "_antiphon/v2/terminal/cancel")):
        for session in ("s", "unknown", 7):
            our_client.client({"id": f"{id}-{session}", "method": method, "params": {"sessionId": session}})
            assert our_client.at_client[-1]["error"]["code"] == -32602
    assert len(our_client.at_agent) == before


# Everyone else.


def test_a_client_of_version_1_that_is_not_ours_gets_nothing_of_it() -> None:
    pump = Pump(V1ClientTranslator)
    opened(pump, 1, {})
    pump.client({**prompt(10), "params": {**prompt(10)["params"], "_meta": {KEY: {"prompt": 5}}}})
    pump.agent({"id": pump.at_agent[-1]["id"], "result": {"messageId": "m"}})
    pump.agent(update(state("running", background=BACKGROUND)))
    pump.agent(update({**OFFER, "title": "Build"}))
    before = len(pump.at_client)
    pump.agent(update(OFFER))
    assert len(pump.at_client) == before  # version 1 has nothing for it
    pump.agent(update(state("idle", stopReason="end_turn")))
    methods = {message["method"] for message in pump.at_client if "method" in message}
    assert methods == {"session/update"} and "capabilities" not in str(pump.at_client[2:])
    assert [each for each in pump.losses if "background" in each.reason]


def test_an_agent_of_version_1_that_is_not_ours_gets_nothing_of_it() -> None:
    pump = Pump(V2ClientTranslator)
    opened(pump, 2, {})
    pump.client(prompt(10))
    assert "_meta" not in pump.at_agent[-1]["params"]
    pump.agent(extension(state("running")))  # nor can it send any: this is a method of its own
    assert pump.at_client[-1]["method"] == "_antiphon/v2/session/update" and not states(pump)
    pump.client(cancel(11))
    assert pump.at_client[-1]["error"]["code"] == -32602


def test_lists_and_meta_of_any_shape_are_read() -> None:
    assert work_of(None) is work_of("all") is work_of({}) is None
    assert work_of([1, {}, {"type": 1}, {"type": "terminal", "terminalId": 2}]) == (("terminal", ""),)
    assert kept_in(None) == kept_in({}) == kept_in({KEY: 1}) == {}
