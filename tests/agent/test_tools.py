"""A tool call moves through its states and always reaches the last."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from antiphon.agent.questions import OPTIONS
from antiphon.agent.turn import AgentTurn
from antiphon.connection.router import Router
from antiphon.errors import Code, NotSupported, RequestError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from antiphon.transports.base import OUTPUT_HIGH
from tests.agent.editor import Editor, only_prompt, playing

DONE = v1.StopReason.END_TURN


async def played(prompt: Any, router: Router | None = None, *, fails: bool = False) -> Editor:
    """One turn of it, and the editor that saw it."""
    async with playing(only_prompt(prompt), None, router) as editor:
        turn = editor.turn()
        if fails:
            with pytest.raises(RequestRefused):
                await turn
        else:
            await turn
    return editor


def tool_words(editor: Editor) -> list[str]:
    return [word.removeprefix("tool_call") for word in editor.order if word.startswith("tool_call")]


def answering(answer: "Callable[[v1.RequestPermission], v1.PermissionOutcome]") -> Router:
    router = Router()
    router.on_request(m.REQUEST_PERMISSION, lambda asked: v1.PermissionResult(answer(asked)))
    return router


def text(words: str) -> dict[str, Any]:
    return {"type": "content", "content": {"type": "text", "text": words}}


async def test_a_call_is_pending_then_in_progress_then_completed() -> None:
    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("Think", v1.ToolKind.THINK, name="think", input={"a": 1}, at=["a.txt"]) as call:
            assert call.status == v1.ToolStatus.PENDING
            await call.start()
            await call.start()
            assert call.status == v1.ToolStatus.IN_PROGRESS
        assert call.status == v1.ToolStatus.COMPLETED

    editor = await played(prompt)
    assert tool_words(editor) == ["", "_update:in_progress", "_update:completed"]
    announced = editor.updates("tool_call")[0]
    assert announced == {
        "sessionUpdate": "tool_call",
        "toolCallId": "call-1",
        "title": "Think",
        "kind": "think",
        "name": "think",
        "locations": [{"path": "/w/a.txt"}],
        "rawInput": {"a": 1},
    }


async def test_a_call_with_an_empty_block_goes_through_all_its_states() -> None:
    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("x"):
            pass

    assert tool_words(await played(prompt)) == ["", "_update:in_progress", "_update:completed"]


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ValueError("postgres://app:hunter2@db"), "ValueError"),
        (FileNotFoundError(2, "No such file or directory", "/w/f"), "[Errno 2] No such file or directory: '/w/f'"),
        (NotSupported("the client shows no forms"), "the client shows no forms"),
        (RequestError(Code.RESOURCE_NOT_FOUND, "Resource not found", "/w/f"), "Resource not found: /w/f"),
        (RequestError(-32050, "Not today", {"a": 1}), "Not today"),
    ],
)
async def test_a_call_that_raises_ends_as_failed_shows_why_and_raises_on(error: Exception, shown: str) -> None:
    raised: list[BaseException] = []

    async def prompt(turn: AgentTurn) -> None:
        try:
            async with turn.tool("x") as call:
                await call.show("half of it")
                raise error
        except Exception as caught:
            raised.append(caught)

    editor = await played(prompt)
    assert raised == [error]
    assert tool_words(editor)[-1] == "_update:failed"
    assert editor.updates()[-1]["content"] == [text("half of it"), text(shown)]


async def test_a_call_can_fail_without_an_exception() -> None:
    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("x") as call:
            await call.show("tried")
            call.fail()

    editor = await played(prompt)
    assert tool_words(editor) == ["", "_update:in_progress", "_update", "_update:failed"]


async def test_what_a_call_shows_grows() -> None:
    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("x") as call:
            await call.show("one")
            await call.show(v1.ImageBlock("aGk=", "image/png"), v1.TerminalItem("t"))
            await call.diff("f", "new", "old")
            await call.diff("/abs/g", "new")
            await call.show(raw={"exit": 0})

    editor = await played(prompt)
    shown = [update["content"] for update in editor.updates("tool_call_update") if "content" in update]
    assert [len(content) for content in shown] == [1, 3, 4, 5, 5]
    assert shown[-1] == [
        text("one"),
        {"type": "content", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}},
        {"type": "terminal", "terminalId": "t"},
        {"type": "diff", "path": "/w/f", "newText": "new", "oldText": "old"},
        {"type": "diff", "path": "/abs/g", "newText": "new"},
    ]
    assert editor.updates()[-2]["rawOutput"] == {"exit": 0}


async def test_places_grow_and_have_lines() -> None:
    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("x", at=["a", v1.ToolLocation("/b", 2)]) as call:
            await call.at("c/../d", 3)
            await call.rename("Better")

    editor = await played(prompt)
    places = [update["locations"] for update in editor.updates() if "locations" in update]
    assert places[-1] == [{"path": "/w/a"}, {"path": "/b", "line": 2}, {"path": "/w/d", "line": 3}]
    assert [update["title"] for update in editor.updates() if "title" in update] == ["x", "Better"]


@pytest.mark.parametrize(
    ("answer", "allowed", "lasting", "option"),
    [
        (v1.Selected("allow"), True, False, "allow"),
        (v1.Selected("allow_always"), True, True, "allow_always"),
        (v1.Selected("reject"), False, False, "reject"),
        (v1.Selected("reject_always"), False, True, "reject_always"),
        (v1.Selected("allow_once"), True, False, "allow"),  # older clients answer with the kind
        (v1.Selected("yes!"), False, False, None),
        (v1.Cancelled(), False, False, None),
    ],
    ids=lambda value: str(value),
)
async def test_permission_is_what_the_user_answered_and_nothing_else(
    answer: v1.PermissionOutcome, allowed: bool, lasting: bool, option: str | None
) -> None:
    seen: list[Any] = []

    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("Delete it", v1.ToolKind.DELETE) as call:
            permission = await call.permitted()
            chosen = permission.option.option_id if permission.option else None
            seen.append((bool(permission), permission.always, chosen))

    editor = await played(prompt, answering(lambda _: answer))
    assert seen == [(allowed, lasting, option)]
    ended = ["_update:in_progress", "_update:completed"] if allowed else ["_update:failed"]
    assert tool_words(editor) == ["", *ended]
    denied = {"_meta": {"antiphon": {"denied": True}}}.items() <= editor.updates()[-1].items()
    assert denied is (option is not None and not allowed)  # a client shows that, also when the session is loaded again


async def test_a_kind_that_two_options_have_is_not_an_answer() -> None:
    once = v1.PermissionOptionKind.ALLOW_ONCE
    options = [v1.PermissionOption("a", "A", once), v1.PermissionOption("b", "B", once)]
    seen: list[object] = []

    async def prompt(turn: AgentTurn) -> None:
        seen.append((await turn.ask_permission(v1.ToolCallPatch("c"), options)).option)

    await played(prompt, answering(lambda _: v1.Selected("allow_once")))
    assert seen == [None]


async def test_a_preview_is_in_the_question_and_the_call_still_waits() -> None:
    asked: list[v1.RequestPermission] = []

    def allow(question: v1.RequestPermission) -> v1.PermissionOutcome:
        asked.append(question)
        return v1.Selected("allow")

    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("Edit", v1.ToolKind.EDIT, name="edit", input={"f": 1}, at=["f"]) as call:
            await call.preview(v1.Diff("/w/f", "new", "old"))
            assert call.status == v1.ToolStatus.PENDING
            if await call.permitted():
                await call.show("written")

    editor = await played(prompt, answering(allow))
    assert tool_words(editor) == ["", "_update", "_update:in_progress", "_update", "_update:completed"]
    question = asked[0].tool_call
    assert (question.title, question.kind, question.name) == ("Edit", v1.ToolKind.EDIT, "edit")
    assert question.content == [v1.Diff("/w/f", "new", "old")]
    assert question.locations == [v1.ToolLocation("/w/f")] and question.raw_input == {"f": 1}
    assert asked[0].options == list(OPTIONS)
    assert [len(each["content"]) for each in editor.updates() if "content" in each] == [1, 2]


async def test_a_client_that_cannot_ask_fails_the_call_and_reports_it() -> None:
    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("x") as call:
            await call.permitted()

    editor = await played(prompt, fails=True)
    assert tool_words(editor) == ["", "_update:failed"]
    assert "Method not found" in editor.updates()[-1]["content"][0]["content"]["text"]


async def test_calls_may_be_nested_and_parallel_and_have_names_of_their_own() -> None:
    async def one(turn: AgentTurn, name: str) -> None:
        async with turn.tool(name) as call:
            await asyncio.sleep(0)
            await call.show(name)
            await asyncio.sleep(0)

    async def prompt(turn: AgentTurn) -> None:
        async with turn.tool("all"), asyncio.TaskGroup() as group:
            for name in "abc":
                group.create_task(one(turn, name))

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open()
        await editor.prompt(session)
        await editor.prompt(session)
    last: dict[str, str] = {}
    for update in editor.updates():
        last[update["toolCallId"]] = update.get("status", last.get(update["toolCallId"], "pending"))
    assert last == {f"call-{number}": "completed" for number in range(1, 9)}
    titles = {update["toolCallId"]: update["title"] for update in editor.updates("tool_call")}
    for update in editor.updates("tool_call_update"):
        if "content" in update:
            assert update["content"] == [text(titles[update["toolCallId"]])]


async def test_one_that_fails_among_parallel_calls_fails_the_others_too() -> None:
    async def one(turn: AgentTurn, name: str) -> None:
        async with turn.tool(name):
            if name == "b":
                raise ValueError("b is broken")
            await asyncio.Event().wait()

    async def prompt(turn: AgentTurn) -> None:
        async with asyncio.TaskGroup() as group:
            for name in "abc":
                group.create_task(one(turn, name))

    assert sorted(tool_words(await played(prompt, fails=True))) == [""] * 3 + ["_update:failed"] * 3


@pytest.mark.parametrize("where", ["entering", "leaving"])
async def test_a_call_cancelled_while_the_client_is_slow_still_ends(where: str) -> None:
    waiting, cancelled = asyncio.Event(), asyncio.Event()

    async def work(turn: AgentTurn) -> None:
        def flood() -> None:
            _ = turn.say("x" * OUTPUT_HIGH)  # leaves at once
            _ = turn.say("x" * OUTPUT_HIGH)  # now the wire is full, and the next sender waits

        if where == "entering":
            flood()
            waiting.set()
            async with turn.tool("x"):
                raise AssertionError("not reached")
        async with turn.tool("x"):
            flood()
            waiting.set()

    async def prompt(turn: AgentTurn) -> None:
        try:
            await work(turn)
        finally:
            cancelled.set()

    async with playing(only_prompt(prompt)) as editor:
        session = await editor.open()
        editor.connection.transport.pause()
        running = editor.prompt(session)
        await waiting.wait()
        editor.cancel(session)
        await cancelled.wait()
        editor.connection.transport.resume()
        assert (await running).stop_reason == v1.StopReason.CANCELLED
        ended = ["_update:failed"] if where == "entering" else ["_update:in_progress", "_update:completed"]
        assert tool_words(editor) == ["", *ended]
