"""Agents that make trouble: they hang, die, forget, take too long: `python -m tests.client.troubles NAME LOG`."""

import os
import sys
from typing import ClassVar

from tests.client.script import CANCELLED, END, Agent, Message, Refusal


class EchoesVersion(Agent):
    version = 99


class RefusesVersion(Agent):
    def initialize(self, params: Message) -> object:
        raise Refusal(-32022, "Unsupported protocol version", {"supported": [2]})


class IgnoresCancel(Agent):
    """Once: the next life is better."""

    capabilities: ClassVar[Message] = {"sessionCapabilities": {"resume": {}}}

    def resume(self, params: Message) -> object:
        return {}

    def prompt(self, params: Message) -> object:
        if self.starts > 1:
            return super().prompt(params)
        self.text(params["sessionId"], "working")
        while True:
            self.note(self.read().get("method", "an answer"))


class Cancellable(Agent):
    """Works until it is cancelled, sends a last thing, and ends as the prompt says."""

    def prompt(self, params: Message) -> object:
        session = params["sessionId"]
        self.update(session, "tool_call", toolCallId="t1", title="Work", status="in_progress")
        self.wait_for("session/cancel")
        self.update(session, "tool_call_update", toolCallId="t1", status="failed")
        match params["prompt"][0]["text"]:
            case "error":
                raise Refusal(-32603, "AbortError")
            case "end_turn":
                return END
            case _:
                return CANCELLED


class AsksForever(Agent):
    """Asks permission, notes the outcome, and asks once more when it was cancelled."""

    def prompt(self, params: Message) -> object:
        options = [("yes", "allow_once"), ("no", "reject_once")]
        self.note("outcome " + self.permission(params["sessionId"], options)["outcome"])
        self.wait_for("session/cancel")
        self.note("outcome " + self.permission(params["sessionId"], options)["outcome"])
        return CANCELLED


class Dies(Agent):
    """Dies in the middle of its first turn; what it was is loaded in its next life."""

    capabilities: ClassVar[Message] = {"loadSession": True}

    def load(self, params: Message) -> object:
        self.update(params["sessionId"], "user_message_chunk", content={"type": "text", "text": "again"})
        self.update(params["sessionId"], "current_mode_update", currentModeId="plan")
        return {}

    def prompt(self, params: Message) -> object:
        if self.starts == 1:
            self.text(params["sessionId"], "so far")
            sys.exit("out of luck")
        return super().prompt(params)


class DiesOnNew(Agent):
    """Dies when it is asked for a session, as often as the number in its environment says."""

    def new(self, params: Message) -> object:
        if self.starts <= int(os.environ.get("DEATHS", "1")):
            sys.exit("not today")
        return super().new(params)


class Expires(Agent):
    """The first prompt finds the session expired; resuming helps."""

    capabilities: ClassVar[Message] = {"sessionCapabilities": {"resume": {}}, "loadSession": True}
    offer: ClassVar[Message] = {
        "modes": {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]}
    }

    def resume(self, params: Message) -> object:
        return {}

    def set_mode(self, params: Message) -> object:
        if self.times("session/set_mode") == 1:
            raise Refusal(-32003, "Session expired")
        return {}

    def prompt(self, params: Message) -> object:
        if self.times("session/prompt") == 1:
            raise Refusal(-32003, "Session expired")
        return super().prompt(params)


class ExpiresLate(Agent):
    """Finds out that the session expired after it has sent something."""

    capabilities: ClassVar[Message] = {"sessionCapabilities": {"resume": {}}}

    def resume(self, params: Message) -> object:
        return {}

    def prompt(self, params: Message) -> object:
        self.text(params["sessionId"], "so far")
        raise Refusal(-32003, "Session expired")


class TimesOut(Agent):
    """Takes too long for the first sessions, and for every prompt."""

    def new(self, params: Message) -> object:
        if self.times("session/new") <= 2:
            raise Refusal(-32001, "Request timed out")
        return super().new(params)

    def prompt(self, params: Message) -> object:
        raise Refusal(-32001, "Request timed out")


class TimesOutForever(Agent):
    def new(self, params: Message) -> object:
        raise Refusal(-32001, "Request timed out")


class TalksOn(Agent):
    """Says something after it has answered."""

    offer: ClassVar[Message] = {
        "modes": {"currentModeId": "a", "availableModes": [{"id": "a", "name": "A"}, {"id": "b", "name": "B"}]}
    }

    def after(self, method: str) -> None:
        if method == "session/prompt":
            self.text("s1.1", "by the way")
            self.update("s1.1", "current_mode_update", currentModeId="b")


class Chatters(Agent):
    """Prints its log to stdout."""

    def prompt(self, params: Message) -> object:
        self.write("[INFO] thinking …")
        self.write("")
        self.write("{not json")
        return super().prompt(params)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2]).serve()
