"""An agent that plays a row to a client: `python -m tests.seeds.player ROW LOG`, with only the standard library, so that it starts fast."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.client.script import Agent, Message, Refusal


class Player(Agent):
    """Says what the row says. Its log has what it receives, and the answers to what it asks."""

    def __init__(self, row: str, log: str) -> None:
        super().__init__(log)
        self.row: Message = json.loads(Path(row).read_text(encoding="utf-8"))
        self.terminal = ""
        self.folder = str(Path(row).parent / "work")

    def _given(self, answers: list[Any], method: str) -> Any:
        """What is answered this time."""
        given = answers[min(self.times(method), len(answers)) - 1]
        if isinstance(given, dict) and "error" in given:
            raise Refusal(*(given["error"][key] for key in ("code", "message", "data") if key in given["error"]))
        return given

    def initialize(self, params: Message) -> object:
        if self.row["hello"] is None:
            return {**super().initialize(params), "agentCapabilities": {"sessionCapabilities": {"resume": {}}}}  # type: ignore[dict-item]
        return self._given([self.row["hello"]], "initialize")

    def new(self, params: Message) -> object:
        return {"sessionId": f"s-{self.times('session/new')}", **self._given(self.row["new"], "session/new")}

    def resume(self, params: Message) -> object:
        return {}

    def set_mode(self, params: Message) -> object:
        self.note("chosen " + json.dumps(params))
        return {}

    def set_model(self, params: Message) -> object:
        self.note("chosen " + json.dumps(params))
        return None

    def set_config_option(self, params: Message) -> object:
        self.note("chosen " + json.dumps(params))
        return {"configOptions": []}

    def prompt(self, params: Message) -> object:
        end = self._given(self.row["ends"], "session/prompt")
        for played in self.row["plays"]:
            words = {"$SESSION": params["sessionId"], "$CWD": self.folder, "$TERMINAL": self.terminal}
            text = json.dumps(played)
            for word, meant in words.items():
                text = text.replace(word, meant)
            filled = json.loads(text)
            if "id" not in filled:
                self.say({"method": "session/update", "params": filled})
                continue
            self.say(filled)
            while True:
                answer = self.read()
                if answer.get("id") == filled["id"] and "method" not in answer:
                    break
                self._queue.append(answer)
            result = answer.get("result")
            if isinstance(result, dict):
                self.terminal = result.get("terminalId", self.terminal)
            self.note("answer " + json.dumps(answer.get("result", answer.get("error"))))
        return end


if __name__ == "__main__":
    Player(sys.argv[1], sys.argv[2]).serve()
