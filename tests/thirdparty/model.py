"""A model that sends what its prompt asks for, on loopback: the parts of the chat API of OpenAI and of the Gemini API that agents use.

The script stands in the user's message behind `Play this: `, as a JSON list of steps, one for each time that the model is asked in
a turn: `["say", words]`, `["call", tool, arguments]`, `["fail", status]`, or `["hold", words]`, which begins to answer and then waits for
the agent to hang up. Who gives no script is greeted. What is asked of it is kept.
"""

import json
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

SCRIPT: Final = "Play this: "
TIMEOUT: Final = 60.0
"""Seconds after which a model that holds gives up by itself: longer than any test."""
MODELS: Final = ("fake-model", "other-model")

Json = dict[str, Any]


def script(*steps: list[Any]) -> str:
    """The prompt for these steps."""
    return SCRIPT + json.dumps(steps)


def words_of(message: Json) -> str:
    """Its text; content is a string or a list of parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)


def step_of(messages: list[Json]) -> list[Any]:
    """What is to be done now: each answer of a tool moves the last script on by one."""
    scripted = [n for n, each in enumerate(messages) if each["role"] == "user" and SCRIPT in words_of(each)]
    if not scripted:
        return ["say", "Hello from a model that has no script."]
    text = words_of(messages[scripted[-1]])
    steps, _ = json.JSONDecoder().raw_decode(text, text.rindex(SCRIPT) + len(SCRIPT))
    done = sum(each["role"] == "tool" for each in messages[scripted[-1] :])
    return list(steps[done]) if done < len(steps) else ["say", "The script is over."]


def gemini_messages(contents: list[Json]) -> list[Json]:
    """The session of a request to the Gemini API, as `step_of` reads it."""
    found: list[Json] = []
    for content in contents:
        for part in content.get("parts", ()):
            if "functionResponse" in part:
                found.append({"role": "tool", "content": json.dumps(part["functionResponse"].get("response"))})
            elif "text" in part:
                found.append(
                    {"role": "user" if content.get("role") == "user" else "assistant", "content": part["text"]}
                )
    return found


def pieces(text: str, size: int = 9) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


class Server(ThreadingHTTPServer):
    """Listens on a port of its own. What was asked of it is in `asked`; `hung_up` is set when a holding model was left."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.asked: list[Json] = []
        self.hung_up = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def answers_of_tools(self) -> list[str]:
        """What the tools had to say, as the model received it the last time."""
        return [words_of(each) for each in self.asked[-1]["messages"] if each["role"] == "tool"]


class Answer(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing: stderr belongs to the tests."""

    def do_GET(self) -> None:
        self._json({"object": "list", "data": [{"id": each, "object": "model"} for each in MODELS]})

    def do_POST(self) -> None:
        body: Json = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        gemini = "enerateContent" in self.path
        if self.path.endswith(":countTokens"):
            return self._json({"totalTokens": 10})
        if gemini:
            body["messages"] = gemini_messages(body.get("contents", []))
        self.server.asked.append(body)
        step = step_of(body["messages"])
        try:
            if step[0] == "fail":
                self._json({"error": {"message": "no such chord", "code": step[1], "type": "scripted"}}, step[1])
            elif gemini:
                self._answer_gemini(body, step)
            else:
                self._answer(body, step)
        except (BrokenPipeError, ConnectionResetError):
            self.server.hung_up.set()
        return None

    def _answer_gemini(self, body: Json, step: list[Any]) -> None:
        config = body.get("generationConfig") or {}
        if (
            config.get("responseMimeType") == "application/json"
        ):  # it wants to know which model it should use, or who speaks next
            chosen = {
                "reasoning": "",
                "next_speaker": "user",
                "model_choice": "pro",
                "complexity_reasoning": "",
                "complexity_score": 1,
            }
            step = ["say", json.dumps(chosen)]
        call = {"functionCall": {"name": step[1], "args": step[2]}} if step[0] == "call" else None
        parts = [call] if call is not None else [{"text": piece} for piece in pieces(step[1])]
        if "stream" not in self.path:
            return self._json(self._candidate(*parts, end="STOP"))
        self._begin_stream()
        for part in parts:
            self._event(self._candidate(part))
        if step[0] == "hold":
            return self._wait_to_be_left()
        return self._event(self._candidate(end="STOP"))

    @staticmethod
    def _candidate(*parts: Json, end: str | None = None) -> Json:
        content: Json = {"content": {"role": "model", "parts": list(parts)}, "index": 0}
        usage = {"promptTokenCount": 11, "candidatesTokenCount": 7, "totalTokenCount": 18}
        return {"candidates": [content | ({"finishReason": end} if end else {})], "usageMetadata": usage}

    def _begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def _wait_to_be_left(self) -> None:
        # Readable means that the other end is gone: it has nothing more to say.
        select.select([self.connection], [], [], TIMEOUT)
        self.server.hung_up.set()

    def _answer(self, body: Json, step: list[Any]) -> None:
        kind, subject = step[0], step[1]
        call = f"call-{len(self.server.asked)}"
        if not body.get("stream"):
            message: Json = {"role": "assistant", "content": None if kind == "call" else subject}
            if kind == "call":
                function = {"name": subject, "arguments": json.dumps(step[2])}
                message["tool_calls"] = [{"id": call, "type": "function", "function": function}]
            return self._json(self._chunk(body, "chat.completion", message=message, finish_reason=self._end(kind)))
        self._begin_stream()
        for delta in self._deltas(step, call):
            self._event(self._chunk(body, delta=delta, finish_reason=None))
        if kind == "hold":
            return self._wait_to_be_left()
        self._event(self._chunk(body, delta={}, finish_reason=self._end(kind)))
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        self._event(self._chunk(body) | {"choices": [], "usage": usage})
        return self._send(b"data: [DONE]\n\n")

    @staticmethod
    def _deltas(step: list[Any], call: str) -> Iterator[Json]:
        yield {"role": "assistant", "content": ""}
        if step[0] != "call":
            yield from ({"content": piece} for piece in pieces(step[1]))
            return
        yield {
            "tool_calls": [{"index": 0, "id": call, "type": "function", "function": {"name": step[1], "arguments": ""}}]
        }
        for piece in pieces(json.dumps(step[2])):
            yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}

    @staticmethod
    def _end(kind: str) -> str:
        return "tool_calls" if kind == "call" else "stop"

    def _chunk(self, body: Json, what: str = "chat.completion.chunk", **choice: object) -> Json:
        number = len(self.server.asked)
        named = {"id": f"chat-{number}", "object": what, "created": 1, "model": body.get("model")}
        return named | {"choices": [{"index": 0, **choice}]}

    def _event(self, chunk: Json) -> None:
        self._send(b"data: " + json.dumps(chunk).encode() + b"\n\n")

    def _send(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def _json(self, answer: Json, status: int = 200) -> None:
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self._send(data)


@contextmanager
def model() -> Iterator[Server]:
    """A model that listens until the block is left."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
