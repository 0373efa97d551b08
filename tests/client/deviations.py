"""Agents that deviate, each in one way that was seen in the wild: `python -m tests.client.deviations NAME LOG`."""

import os
import signal
import sys
import threading
from typing import ClassVar

from tests.client.script import CANCELLED, END, Agent, Message, Refusal


class Models(Agent):
    """Has `models` and `session/set_model`, which no schema has any more."""

    offer: ClassVar[Message] = {
        "models": {
            "availableModels": [{"modelId": "small", "name": "Small"}, {"modelId": "big", "name": "Big"}],
            "currentModelId": "small",
        }
    }

    def set_model(self, params: Message) -> object:
        self.note(f"model {params['modelId']}")
        return {}


class Unstable(Agent):
    """Sends unconditionally what only the unstable schema has."""

    capabilities: ClassVar[Message] = {
        "sessionCapabilities": {"fork": {}, "title": {}, "systemPrompt": {"mode": {}}},
        "providers": {},
        "mcpCapabilities": {"acp": True},
    }

    def prompt(self, params: Message) -> object:
        return {**END, "usage": {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}}


class OddFields(Agent):
    """Sends fields that no schema has."""

    capabilities: ClassVar[Message] = {
        "loadSession": True,
        "sessionCapabilities": {"resume": {}, "subagents": {"x": 1}},
    }
    auth_methods: ClassVar[list[Message]] = [{"id": "key", "name": "Key", "type": "env_var", "vars": [{"name": "KEY"}]}]

    def load(self, params: Message) -> object:
        self.update(params["sessionId"], "agent_message_chunk", content={"type": "text", "text": "old"}, timestamp=1)
        return {"sessionId": params["sessionId"]}

    resume = load


class VendorMethods(Agent):
    """Sends updates and requests of unknown kinds, some before there is a session."""

    def after(self, method: str) -> None:
        if method == "initialize":
            self.say({"method": "_auth/status_update", "params": {"ok": True}})
            self.say({"method": "qwen/notify/session/mode-update", "params": {}})

    def prompt(self, params: Message) -> object:
        asked = {"sessionId": params["sessionId"], "toolCall": {"toolCallId": "t"}, "options": []}
        permission = params["prompt"][0]["text"] == "permission"
        answer = self.ask("session/request_permission" if permission else "craft/drainMidTurnQueue", asked)
        self.text(params["sessionId"], str(answer["error"]["code"]))
        return END


class EarlyUpdates(Agent):
    """Sends updates of a session before the client knows its id; replays a fork's history before the fork's answer."""

    capabilities: ClassVar[Message] = {"sessionCapabilities": {"fork": {}}}

    def new(self, params: Message) -> object:
        self.update("early", "available_commands_update", availableCommands=[{"name": "x", "description": "X"}])
        self.update("early", "usage_update", used=1, size=10)
        return {"sessionId": "early"}

    def fork(self, params: Message) -> object:
        self.update("forked", "user_message_chunk", content={"type": "text", "text": "hi"})
        self.text("forked", "hello")
        return {"sessionId": "forked"}


class AsksFirst(Agent):
    """Asks permission for a call that it never announced, then patches it; the order of the options means nothing."""

    def prompt(self, params: Message) -> object:
        session = params["sessionId"]
        options = [
            ("always", "allow_always"),
            ("session", "allow_always"),
            ("no", "reject_once"),
            ("yes", "allow_once"),
        ]
        chosen = self.chosen(session, options)
        self.update(session, "tool_call_update", toolCallId="t1", title="Run", status="completed")
        self.text(session, chosen)
        return END


class AsksStrangely(Agent):
    """Offers an option of an unknown kind, and none that rejects."""

    def prompt(self, params: Message) -> object:
        chosen = self.chosen(params["sessionId"], [("forever", "allow_forever"), ("yes", "allow_once")])
        self.text(params["sessionId"], chosen)
        return END


class AnnouncesTwice(Agent):
    def prompt(self, params: Message) -> object:
        self.update(params["sessionId"], "tool_call", toolCallId="t1", title="Terminal")
        self.update(params["sessionId"], "tool_call", toolCallId="t1", title="ls -l", kind="execute")
        self.update(params["sessionId"], "tool_call_update", toolCallId="t1", status="completed")
        return END


class StrangeTerminals(Agent):
    """Shows a terminal that was not created, and requests its output."""

    def prompt(self, params: Message) -> object:
        content = [{"type": "terminal", "terminalId": "call_77"}]
        meta = {"terminal_info": {"terminal_id": "call_77"}}
        self.update(params["sessionId"], "tool_call", toolCallId="t1", title="ls", content=content, _meta=meta)
        answer = self.ask("terminal/output", {"sessionId": params["sessionId"], "terminalId": "call_77"})
        self.text(params["sessionId"], str(answer["error"]["code"]))
        return END


class WritesUnasked(Agent):
    """Writes a file although the client did not offer it."""

    def prompt(self, params: Message) -> object:
        path = params["prompt"][0]["text"]
        answer = self.ask("fs/write_text_file", {"sessionId": params["sessionId"], "path": path, "content": "x"})
        self.text(params["sessionId"], str(answer["error"]["code"]))
        return END


