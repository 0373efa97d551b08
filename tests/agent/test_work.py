"""What an agent does beside its answers: calls that are cancelled alone, background work, work without a prompt, and ids of messages."""

import asyncio
from typing import Any

import pytest

from antiphon.agent import work
from antiphon.agent.agent import Agent
from antiphon.agent.session import AgentSession
from antiphon.agent.turn import AgentTurn
from antiphon.errors import Code, RequestError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.extension import CANCEL_TOOL_CALL
from tests.agent.editor import playing
from tests.agent.raw_client import Json, RawClient, served


class Worker(Agent):
    """An agent that does what the prompt names. Its work goes on until `go` is set."""

    def __init__(self, **options: Any) -> None:
        super().__init__("worker", **options)
        self.go = asyncio.Event()
        self.log: list[str] = []
        self.cleaned_up = asyncio.Event()

    async def prompt(self, turn: AgentTurn) -> v1.StopReason | None:
        match turn.text.split():
            case ["call"]:
                await self.call(turn)
            case ["background"]:
                turn.session.start_task(self.background(turn.session))
            case ["alone", *how]:
                turn.session.start_task(self.alone(turn.session, *how))
            case ["ids"]:
                await turn.say(turn.message_id, message_id="a")
                await turn.think("b", message_id="b")
                await turn.say("!", message_id="a")
                self.log.append(str(turn.meta))
            case ["ask"]:
                async with turn.tool("Ask") as call:
                    self.log.append(str(bool(await call.permitted())))
            case _:
                await self.go.wait()
        return None

    async def call(self, turn: AgentTurn) -> None:
        async with turn.tool("Build", v1.ToolKind.EXECUTE) as call:
            await call.start()
            async with call.cancellable():
                await turn.say("working ")
                try:
                    await self.go.wait()
                finally:
                    self.log.append("cleaned up")
            await call.show("stopped" if call.cancelled else "done")
        await turn.say("and on")

    async def background(self, session: AgentSession) -> None:
        try:
            async with session.background("Watch", input={"files": 3}) as call:
                await self.go.wait()
            self.log.append(f"cancelled: {call.cancelled}")
        finally:
            self.cleaned_up.set()

    async def alone(self, session: AgentSession, how: str = "") -> None:
        await session.wait_idle()
        async with session.work() as turn:
            await turn.say("by myself")
            await self.go.wait()
            if how == "fail":
                raise RequestError(-32099, "out of ink")
            if how == "break":
                raise ValueError("secret")
        self.log.append("after")


def call_states(client: RawClient, id: str) -> list[str]:
    return [update["status"] for update in client.updates if update.get("toolCallId") == id and "status" in update]


# One tool call is cancelled.


async def test_the_client_cancels_one_tool_call_and_the_turn_goes_on() -> None:
    agent = Worker()
    async with served(agent) as client:
        await client.prompt("call")
        offered = await client.update(sessionUpdate="tool_call_update", capabilities={"cancel": {}})
        await client.update(sessionUpdate="agent_message_chunk")
        assert await client.ask("tool_call/cancel", toolCallId=offered["toolCallId"]) == {}
        final = await client.update(sessionUpdate="tool_call_update", status="cancelled")
        idle = await client.update(sessionUpdate="state_update", state="idle")
        assert final["toolCallId"] == offered["toolCallId"] and idle["stopReason"] == "end_turn"
        texts = [each["content"]["text"] for each in client.updates if each["sessionUpdate"] == "agent_message_chunk"]
        assert texts == ["working ", "and on"] and agent.log == ["cleaned up"]
        shown = [update["content"] for update in client.updates if "toolCallId" in update and "content" in update]
        assert [item["content"]["text"] for item in shown[-1]] == ["stopped"]


