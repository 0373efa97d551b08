"""Scenes for the scripted agent: updates, and a session in which they were sent through a gateway that runs."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.gateway.processes import Gateway, call, running
from tests.limits import limit

__all__ = ["Gate", "Stage", "agent_text", "end_call", "playing", "shown", "start_call", "thought", "whole_call"]

SCRIPTED: Final = Path(__file__).with_name("scripted_agent.py")


def shown(text: str) -> list[dict[str, Any]]:
    """Return text as the content of a call."""
    return [{"type": "content", "content": {"type": "text", "text": text}}]


def agent_text(text: str, **more: Any) -> dict[str, Any]:
    """Return a piece of the agent's message."""
    return {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}, **more}


def thought(text: str) -> dict[str, Any]:
    """Return a piece of a thought."""
    return {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": text}}


def start_call(id: str, title: str, kind: str = "other", **more: Any) -> dict[str, Any]:
    """Return the announcement of a call that runs."""
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": id,
        "title": title,
        "kind": kind,
        "status": "in_progress",
        **more,
    }


def end_call(id: str, status: str = "completed", **more: Any) -> dict[str, Any]:
    """Return the end of a call."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, **more}


def whole_call(id: str, title: str, kind: str = "other", **more: Any) -> list[dict[str, Any]]:
    """Return a call that is announced and done at once."""
    return [start_call(id, title, kind), end_call(id, **more)]


class Stage:
    """A gateway whose agent plays scenes."""

    def __init__(self, gateway: Gateway, file: Path) -> None:
        self.gateway = gateway
        self._file = file

    def play(self, *scenes: Sequence[dict[str, Any]], wait: bool = True) -> str:
        """Play scenes in a new session, a turn each, and return its address in the page."""
        names = {f"scene {number}": list(scene) for number, scene in enumerate(scenes, 1)}
        self._file.write_text(json.dumps(names), encoding="utf-8")
        with self.gateway.open_socket() as opened:
            call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
            made = call(opened, 1, "session/new", cwd=str(self.gateway.directory / "root"), mcpServers=[])
            id = made["result"]["sessionId"]
            for number, name in enumerate(names, 2):
                params = {"sessionId": id, "prompt": [{"type": "text", "text": name}]}
                request = {"jsonrpc": "2.0", "id": number, "method": "session/prompt", "params": params}
                opened.send(json.dumps(request))
                while wait and (message := json.loads(opened.recv(timeout=limit()))).get("id") != number:
                    pass
                assert not wait or "result" in message, message
            rows = call(opened, 99, "_antiphon/sessions/list")["result"]["sessions"]
        [agent] = [row["agent"] for row in rows if row["sessionId"] == id]
        return f"/session/{agent}/{id}"

    def gate(self, name: str = "gate") -> "Gate":
        """Make a gate for a scene."""
        return Gate(self._file.with_name(name))


class Gate:
    """A place in a scene at which the agent waits."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self._path = path

    @property
    def step(self) -> dict[str, Any]:
        """The step of the scene."""
        return {"gate": str(self._path)}

    def open(self) -> None:
        """Let the agent go on, once it is there."""
        self._path.write_text("go", encoding="utf-8")


@contextmanager
def playing(directory: Path) -> Iterator[Stage]:
    """Start a gateway with the scripted agent."""
    file = directory / "scenes.json"
    home = {name: str(directory / "home") for name in ("HOME", "XDG_CONFIG_HOME")}
    with running(directory, env=home, agent=(sys.executable, str(SCRIPTED), str(file))) as gateway:
        yield Stage(gateway, file)