class ReadsEarly(Agent):
    """Reads its instructions before it answers `session/new`."""

    def new(self, params: Message) -> object:
        answer = self.ask("fs/read_text_file", {"sessionId": "s", "path": params["cwd"] + "/AGENTS.md"})
        self.note("read " + answer["result"]["content"])
        return {"sessionId": "s"}


class TerminalLogin(Agent):
    """Wants a sign-in, and offers one in a terminal although the client did not advertise that."""

    auth_methods: ClassVar[list[Message]] = [
        {"id": "tty", "name": "Terminal", "type": "terminal", "args": ["login"]},
        {"id": "key", "name": "Key"},
        {"id": "new", "name": "From tomorrow", "type": "retina"},
    ]
    signed_in = False

    def new(self, params: Message) -> object:
        if not self.signed_in:
            raise Refusal(-32000, "Authentication required")
        return super().new(params)

    def authenticate(self, params: Message) -> object:
        self.note(f"authenticate {params['methodId']}")
        if params["methodId"] == "tty":
            raise Refusal(-32603, "no terminal here")
        self.signed_in = True
        return {}


class LateLogin(TerminalLogin):
    """Wants the sign-in for the prompt, not for the session."""

    def new(self, params: Message) -> object:
        return {"sessionId": "s"}

    def prompt(self, params: Message) -> object:
        if not self.signed_in:
            raise Refusal(-32000, "Authentication required")
        return super().prompt(params)


class NeverSignedIn(TerminalLogin):
    """Takes the sign-in and does not believe it."""

    def authenticate(self, params: Message) -> object:
        return {}


class ModeAsText(Agent):
    """Reports a change of mode as text, outside of any turn."""

    offer: ClassVar[Message] = {
        "modes": {"currentModeId": "default", "availableModes": [{"id": "plan", "name": "Plan"}]}
    }

    def set_mode(self, params: Message) -> object:
        self.text(params["sessionId"], f"[MODE_UPDATE] {params['modeId']}")
        return None


class OddCodes(Agent):
    """Refuses with the HTTP status of what is behind it, with all sorts of `data`."""

    def prompt(self, params: Message) -> object:
        match params["prompt"][0]["text"]:
            case "400":
                raise Refusal(400, "API key not valid")
            case "list":
                raise Refusal(-32602, "Invalid params", ["cwd", 1])
            case "text":
                raise Refusal(-32603, "Internal error", "the cause")
            case "object":
                raise Refusal(-32603, "Internal error", {"details": "the cause"})
            case _:
                return END  # without a word


class ForgetsOpenly(Agent):
    """The session expires; every way to open it again is refused with another code."""

    capabilities: ClassVar[Message] = {"loadSession": True, "sessionCapabilities": {"resume": {}}}

    def resume(self, params: Message) -> object:
        raise Refusal(-32602, "Session not found")

    def load(self, params: Message) -> object:
        raise Refusal(-32603, "Internal error")

    def prompt(self, params: Message) -> object:
        if self.times("session/new") == 1:
            raise Refusal(-32003, "Session expired")
        self.text(params["sessionId"], params["sessionId"])
        return END


class LoadedAlready(Agent):
    capabilities: ClassVar[Message] = {"loadSession": True}

    def load(self, params: Message) -> object:
        raise Refusal(-32602, "Session is already loaded")


class IgnoresEof(Agent):
    def end_of_input(self) -> None:
        self.note("eof")
        threading.Event().wait()


class IgnoresEverything(IgnoresEof):
    def initialize(self, params: Message) -> object:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self.note(f"pid {os.getpid()}")
        return super().initialize(params)


class CancelsOnRejection(Agent):
    def prompt(self, params: Message) -> object:
        outcome = self.permission(params["sessionId"], [("yes", "allow_once"), ("no", "reject_once")], title="rm")
        return CANCELLED if outcome.get("optionId") == "no" else END


class IdlessErrors(Agent):
    """Sends errors that answer nothing: without an id, with `null`, the keys in another order."""

    def prompt(self, params: Message) -> object:
        self.write('{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"}}')
        self.write('{"error":{"code":-32700,"message":"Parse error"},"id":null,"jsonrpc":"2.0"}')
        return super().prompt(params)


class Nulls(Agent):
    """Answers with nothing where the schema wants something."""

    capabilities: ClassVar[Message] = {"sessionCapabilities": {"list": {}, "resume": {}, "close": {}, "delete": {}}}
    offer: ClassVar[Message] = {
        "configOptions": [
            {
                "id": "speed", "name": "Speed", "type": "select", "currentValue": "slow",
                "options": [{"value": "slow", "name": "Slow"}, {"value": "fast", "name": "Fast"}],
            },
            {"id": "loud", "name": "Loud", "type": "boolean", "currentValue": False},
        ]
    }  # fmt: skip

    def list(self, params: Message) -> object:
        return None

    def resume(self, params: Message) -> object:
        return None

    def delete(self, params: Message) -> object:
        return None

    def close(self, params: Message) -> object:
        return None

    def set_config_option(self, params: Message) -> object:
        return {}


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2]).serve()
