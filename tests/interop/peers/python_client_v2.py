"""A client of version 2, written with the experiment of the official Python SDK: `python python_client_v2.py FOLDER AGENT…`.

It drives the agent through a few steps and prints what it saw of each as one line of JSON. It judges nothing. `WORDS` and the steps are
those of `typescript_client_v2.mjs`.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from acp import RequestError

v2: Any = import_module("acp.experimental.v2")
schema: Any = v2.schema

TIMEOUT = 20.0 * float(os.environ.get("PATIENCE", "1"))
"""Seconds for one step."""
WORDS: dict[str, str] = {"say": "hello", "slow": "/slow", **json.loads(os.environ.get("WORDS", "{}"))}
NEEDED = {"permission": "ask", "cancel_asking": "ask_again", "form": "form", "fail": "fail"}

Json = dict[str, Any]


def plain(model: Any) -> Json:
    found: Json = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return found


class Listener:
    def __init__(self) -> None:
        self.updates: list[Json] = []
        self.arrived = asyncio.Condition()
        self.decision: str | None = "allow_once"

    async def note(self, update: Json) -> None:
        async with self.arrived:
            self.updates.append(update)
            self.arrived.notify_all()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with self.arrived:
            await self.arrived.wait_for(holds)

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        await self.note(plain(update))

    async def request_permission(self, session_id: str, title: str, options: list[Any], **more: Any) -> Any:
        found = [plain(option) for option in options]
        await self.note({"permission": {"title": title, "options": found, "subject": more.get("subject")}})
        if self.decision is None:
            await asyncio.Event().wait()
        chosen = next(option["optionId"] for option in found if option["kind"] == self.decision)
        outcome = {"outcome": "selected", "optionId": chosen}
        return schema.RequestPermissionResponse.model_validate({"outcome": outcome})

    async def create_elicitation(self, message: str, mode: str, **more: Any) -> Any:
        form = plain(more["requested_schema"])
        await self.note({"form": form})
        return schema.AcceptElicitationResponse.model_validate(
            {"action": "accept", "content": {next(iter(form["properties"])): "me"}}
        )


class Steps:
    def __init__(self, agent: Any, listener: Listener, folder: str) -> None:
        self.agent = agent
        self.listener = listener
        self.folder = folder
        self.session = ""

    # What was seen.

    @property
    def seen(self) -> list[Json]:
        return self.listener.updates

    def states(self) -> list[str]:
        return [
            each.get("stopReason") or each["state"] for each in self.seen if each.get("sessionUpdate") == "state_update"
        ]

    def agent_text(self) -> str:
        chunks = [each for each in self.seen if each.get("sessionUpdate") == "agent_message_chunk"]
        return "".join(each["content"]["text"] for each in chunks)

    def users(self) -> set[str]:
        return {each["messageId"] for each in self.seen if str(each.get("sessionUpdate")).startswith("user_message")}

    def ended(self, id: str) -> Callable[[], bool]:
        def holds() -> bool:
            places = [n for n, each in enumerate(self.seen) if each.get("messageId") == id]
            return bool(places) and any(each.get("state") == "idle" for each in self.seen[places[0] :])

        return holds

    async def send(self, words: str) -> str:
        response = await self.agent.prompt(session_id=self.session, prompt=[{"type": "text", "text": words}])
        return str(response.message_id)

    async def played(self, words: str) -> Json:
        self.seen.clear()
        id = await self.send(words)
        await self.listener.until(self.ended(id))
        return {"own": id in self.users(), "states": self.states(), "said": self.agent_text()}

    # The steps.

    async def initialize(self) -> Json:
        result = await self.agent.initialize(
            protocol_version=2, info={"name": "py", "version": "1"}, capabilities={"elicitation": {"form": {}}}
        )
        return {"version": result.protocol_version, "name": result.info.name}

    async def new(self) -> Json:
        self.session = (await self.agent.new_session(cwd=self.folder)).session_id
        return {"session": self.session}

    async def prompt(self) -> Json:
        return await self.played(WORDS["say"])

    async def held(self) -> Json:
        self.seen.clear()
        answers = await asyncio.gather(self.send("first"), self.send("second"))
        await self.listener.until(self.ended(answers[1]))
        return {"different": len(set(answers)), "last": self.states()[-1]}

    async def permission(self) -> Json:
        self.listener.decision = "allow_once"
        allowed = await self.played(WORDS["ask"])
        title = next(each["permission"]["title"] for each in self.seen if "permission" in each)
        self.listener.decision = "reject_once"
        rejected = await self.played(WORDS["ask_again"])
        return {"allowed": allowed["states"], "rejected": rejected["states"], "title": title}

    async def cancel_asking(self) -> Json:
        self.listener.decision = None
        self.seen.clear()
        id = await self.send(WORDS["ask_again"])
        await self.listener.until(lambda: any("permission" in each for each in self.seen))
        await self.agent.cancel_session(session_id=self.session)
        await self.listener.until(self.ended(id))
        return {"states": self.states()}

    async def form(self) -> Json:
        found = await self.played(WORDS["form"])
        return {"forms": sum("form" in each for each in self.seen), **found}

    async def fail(self) -> Json:
        try:
            return await self.played(WORDS["fail"])
        except RequestError as error:
            return {"states": ["refused"], "error": str(error)}  # before the prompt was inserted

    async def cancel(self) -> Json:
        self.seen.clear()
        id = await self.send(WORDS["slow"])
        await self.agent.cancel_session(session_id=self.session)
        await self.listener.until(self.ended(id))
        return {"states": self.states()}

    async def resume(self) -> Json:
        self.seen.clear()
        await self.agent.resume_session(session_id=self.session, cwd=self.folder, replay_from={"type": "start"})
        await self.listener.until(lambda: any(each.get("state") == "idle" for each in self.seen))
        return {"state": self.states()[-1], "said": self.agent_text(), "users": len(self.users())}

    async def list(self) -> Json:
        sessions = (await self.agent.list_sessions()).sessions
        return {"listed": self.session in [each.session_id for each in sessions]}

    async def close(self) -> Json:
        return plain(await self.agent.close_session(session_id=self.session))


ORDER = (
    "initialize",
    "new",
    "prompt",
    "held",
    "permission",
    "cancel_asking",
    "form",
    "fail",
    "cancel",
    "resume",
    "list",
    "close",
)


async def main(folder: str, *command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stdin=-1, stdout=-1, limit=1 << 24)
    listener = Listener()
    connection = v2.connect_to_agent(listener, process.stdin, process.stdout)
    steps = Steps(connection, listener, folder)
    for name in ORDER:
        if name in NEEDED and NEEDED[name] not in WORDS:
            continue
        try:
            async with asyncio.timeout(TIMEOUT):
                line = {"step": name, "ok": True, "detail": await getattr(steps, name)()}
        except Exception as error:
            line = {"step": name, "ok": False, "detail": {"error": repr(error), "updates": listener.updates[-3:]}}
        print(json.dumps(line, default=str), flush=True)
    await connection.close()
    if process.stdin is not None:
        process.stdin.close()
    await process.wait()


asyncio.run(main(*sys.argv[1:]))