async def test_a_call_that_ends_by_itself_can_be_cancelled_no_more() -> None:
    agent = Worker()
    async with served(agent, provoked="cancel.offered") as client:
        await client.prompt("call")
        offered = await client.update(sessionUpdate="tool_call_update", capabilities={"cancel": {}})
        agent.go.set()
        await client.update(sessionUpdate="tool_call_update", status="completed")
        assert {"toolCallId": offered["toolCallId"], "sessionUpdate": "tool_call_update", "capabilities": {}} in (
            client.updates
        )
        for id in (offered["toolCallId"], "another"):
            refused = await client.response(await client.send("tool_call/cancel", toolCallId=id))
            assert refused["error"]["code"] == Code.INVALID_PARAMS and id in refused["error"]["data"]


async def test_a_cancelled_turn_ends_the_call_and_is_not_swallowed_by_the_block() -> None:
    agent = Worker()
    async with served(agent) as client:
        await client.prompt("call")
        offered = await client.update(sessionUpdate="tool_call_update", capabilities={"cancel": {}})
        await client.notify("session/cancel")
        idle = await client.update(sessionUpdate="state_update", state="idle")
        assert idle["stopReason"] == "cancelled"
        assert call_states(client, offered["toolCallId"])[-1] == "failed"
        assert not any(update.get("content", {}) == "and on" for update in client.updates)


async def test_both_at_once_cancel_the_turn() -> None:
    agent = Worker()
    async with served(agent) as client:
        await client.prompt("call")
        offered = await client.update(sessionUpdate="tool_call_update", capabilities={"cancel": {}})
        cancel = await client.send("tool_call/cancel", toolCallId=offered["toolCallId"])
        await client.notify("session/cancel")
        idle = await client.update(sessionUpdate="state_update", state="idle")
        assert idle["stopReason"] == "cancelled"
        assert any(frame.get("id") == cancel and "result" in frame for frame in client.frames)


async def test_a_call_that_is_cancelled_in_its_last_step_leaves_no_cancellation_behind() -> None:
    agent = Agent("quick")

    @agent.on
    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("Quick") as call, call.cancellable() as part:
            part.cancel()
        await asyncio.sleep(0)
        await turn.say(f"cancelled: {call.cancelled}")

    async with served(agent) as client:
        await client.prompt("go")
        idle = await client.update(sessionUpdate="state_update", state="idle")
        assert idle["stopReason"] == "end_turn"
        said = [each for each in client.updates if each["sessionUpdate"] == "agent_message_chunk"]
        assert [each["content"]["text"] for each in said] == ["cancelled: True"]


# Background work.


async def test_background_work_is_listed_from_its_first_report_to_its_last() -> None:
    agent = Worker()
    async with served(agent) as client:
        await client.prompt("background")
        listed = await client.update(sessionUpdate="state_update", state="idle")
        while not listed.get("background"):
            listed = await client.update(sessionUpdate="state_update")
        (work,) = listed["background"]
        assert work["type"] == "tool_call" and call_states(client, work["toolCallId"])[-1] == "in_progress"
        await client.prompt("call")  # another turn beside it, whose states all have the list
        running = next(state for state in reversed(client.states) if state["state"] == "running")
        assert running["background"] == [work]
        agent.go.set()
        await client.update(sessionUpdate="state_update", background=[])
        await agent.cleaned_up.wait()
        assert call_states(client, work["toolCallId"])[-1] == "completed"


async def test_the_client_cancels_background_work_alone_and_session_cancel_does_not() -> None:
    agent = Worker()
    async with served(agent) as client:
        await client.prompt("background")
        offered = await client.update(sessionUpdate="tool_call_update", capabilities={"cancel": {}})
        await client.notify("session/cancel")
        await client.ask("session/list")  # the cancellation has been handled
        assert call_states(client, offered["toolCallId"])[-1] == "in_progress"
        await client.ask("tool_call/cancel", toolCallId=offered["toolCallId"])
        await client.update(sessionUpdate="state_update", background=[])
        assert call_states(client, offered["toolCallId"])[-1] == "cancelled" and agent.log == ["cancelled: True"]


