"""Agents that are odd or make trouble, to be driven by the engine: `python -m tests.engines.acp.stand_in NAME LOG`."""

import json
import os
import sys
from pathlib import Path
from typing import ClassVar

from tests.client.script import CANCELLED, END, Agent, Message, Refusal

MODES: Message = {
    "modes": {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "look", "name": "Look"}]}
}


def words(params: Message) -> str:
    return "".join(block.get("text", "") for block in params["prompt"])


class Plain(Agent):
    """Can nothing that not every agent can."""

    def initialize(self, params: Message) -> object:
        self.note("client " + json.dumps(params["clientCapabilities"]))
        return super().initialize(params)

    def new(self, params: Message) -> object:
        self.note("place " + json.dumps(params))
        return super().new(params)

    def prompt(self, params: Message) -> object:
        self.note("prompt " + json.dumps(params["prompt"]))
        return super().prompt(params)


class TakesPictures(Plain):
    capabilities: ClassVar[Message] = {"promptCapabilities": {"image": True}}


class SpeaksFreely(Agent):
    """Sends unknown updates before, in and after a turn."""

    def new(self, params: Message) -> object:
        self.update("s1.1", "weather_update", sky="grey", _meta={"of": "today"})
        return super().new(params)

    def prompt(self, params: Message) -> object:
        session = params["sessionId"]
        self.text(session, "one")
        self.update(session, "weather_update", sky="blue", degrees=[1, 2.5, None])
        self.text(session, "two")
        return {**END, "_meta": {"took": 3}}

    def after(self, method: str) -> None:
        if method == "session/prompt":
            self.text("s1.1", "three")


class AsksForFiles(Agent):
    """Reads, writes and runs, already before the session is known; says what came of it."""

    def new(self, params: Message) -> object:
        self.cwd = params["cwd"]
        self.note("early " + self._read("s1.1", "README.md"))
        return super().new(params)

    def _read(self, session: str, name: str) -> str:
        answer = self.ask("fs/read_text_file", {"sessionId": session, "path": f"{self.cwd}/{name}"})
        return str(answer["result"]["content"]) if "result" in answer else str(answer["error"]["message"])

    def prompt(self, params: Message) -> object:
        session = params["sessionId"]
        match words(params).split():
            case ["read", name]:
                self.text(session, self._read(session, name))
            case ["write", name, text]:
                written = {"sessionId": session, "path": f"{self.cwd}/{name}", "content": text}
                self.text(session, json.dumps(self.ask("fs/write_text_file", written).get("error", "written")))
            case ["run", *command]:
                self._run(session, " ".join(command))
            case _:
                pass
        return END

    def _run(self, session: str, command: str) -> None:
        made = self.ask("terminal/create", {"sessionId": session, "command": command})
        if "error" in made:
            self.text(session, made["error"]["message"])
            return
        terminal = {"sessionId": session, "terminalId": made["result"]["terminalId"]}
        content = [{"type": "terminal", "terminalId": terminal["terminalId"]}]
        self.update(session, "tool_call", toolCallId="t1", title="Run", status="in_progress", content=content)
        exit = self.ask("terminal/wait_for_exit", terminal)["result"]
        output = self.ask("terminal/output", terminal)["result"]["output"]
        self.ask("terminal/release", terminal)
        self.update(session, "tool_call_update", toolCallId="t1", status="completed")
        self.text(session, f"{exit['exitCode']} {output}")


class Dies(Agent):
    """Dies in its first turn, with a call and a terminal open. `capabilities` say whether it remembers."""

    offer: ClassVar[Message] = MODES

    def new(self, params: Message) -> object:
        self.cwd = params["cwd"]
        return super().new(params)

    def prompt(self, params: Message) -> object:
        if self.starts > 1:
            return super().prompt(params)
        session = params["sessionId"]
        made = self.ask("terminal/create", {"sessionId": session, "command": "sleep", "args": ["600"]})
        self.note("terminal " + made["result"]["terminalId"])
        self.update(session, "tool_call", toolCallId="t1", title="Work", status="in_progress")
        self.text(session, "so far")
        sys.exit("out of luck")

    def set_mode(self, params: Message) -> object:
        self.note("mode " + params["modeId"])
        return {}


class DiesAndNotes(Dies):
    """Notes what it is given."""

    def prompt(self, params: Message) -> object:
        self.note("prompt " + json.dumps(params["prompt"]))
        return super().prompt(params)


class DiesAndResumes(Dies):
    capabilities: ClassVar[Message] = {"sessionCapabilities": {"resume": {}}}

    def resume(self, params: Message) -> object:
        self.note("resumed " + params["sessionId"])
        return self.offer


