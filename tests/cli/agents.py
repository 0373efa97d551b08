"""Agents that `antiphon run` has to cope with: `python -m tests.cli.agents NAME LOG`."""

import json
import os
import subprocess
import sys
from typing import ClassVar

from tests.client.script import CANCELLED, END, Agent, Message, Refusal


class WantsLogin(Agent):
    auth_methods: ClassVar[list[Message]] = [
        {"id": "browser", "name": "In the browser", "description": "opens a page"},
        {"id": "key", "name": "With a key"},
    ]

    def new(self, params: Message) -> object:
        raise Refusal(-32000, "Authentication required")


class TakesTextOnly(Agent):
    """Says which kinds of content came."""

    def prompt(self, params: Message) -> object:
        self.text(params["sessionId"], " ".join(block["type"] for block in params["prompt"]))
        return END


class Writes(Agent):
    """Writes a file that is named by the last word of each prompt, without asking, and notes what it was given. Has no forks."""

    def prompt(self, params: Message) -> object:
        text = "".join(block["text"] for block in params["prompt"])
        self.note(json.dumps([params["sessionId"], text]))
        name = text.split()[-1]
        with open(name, "a", encoding="utf-8") as file:
            file.write(f"{name}\n")
        self.text(params["sessionId"], f"wrote {name}")
        return END