async def test_closing_a_session_ends_its_background_work_before_the_response() -> None:
    agent = Worker()
    async with served(agent) as client:
        await client.prompt("background")
        offered = await client.update(sessionUpdate="tool_call_update", capabilities={"cancel": {}})
        await client.ask("session/close")
        assert call_states(client, offered["toolCallId"])[-1] == "cancelled"
        assert client.states[-1]["background"] == [] and agent.cleaned_up.is_set() and not agent.log


async def test_a_client_that_is_gone_ends_the_background_work() -> None:
    agent = Worker()
    async with served(agent) as client:
        await client.prompt("background")
        await client.update(sessionUpdate="tool_call_update", capabilities={"cancel": {}})
    assert agent.cleaned_up.is_set()


async def test_a_resumed_session_reports_its_background_work() -> None:
    class Resumed(Worker):
        def resume_session(self, session: AgentSession) -> None:
            session.start_task(self.background(session))

    agent = Resumed()
    async with served(agent) as client:
        await client.prompt("background")
        await client.update(sessionUpdate="tool_call_update", capabilities={"cancel": {}})
        await client.ask("session/resume", cwd="/")
        assert client.states[-1] == {"sessionUpdate": "state_update", "state": "idle", "background": []}
        await client.update(sessionUpdate="tool_call_update", capabilities={"cancel": {}})


# Work without a prompt.


async def test_work_without_a_prompt_is_running_and_then_idle() -> None:
    agent = Worker()
    async with served(agent) as client:
        await client.prompt("alone")
        await client.update(sessionUpdate="state_update", state="idle")
        before = len(client.states)
        await client.update(sessionUpdate="agent_message_chunk")
        agent.go.set()
        await client.update(sessionUpdate="state_update", state="idle")
        assert [(each["state"], each.get("stopReason")) for each in client.states[before:]] == [
            ("running", None),
            ("idle", "end_turn"),
        ]


@pytest.mark.parametrize(
    ("how", "error"),
    [
        ("fail", {"code": -32099, "message": "out of ink"}),
        ("break", {"code": -32603, "message": "Internal error"}),
    ],
)
async def test_work_that_fails_is_an_error_without_the_details_of_a_bug(how: str, error: Json) -> None:
    agent = Worker()
    async with served(agent) as client:
        await client.prompt(f"alone {how}")
        await client.update(sessionUpdate="agent_message_chunk")
        agent.go.set()
        idle = await client.update(sessionUpdate="state_update", state="idle")
        assert (idle["stopReason"], idle["error"]) == ("error", error)


async def test_session_cancel_ends_work_without_a_prompt() -> None:
    agent = Worker()
    async with served(agent) as client:
        await client.prompt("alone")
        await client.update(sessionUpdate="agent_message_chunk")
        await client.notify("session/cancel")
        idle = await client.update(sessionUpdate="state_update", state="idle")
        assert idle["stopReason"] == "cancelled" and agent.log == ["after"]


async def test_a_prompt_beside_such_work_shares_its_idle() -> None:
    agent = Worker()
    async with served(agent) as client:
        await client.prompt("alone")
        await client.update(sessionUpdate="agent_message_chunk")
        await client.prompt("ids")
        await client.ask("session/list")
        assert client.states[-1]["state"] == "running"  # the prompt has ended, the work has not
        agent.go.set()
        idle = await client.update(sessionUpdate="state_update", state="idle")
        assert idle["stopReason"] == "end_turn"


# States and ids.


async def test_a_permission_request_shows_that_the_user_has_to_act() -> None:
    agent = Worker()
    async with served(agent) as client:
        await client.prompt("ask")
        asked = await client.until(lambda frame: frame.get("method") == "session/request_permission")
        assert client.states[-1]["state"] == "requires_action"
        await client.answer(asked["id"], {"outcome": {"outcome": "selected", "optionId": "allow"}})
        await client.update(sessionUpdate="state_update", state="idle")
        assert [each["state"] for each in client.states] == ["running", "requires_action", "running", "idle"]


