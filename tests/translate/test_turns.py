"""Turns at random: prompts, responses, states, cancels and late updates in any order never lose, double or misattribute anything."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from antiphon.protocol.translate.v1_client import NEXT_WORK, V1ClientTranslator
from antiphon.protocol.translate.v2_client import V2ClientTranslator
from tests.translate.conversations import opened
from tests.translate.pump import Json, Pump


def update(body: Json) -> Json:
    return {"method": "session/update", "params": {"sessionId": "s", "update": body}}


def prompt_of(id: str, text: str) -> Json:
    params = {"sessionId": "s", "prompt": [{"type": "text", "text": text}]}
    return {"id": id, "method": "session/prompt", "params": params}


class Turns(RuleBasedStateMachine):
    """What both directions share: one session, prompts that are counted, and texts of the agent that are."""

    def __init__(self, pump: Pump, version: int) -> None:
        super().__init__()
        self.pump = pump
        self.version = version
        self.sent: list[str] = []
        self.said: list[str] = []

    @initialize()
    def open_session(self) -> None:
        opened(self.pump, self.version, {})

    def answers(self, id: str) -> list[Json]:
        return [message for message in self.pump.at_client if message.get("id") == id and "method" not in message]

    def bodies(self) -> list[Json]:
        return [m["params"]["update"] for m in self.pump.at_client if m.get("method") == "session/update"]

    @rule()
    def client_sends_a_prompt(self) -> None:
        id = f"p{len(self.sent)}"
        self.sent.append(id)
        self.pump.client(prompt_of(id, f"text of {id}"))

    @rule(settle=st.booleans(), kind=st.sampled_from(["agent_message", "agent_thought"]))
    def agent_sends_text(self, settle: bool, kind: str) -> None:
        text = f"{len(self.said)};"
        self.said.append(text)
        chunk = {
            "sessionUpdate": f"{kind}_chunk",
            "messageId": f"m{len(self.said) % 3}",
            "content": {"type": "text", "text": text},
        }
        self.pump.agent(update(chunk), settle=settle)

    @invariant()
    def every_text_arrives_once_and_in_order(self) -> None:
        found = [
            b["content"]["text"] for b in self.bodies() if b["sessionUpdate"].startswith("agent_") and "content" in b
        ]
        assert found == self.said

    @invariant()
    def no_prompt_is_answered_twice(self) -> None:
        assert all(len(self.answers(id)) <= 1 for id in self.sent)


class V1ClientTurns(Turns):
    """A client of version 1, and an agent of version 2 that inserts prompts and begins and ends work whenever it likes."""

    def __init__(self) -> None:
        super().__init__(Pump(V1ClientTranslator), 1)
        self.waiting: list[tuple[str, object]] = []
        """Prompts that the agent has not inserted, with their ids there."""
        self.echoed: dict[str, object] = {}
        """Prompts whose message was sent before their response."""
        self.inserted: list[str] = []
        self.cancelled: set[str] = set()
        self.busy = False
        self.due: dict[str, str] = {}
        """Prompts that must have been answered, with the reason."""
        self.cancelling = False
        """Whether a cancellation has not been followed by an idle."""
        self.first: set[str] = set()
        """Prompts that were sent while the agent was idle."""
        self.behind: set[str] = set()
        """Prompts that were sent behind a cancellation."""
        self.maybe: dict[str, str | None] = {}
        """Prompts whose work may have ended, if no work follows, with the reason."""

    @rule()
    def client_sends_a_prompt(self) -> None:
        super().client_sends_a_prompt()
        self.waiting.append((self.sent[-1], self.pump.at_agent[-1]["id"]))
        if not self.busy:
            self.first.add(self.sent[-1])
        if self.cancelling:
            self.behind.add(self.sent[-1])

    def word(self, id: str, reason: str | None) -> str:
        return reason or ("cancelled" if id in self.cancelled else "end_turn")

    @precondition(lambda self: self.waiting and not self.echoed)
    @rule(response_first=st.booleans())
    def agent_inserts(self, response_first: bool) -> None:
        id, there = self.waiting.pop(0)
        echo = {
            "sessionUpdate": "user_message",
            "messageId": f"u-{id}",
            "content": [{"type": "text", "text": f"text of {id}"}],
        }
        if response_first:
            self.pump.agent({"id": there, "result": {"messageId": f"u-{id}"}})
        self.pump.agent(update(echo))
        if response_first:
            self.inserted.append(id)
        else:
            self.echoed[id] = there

    @precondition(lambda self: self.echoed)
    @rule()
    def agent_sends_the_response_late(self) -> None:
        id, there = self.echoed.popitem()
        self.pump.agent({"id": there, "result": {"messageId": f"u-{id}"}})
        if id not in self.due:
            self.inserted.append(id)
        if id in self.due:
            assert self.answers(id)

    @rule(state=st.sampled_from(["running", "requires_action", "dreaming"]))
    def agent_works(self, state: str) -> None:
        self.pump.agent(update({"sessionUpdate": "state_update", "state": state}))
        self.busy = True
        self.maybe.clear()

    @rule()
    def time_passes(self) -> None:
        self.pump.wait(2 * NEXT_WORK)
        for id in [id for id in self.inserted if id in self.maybe]:
            self.due[id] = self.word(id, self.maybe.pop(id))
            self.inserted.remove(id)

    @rule(reason=st.sampled_from(["end_turn", "cancelled", "error", "_tired", None]))
    def agent_is_idle(self, reason: str | None) -> None:
        body: Json = {"sessionUpdate": "state_update", "state": "idle"}
        self.pump.agent(update(body if reason is None else {**body, "stopReason": reason}))
        if self.busy:
            behind = self.behind if self.cancelling and reason in ("cancelled", None) else set()
            self.maybe |= {id: reason for id in (*self.inserted, *self.echoed) if id in behind and id not in self.due}
            self.maybe |= {id: reason for id, _ in self.waiting if id in self.first}
            for id in self.inserted:
                if id not in behind:
                    self.due[id] = self.word(id, reason)
            for id in self.echoed:  # the first idle after it counts
                if id not in behind:
                    self.due.setdefault(id, self.word(id, reason))
            self.inserted = [id for id in self.inserted if id in behind]
            self.cancelling = False
            self.behind = set()
        self.busy = False

    @precondition(lambda self: self.waiting)
    @rule(code=st.sampled_from([-32800, -32603]))
    def agent_refuses(self, code: int) -> None:
        id, there = self.waiting.pop()
        self.pump.agent({"id": there, "error": {"code": code, "message": "no"}})
        self.due[id] = "cancelled" if code == -32800 else "error"

    @rule()
    def client_cancels(self) -> None:
        self.cancelling = self.busy or bool(self.inserted or self.waiting or self.echoed)
        self.behind.clear()
        self.pump.client({"method": "session/cancel", "params": {"sessionId": "s"}})
        self.cancelled |= {id for id in self.sent if not self.answers(id)} | set(self.inserted)
        if not self.busy:
            for id in self.inserted:
                self.due[id] = "cancelled"
            self.inserted.clear()

    @invariant()
    def prompts_are_answered_when_their_work_ends_and_not_before(self) -> None:
        for id in self.sent:
            found = self.answers(id)
            if id in self.due and id not in self.echoed:
                [answer] = found
                reason = self.due[id]
                expected = "end_turn" if reason == "_tired" else reason
                assert ("error" if "error" in answer else answer["result"]["stopReason"]) == expected
            else:
                assert not found

    @invariant()
    def the_client_is_not_sent_its_own_messages(self) -> None:
        assert not [body for body in self.bodies() if body["sessionUpdate"].startswith("user_message")]


class V2ClientTurns(Turns):
    """A client of version 2, and an agent of version 1, which gets one prompt at a time."""

    def __init__(self) -> None:
        super().__init__(Pump(V2ClientTranslator), 2)
        self.refused: set[str] = set()
        self.cancels = 0

    def open_at_agent(self) -> list[Json]:
        return [m for m in self.pump.at_agent if m.get("method") == "session/prompt" and m["id"] not in self.ended]

    @initialize()
    def no_prompt_has_ended(self) -> None:
        self.ended: set[object] = set()

    @rule()
    def time_passes(self) -> None:
        self.pump.wait(1)

    @precondition(lambda self: getattr(self, "ended", None) is not None and self.open_at_agent())
    @rule(stop=st.sampled_from(["end_turn", "refusal", "cancelled"]), fails=st.booleans())
    def agent_ends_the_turn(self, stop: str, fails: bool) -> None:
        [prompt] = self.open_at_agent()
        self.ended.add(prompt["id"])
        result: Json = {"error": {"code": -32603, "message": "no"}} if fails else {"result": {"stopReason": stop}}
        self.pump.agent({"id": prompt["id"], **result})

    @rule()
    def client_cancels(self) -> None:
        self.pump.client({"method": "session/cancel", "params": {"sessionId": "s"}})

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def client_cancels_one_prompt(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(self.sent))
        self.pump.client({"method": "$/cancel_request", "params": {"requestId": id}})

    @invariant()
    def the_agent_has_one_prompt_at_a_time_in_order(self) -> None:
        if not hasattr(self, "ended"):
            return
        assert len(self.open_at_agent()) <= 1
        texts = [m["params"]["prompt"][0]["text"] for m in self.pump.at_agent if m.get("method") == "session/prompt"]
        assert texts == [f"text of {id}" for id in self.sent if f"text of {id}" in texts]

    @invariant()
    def states_alternate_and_every_message_stands_before_its_response(self) -> None:
        states = [body["state"] for body in self.bodies() if body["sessionUpdate"] == "state_update"]
        assert states == ["running", "idle"] * (len(states) // 2) + ["running"] * (len(states) % 2)
        inserted: list[str] = []
        for message in self.pump.at_client:
            if (
                message.get("method") == "session/update"
                and message["params"]["update"]["sessionUpdate"] == "user_message"
            ):
                inserted.append(message["params"]["update"]["messageId"])
            elif "result" in message and "messageId" in (message["result"] or {}):
                assert message["result"]["messageId"] == inserted[-1]
        assert len(inserted) == len(set(inserted))

    @invariant()
    def a_prompt_of_the_agent_ends_the_turn_of_its_own_message(self) -> None:
        if not hasattr(self, "ended"):
            return
        running = [body["state"] for body in self.bodies() if body["sessionUpdate"] == "state_update"].count("running")
        answered = [id for id in self.sent if any("result" in answer for answer in self.answers(id))]
        assert running == len(answered)


V1ClientTurns.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
V2ClientTurns.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
test_turns_of_a_client_of_version_1 = V1ClientTurns.TestCase
test_turns_of_a_client_of_version_2 = V2ClientTurns.TestCase
