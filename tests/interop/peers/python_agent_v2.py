"""An agent of version 2, written with the experiment of the official Python SDK: `python python_agent_v2.py`.

It plays what the words of the prompt ask for: /tool (a permission request and an upserted call), /ask (a form), /slow (until it is
cancelled), /fail, or a small answer. Prompts that come while it works are held. It is the same agent as `typescript_agent_v2.mjs`.
"""

import asyncio
from importlib import import_module
from typing import Any

v2: Any = import_module("acp.experimental.v2")
schema: Any = v2.schema

Json = dict[str, Any]
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
FORM = {"type": "object", "properties": {"name": {"type": "string", "title": "Your name"}}, "required": ["name"]}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


class Session:
    def __init__(self, id: str, cwd: str) -> None:
        self.id = id
        self.cwd = cwd
        self.mode = "ask"
        self.state = "idle"
        self.history: list[Json] = []
        self.work = asyncio.Lock()
        self.cancelled = asyncio.Event()

    def options(self) -> list[Json]:
        options = [{"value": "ask", "name": "Ask"}, {"value": "go", "name": "Go"}]
        return [
            {
                "configId": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": self.mode,
                "options": options,
            }
        ]  # fmt: skip


class Singer:
    def __init__(self) -> None:
        self.client: Any = None
        self.sessions: dict[str, Session] = {}
        self.count = 0
        self.tasks: set[asyncio.Task[None]] = set()

    def on_connect(self, connection: Any) -> None:
        self.client = connection

    def next(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    async def initialize(self, protocol_version: int, info: Any, **more: Any) -> Any:
        return schema.InitializeResponse.model_validate(
            {
                "protocolVersion": v2.PROTOCOL_VERSION,
                "info": {"name": "python-v2", "version": "1"},
                "capabilities": {"session": {"mcp": {"stdio": {}}}},
            }
        )

    async def new_session(self, cwd: str, **more: Any) -> Any:
        session = Session(self.next("s"), cwd)
        self.sessions[session.id] = session
        return schema.NewSessionResponse.model_validate({"sessionId": session.id, "configOptions": session.options()})

    async def list_sessions(self, **more: Any) -> Any:
        found = [{"sessionId": each.id, "cwd": each.cwd} for each in self.sessions.values()]
        return schema.ListSessionsResponse.model_validate({"sessions": found})

    async def resume_session(self, session_id: str, replay_from: Any = None, **more: Any) -> Any:
        session = self.sessions[session_id]
        if replay_from is not None:
            for update in list(session.history):
                await self.send(session, update, kept=False)
        await self.state(session, session.state)
        return schema.ResumeSessionResponse.model_validate({"configOptions": session.options()})

    async def close_session(self, session_id: str, **more: Any) -> Any:
        self.sessions[session_id].cancelled.set()
        return schema.CloseSessionResponse()

    async def set_config_option(self, config_id: str, session_id: str, value: Any, **more: Any) -> Any:
        session = self.sessions[session_id]
        session.mode = value
        await self.send(
            session, {"sessionUpdate": "config_option_update", "configOptions": session.options()}, kept=False
        )
        return schema.SetSessionConfigOptionResponse.model_validate({"configOptions": session.options()})

    async def cancel_session(self, session_id: str, **more: Any) -> None:
        self.sessions[session_id].cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **more: Any) -> Any:
        session = self.sessions[session_id]
        await session.work.acquire()  # held until the one before has ended
        session.cancelled.clear()
        id = self.next("u")
        content = [block.model_dump(mode="json", by_alias=True, exclude_unset=True) for block in prompt]
        task = asyncio.ensure_future(self.answer(session, id, content))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return schema.PromptResponse.model_validate({"messageId": id})

    async def answer(self, session: Session, id: str, content: list[Json]) -> None:
        await self.send(session, {"sessionUpdate": "user_message", "messageId": id, "content": content})
        await self.state(session, "running")
        try:
            reason = await self.play(session, "".join(block.get("text", "") for block in content))
        except RuntimeError:
            reason = "error"
        await self.state(session, "idle", stopReason=reason)
        session.work.release()

    async def play(self, session: Session, words: str) -> str:
        if "/fail" in words:
            raise RuntimeError("out of ink")
        message = {"sessionUpdate": "agent_message_chunk", "messageId": self.next("a")}
        if "/slow" in words:
            await self.send(session, {**message, "content": text("slowly ")})
            await session.cancelled.wait()
            return "cancelled"
        if "/ask" in words:
            await self.state(session, "requires_action")
            answer = await self.client.create_elicitation(
                message="Who are you?", mode="form", session_id=session.id, requested_schema=FORM
            )
            await self.state(session, "running")
            await self.send(session, {**message, "content": text(f"you are {answer.content['name']}")})
            return "end_turn"
        if "/tool" in words:
            call = {"toolCallId": self.next("t"), "title": "Write poem", "kind": "edit", "status": "pending"}
            await self.state(session, "requires_action")
            subject = {"type": "tool_call", "toolCall": call}
            given = await self.client.request_permission(
                session_id=session.id, title="May I write?", options=OPTIONS, subject=subject
            )
            if session.cancelled.is_set():
                return "cancelled"
            await self.state(session, "running")
            allowed = getattr(given.outcome, "option_id", None) == "yes"
            status = "completed" if allowed else "cancelled"
            await self.send(
                session, {"sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"], "status": status}
            )
            await self.send(session, {**message, "content": text("written" if allowed else "not written")})
            return "end_turn"
        await self.send(session, {**message, "content": text("you said ")})
        await self.send(session, {**message, "content": text(words)})
        return "end_turn"

    async def state(self, session: Session, state: str, **more: str) -> None:
        session.state = state
        await self.send(session, {"sessionUpdate": "state_update", "state": state, **more}, kept=False)

    async def send(self, session: Session, update: Json, *, kept: bool = True) -> None:
        if kept:
            session.history.append(update)
        params = schema.UpdateSessionNotification.model_validate({"sessionId": session.id, "update": update})
        await self.client.session_update(session_id=session.id, update=params.update)


asyncio.run(v2.run_agent(Singer()))