async def test_a_permission_request_of_background_work_does_not_stop_the_foreground() -> None:
    class Asking(Worker):
        async def background(self, session: AgentSession) -> None:
            async with session.background("Watch") as call:
                await self.go.wait()
                self.log.append(str(bool(await call.permitted())))

    agent = Asking()
    async with served(agent) as client:
        await client.prompt("background")
        offered = await client.update(sessionUpdate="tool_call_update", capabilities={"cancel": {}})
        prompt = await client.send("session/prompt", prompt=[{"type": "text", "text": "call"}])
        await client.response(prompt)
        agent.go.set()
        asked = await client.until(lambda frame: frame.get("method") == "session/request_permission")
        assert asked["params"]["subject"]["toolCall"]["toolCallId"] == offered["toolCallId"]
        await client.notify("session/cancel")  # which is not about it
        await client.answer(asked["id"], {"outcome": {"outcome": "selected", "optionId": "allow"}})
        await client.update(sessionUpdate="state_update", background=[])
        assert "requires_action" not in [each["state"] for each in client.states] and "True" in agent.log


async def test_prompts_and_messages_have_the_ids_that_the_agent_knows() -> None:
    agent = Worker()
    async with served(agent) as client:
        for _ in range(2):
            id = await client.prompt("ids")
            said = await client.update(sessionUpdate="agent_message_chunk", messageId="a")
            assert said["content"]["text"] == id
            await client.update(sessionUpdate="agent_thought_chunk", messageId="b")
            await client.update(sessionUpdate="state_update", state="idle")
        assert agent.log == ["{}"] * 2  # nothing of ours in the `_meta` of the prompt


# Clients of version 1.


async def test_a_client_of_version_1_gets_what_version_1_has_and_nothing_else() -> None:
    agent = Worker()
    async with playing(agent) as editor:
        session = await editor.open()
        agent.go.set()
        for text in ("call", "background", "alone", "ids"):
            await editor.prompt(session, text)
        await agent.cleaned_up.wait()
        await editor.until("by myself")
        assert {frame["method"] for frame in editor.received if "method" in frame} == {"session/update"}
        assert not [frame for frame in editor.received if "_meta" in str(frame)]
        kinds = {update["sessionUpdate"] for update in editor.updates()}
        assert kinds == {"tool_call", "tool_call_update", "agent_message_chunk", "agent_thought_chunk"}
        with pytest.raises(RequestRefused) as caught:
            await editor.connection.request(CANCEL_TOOL_CALL, {"sessionId": session, "toolCallId": "call-1"})
        assert caught.value.code == Code.METHOD_NOT_FOUND


async def test_a_client_of_version_1_cancels_background_work_while_no_prompt_runs() -> None:
    agent = Worker()
    async with playing(agent) as editor:
        session = await editor.open()
        await editor.prompt(session, "background")
        await editor.until("tool_call_update:in_progress")
        editor.cancel(session)
        await editor.until("tool_call_update:failed")
        assert agent.log == ["cancelled: True"]


async def test_a_task_that_ignores_its_cancellation_does_not_keep_the_session(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(work, "WORK_GRACE", 0.01)
    over = asyncio.Event()

    async def stubborn() -> None:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue

    agent = Agent("stubborn")

    @agent.on
    async def prompt(turn: AgentTurn) -> None:
        turn.session.start_task(stubborn())

    async with served(agent) as client:
        await client.prompt("go")
        await client.ask("session/close")
        over.set()
    assert "ignores its cancellation" in caplog.text


async def test_a_task_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    failed = asyncio.Event()

    async def fail() -> None:
        try:
            raise ValueError("a bug")
        finally:
            failed.set()

    agent = Agent("failing")

    @agent.on
    async def prompt(turn: AgentTurn) -> None:
        turn.session.start_task(fail())

    async with served(agent) as client:
        await client.prompt("go")
        await failed.wait()
        await client.ask("session/list")
    assert "a bug" in caplog.text