class NeverEnds(Agent):
    """Has a child that outlives it, and ignores everything: neither a cancellation nor the end of its input nor TERM."""

    def prompt(self, params: Message) -> object:
        import signal
        import time

        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(
            [
                sys.executable,
                "-S",
                "-c",
                "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)",
            ],
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert child.stdout is not None
        child.stdout.readline()
        self.note(f"pids {os.getpid()} {child.pid}")
        self.text(params["sessionId"], "working")
        while True:
            time.sleep(60)


class Waits(Agent):
    """Works until it is cancelled."""

    def prompt(self, params: Message) -> object:
        session = params["sessionId"]
        self.update(session, "tool_call", toolCallId="t1", title="Work", kind="execute", status="in_progress")
        self.text(session, "begun")
        self.wait_for("session/cancel")
        return CANCELLED


class ReportsWhenCancelled(Waits):
    """Ends its call and its sentence after it was cancelled."""

    def prompt(self, params: Message) -> object:
        result, session = super().prompt(params), params["sessionId"]
        self.update(session, "tool_call_update", toolCallId="t1", status="failed")
        self.text(session, " and stopped")
        return result


class Noisy(Agent):
    """Writes many lines to stdout that are not messages."""

    def prompt(self, params: Message) -> object:
        sys.stdout.write("".join(f"debug: step {number}\n" for number in range(100_000)))
        return END


class ReportsLate(Agent):
    """Says the end of its message behind the answer, as some do."""

    def prompt(self, params: Message) -> object:
        self.text(params["sessionId"], "Call and ")
        return END

    def after(self, method: str) -> None:
        if method == "session/prompt":
            self.text("s1.1", "response.")


class Draws(Agent):
    """Tries to draw on the screen, with its words and with the title of a call."""

    def prompt(self, params: Message) -> object:
        session = params["sessionId"]
        self.text(session, "red\x1b[31m \x1b]0;title\x07bell\x07 done\n")
        self.update(
            session, "tool_call", toolCallId="t1", title="Evil\x1b[2J\nsecond", status="completed", kind="other"
        )
        return END


class NeverAsks(Agent):
    """Writes a file and runs a command through the client, without a question."""

    def prompt(self, params: Message) -> object:
        session, cwd = params["sessionId"], os.getcwd()
        for method, what in (
            ("fs/write_text_file", {"path": f"{cwd}/written.txt", "content": "mine\n"}),
            ("terminal/create", {"command": "touch", "args": ["touched"]}),
        ):
            answer = self.ask(method, {"sessionId": session, **what})
            self.text(session, f"{method}: {'refused' if 'error' in answer else 'done'}\n")
        return END


class HasModes(Agent):
    """Has the policy's modes, begins in the one that `MODE` names, and edits as its mode says: asked, unasked or not at all.

    The first word of a prompt is the mode that its session is left in.
    """

    capabilities: ClassVar[Message] = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
    ids: ClassVar[list[str]] = ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"]

    def _modes(self) -> Message:
        kept = os.path.join(os.getcwd(), "kept-mode")
        if os.path.exists(kept):
            with open(kept, encoding="utf-8") as file:
                self.mode = file.read()
        else:
            self.mode = os.environ.get("MODE", "default")
        return {"modes": {"currentModeId": self.mode, "availableModes": [{"id": id, "name": id} for id in self.ids]}}

    def new(self, params: Message) -> object:
        return {"sessionId": "s1", **self._modes()}

    def load(self, params: Message) -> object:
        return self._modes()

    resume = load

    def set_mode(self, params: Message) -> object:
        self.mode = params["modeId"]
        return {}

    def prompt(self, params: Message) -> object:
        session, word = params["sessionId"], params["prompt"][0]["text"].split()[0]
        if word in self.ids:
            with open(os.path.join(os.getcwd(), "kept-mode"), "w", encoding="utf-8") as file:
                file.write(word)
            return END
        target = os.path.join(os.getcwd(), "edited.txt")
        call = {
            "title": "Edit",
            "name": "Edit",
            "kind": "edit",
            "rawInput": {"path": target},
            "locations": [{"path": target}],
        }
        options = [("yes", "allow_once"), ("no", "reject_once")]
        unasked = self.mode in ("acceptEdits", "bypassPermissions")
        if unasked or (self.mode == "default" and self.chosen(session, options, **call) == "yes"):
            with open(target, "w", encoding="utf-8") as file:
                file.write("edited")
        self.text(session, f"in {self.mode}")
        return END


class HasOwnModes(Agent):
    """Has modes with names of its own."""

    offer: ClassVar[Message] = {
        "modes": {
            "currentModeId": "ask",
            "availableModes": [
                {"id": "ask", "name": "Ask", "description": "Only answers"},
                {"id": "code", "name": "Code"},
            ],
        }
    }


class KeepsItsMode(HasModes):
    """Refuses to be set to another mode."""

    def set_mode(self, params: Message) -> object:
        raise Refusal(-32602, "Invalid params", "it stays as it is")


class Forgets(Agent):
    """Keeps no session."""

    capabilities: ClassVar[Message] = {"loadSession": True}

    def load(self, params: Message) -> object:
        raise Refusal(-32002, "Resource not found", "no such session")


class Replays(Agent):
    """Sends its history when it is loaded."""

    capabilities: ClassVar[Message] = {"loadSession": True}

    def load(self, params: Message) -> object:
        self.text(params["sessionId"], "OLD WORDS")
        self.update(
            params["sessionId"],
            "tool_call",
            toolCallId="t0",
            title="OLD CALL",
            status="completed",
            kind="edit",
            locations=[{"path": "/old"}],
        )
        return {}


class Leaks(Agent):
    """Prints a secret that it was given."""

    def prompt(self, params: Message) -> object:
        self.write(f"[debug] using key {os.environ.get('MY_API_KEY')} and sk-ant-0123456789abcdef")
        return super().prompt(params)


class Fails(Agent):
    def prompt(self, params: Message) -> object:
        self.text(params["sessionId"], "I begin")
        raise Refusal(-32603, "Internal error", {"details": "the model is tired"})


class SaysTwice(Agent):
    """Says two messages, with a call between them."""

    def prompt(self, params: Message) -> object:
        session = params["sessionId"]
        self.text(session, "Call.")
        self.update(session, "tool_call", toolCallId="t1", title="Listen", kind="other", status="completed")
        self.text(session, "Response.")
        return END


class EndsWhenDenied(Agent):
    """Asks about a call that has a title and no input, and ends the turn as cancelled when it is denied."""

    def prompt(self, params: Message) -> object:
        session = params["sessionId"]
        call = {"toolCallId": "t1", "title": "Open the garage"}
        self.update(session, "tool_call", **call, kind="other", status="pending")
        options = [
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]
        answer = self.ask("session/request_permission", {"sessionId": session, "toolCall": call, "options": options})
        assert answer["result"]["outcome"] == {"outcome": "selected", "optionId": "no"}
        self.update(session, "tool_call_update", toolCallId="t1", status="failed")
        return CANCELLED


class AsksAtOnce(Agent):
    """Asks at once about two calls that it has not announced, and says what came of each; repeats later prompts."""

    def prompt(self, params: Message) -> object:
        if self.times("session/prompt") > 1:
            return super().prompt(params)
        session = params["sessionId"]
        options = [{"optionId": "no", "name": "No", "kind": "reject_once"}]
        for id in (1, 2):
            call = {"toolCallId": f"t{id}", "title": f"Call {id}"}
            request = {"sessionId": session, "toolCall": call, "options": options}
            self.say({"id": id, "method": "session/request_permission", "params": request})
        for _ in range(2):
            self.text(session, f"Call {self.read()['id']} is over. ")
        return END


class Sends(Agent):
    """Sends the updates that stand in a file, asks for permission for each call among them, and ends the turn."""

    def prompt(self, params: Message) -> object:
        session = params["sessionId"]
        with open("updates.jsonl", encoding="utf-8") as lines:
            for update in map(json.loads, lines):
                self.say({"method": "session/update", "params": {"sessionId": session, "update": update}})
                if update["sessionUpdate"] == "tool_call":
                    call = {name: value for name, value in update.items() if name != "sessionUpdate"}
                    options = [{"optionId": "no", "name": "No", "kind": "reject_once"}]
                    self.ask("session/request_permission", {"sessionId": session, "toolCall": call, "options": options})
        self.text(session, "That was all.")
        return END


class Works(Agent):
    """Works in rounds of a request to a model and a tool call: `ROUNDS WAIT` in the prompt, where it waits for a cancellation after round WAIT."""

    def prompt(self, params: Message) -> object:
        session = params["sessionId"]
        rounds, wait = (int(word) for word in params["prompt"][0]["text"].split())
        for number in range(1, rounds + 1):
            self.note(f"request {number}")
            cost = {"amount": number * 0.25, "currency": "USD"}
            self.update(session, "usage_update", used=1000 + number, size=10_000, cost=cost)
            call = {"toolCallId": f"t{number}", "title": "Work"}
            self.update(session, "tool_call", **call, kind="other", status="in_progress")
            self.update(session, "tool_call_update", toolCallId=call["toolCallId"], status="completed")
            if number == wait:
                self.wait_for("session/cancel")
                return CANCELLED
        self.text(session, "done")
        return END


class Answers(Agent):
    """Answers each prompt with the next line of a file, which is a JSON string; notes the last block of each prompt."""

    def prompt(self, params: Message) -> object:
        session = params["sessionId"]
        with open("answers.jsonl", encoding="utf-8") as lines:
            answers = [json.loads(line) for line in lines]
        self.note(json.dumps(["asked", params["prompt"][-1]["text"]]))
        asked = sum(line.startswith('["asked"') for line in self._log.read_text(encoding="utf-8").splitlines())
        self.text(session, answers[asked - 1])
        return END


class TakesSystemPrompt(Agent):
    """Advertises that it adds to its system prompt, and notes what it is given; its sessions can be deleted."""

    capabilities: ClassVar[Message] = {"sessionCapabilities": {"delete": {}}}

    def initialize(self, params: Message) -> object:
        answer = super().initialize(params)
        assert isinstance(answer, dict)
        return {**answer, "_meta": {"antiphon": {"appendSystemPrompt": True}}}

    def new(self, params: Message) -> object:
        self.note(json.dumps(["meta", params.get("_meta")]))
        return super().new(params)

    def delete(self, params: Message) -> object:
        self.note(f"deleted {params['sessionId']}")
        return {}


class IsLimited(Agent):
    """Fails as an engine does whose service limits the rate: the prompt is the `data` of its error."""

    def prompt(self, params: Message) -> object:
        raise Refusal(-32603, "too many requests", json.loads(params["prompt"][0]["text"]))


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2]).serve()