class DiesAndLoads(Dies):
    capabilities: ClassVar[Message] = {"loadSession": True}

    def load(self, params: Message) -> object:
        self.note("loaded " + params["sessionId"])
        self.text(params["sessionId"], "old words")
        self.update(params["sessionId"], "available_commands_update", availableCommands=[])
        return self.offer


class Hangs(Agent):
    """Does not listen in its first life: neither to a cancellation nor to anything else."""

    capabilities: ClassVar[Message] = {"sessionCapabilities": {"resume": {}}}

    def resume(self, params: Message) -> object:
        self.note("resumed " + params["sessionId"])
        return {}

    def prompt(self, params: Message) -> object:
        if self.starts > 1:
            return super().prompt(params)
        self.note(f"pid {os.getpid()}")
        self.text(params["sessionId"], "working")
        while True:
            self.read()


class AsksAndIsCancelled(Agent):
    """Asks for permission, and notes what it is answered when the turn is cancelled meanwhile."""

    def prompt(self, params: Message) -> object:
        self.update(params["sessionId"], "tool_call", toolCallId="t1", title="Sing")
        answer = self.permission(params["sessionId"], [("yes", "allow_once")], title="Sing")
        self.note("outcome " + json.dumps(answer))
        self.wait_for("session/cancel")
        self.text(params["sessionId"], "stopped")
        return CANCELLED


class Locked(Agent):
    """Wants a sign-in before anything."""

    capabilities: ClassVar[Message] = {"auth": {"logout": {}}}
    auth_methods: ClassVar[list[Message]] = [
        {"id": "browser", "name": "Log in with a browser"},
        {"id": "shell", "name": "Log in by hand", "type": "terminal", "args": ["login"]},
    ]
    open = False

    def authenticate(self, params: Message) -> object:
        self.note("way " + params["methodId"])
        self.open = True
        return {}

    def logout(self, params: Message) -> object:
        self.open = False
        return {}

    def new(self, params: Message) -> object:
        if not self.open:
            raise Refusal(-32000, "Authentication required")
        return super().new(params)


class Steered(Agent):
    """Takes what is added to a turn."""

    def initialize(self, params: Message) -> object:
        return {**dict(super().initialize(params)), "_meta": {"steering": {"supported": True}}}  # type: ignore[call-overload]

    def prompt(self, params: Message) -> object:
        self.text(params["sessionId"], "go on")
        added = self.wait_for("_session/steering")
        self.say({"id": added["id"], "result": {"outcome": "injected"}})
        self.text(params["sessionId"], words(added["params"]))
        return END


class Extends(Agent):
    """Asks and sends by methods of its own."""

    def prompt(self, params: Message) -> object:
        session = params["sessionId"]
        self.say({"method": "_stand_in/told", "params": {"sessionId": session, "n": 1}})
        answer = self.ask("_stand_in/asked", {"sessionId": session, "n": 2})
        self.text(session, json.dumps(answer.get("result", answer.get("error"))))
        return END


class Murmurs(Agent):
    """Sends something by a method of its own, between two words."""

    def prompt(self, params: Message) -> object:
        session = params["sessionId"]
        self.text(session, "one")
        self.say({"method": "_stand_in/told", "params": {"sessionId": session, "n": 1}})
        self.text(session, "two")
        return END


class AsksForms(Agent):
    """Asks by a form, of a session and of none."""

    def prompt(self, params: Message) -> object:
        form = {
            "mode": "form",
            "message": "Who?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        }
        mine = self.ask("elicitation/create", {**form, "sessionId": params["sessionId"]})
        nobody = self.ask("elicitation/create", {**form, "requestId": 1})
        self.text(params["sessionId"], json.dumps([mine["result"], nobody["result"]]))
        return END


class OneAtATime(Agent):
    """Two sessions: the first waits until the second has its answer."""

    def prompt(self, params: Message) -> object:
        session = params["sessionId"]
        self.text(session, f"begin {words(params)}")
        if words(params) == "first":
            message = self.wait_for("session/prompt")
            self.text(message["params"]["sessionId"], "begin second")
            self.text(session, "first")
            self.text(message["params"]["sessionId"], "second")
            self.say({"id": message["id"], "result": END})
        return END


class Answers(Agent):
    """Keeps its sessions, and resumes only: it sends no history."""

    capabilities: ClassVar[Message] = {"sessionCapabilities": {"resume": {}}}

    def resume(self, params: Message) -> object:
        return {}


class SaysWhere(Agent):
    """Notes its process."""

    def prompt(self, params: Message) -> object:
        self.note(f"pid {os.getpid()}")
        return super().prompt(params)


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[3])]
    globals()[sys.argv[1]](sys.argv[2]).serve()
