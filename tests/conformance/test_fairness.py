"""Agents that are correct in their own way are not blamed for it, and those that are not are blamed for what they do."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from antiphon.conformance.agent_check import check_agent
from antiphon.conformance.requirements import RequirementStatus
from antiphon.conformance.results import ConformanceReport, ScenarioRecord
from antiphon.conformance.suites.agent import SUITE
from antiphon.transports.base import Transport
from tests.conformance.memory import OPTIONS as DEMO_OPTIONS
from tests.conformance.memory import InMemory, under_load
from tests.conformance.plain import CHECK_OPTIONS, SHORT, Message, Plain, Plainly, Refusal


def failed(report: ConformanceReport) -> dict[str, str]:
    return {
        one.requirement.id: one.verdict.text for one in report.results if one.verdict.status is RequirementStatus.FAILED
    }


def statuses(report: ConformanceReport, *ids: str) -> set[RequirementStatus]:
    return {one.verdict.status for one in report.results if one.requirement.id in ids}


class WantsALogin(Plain):
    """A session needs a user who has signed in."""

    def new(self, params: Message) -> Message:
        raise Refusal(-32000, "sign in first")


async def test_an_agent_that_wants_a_login_neither_fails_nor_passes_by_refusing_sessions() -> None:
    records = [
        "session-new",
        "session-refused",
        "session-mcp",
        "wrong-params",
        "unknown-session",
        "additions",
        "not-offered",
    ]
    report = await check_agent(Plainly(WantsALogin), under_load(CHECK_OPTIONS), only=records)
    shown = [one for one in report.results if one.requirement.scenario in records]
    assert {one.verdict.status for one in shown} == {RequirementStatus.BLOCKED}
    assert all("--auth" in one.verdict.text for one in shown)
    assert failed(report) == {}


class AsksTwice(Plain):
    """Asks for two permissions at once, and goes on when it has both answers."""

    async def turn(self, session: str, words: list[str]) -> None:
        if words[0] not in ("write", "ask", "long_run"):
            await super().turn(session, words)
            return
        calls = [await self.call(session, title=" ".join(words[1:])) for _ in range(2)]
        await asyncio.gather(*(self.may(session, call) for call in calls))


async def test_an_agent_may_ask_two_things_at_once() -> None:
    records = [
        "permission-refused",
        "permission-dismissed",
        "permission-error",
        "cancel-asking",
        "additions-to-answers",
    ]
    report = await check_agent(Plainly(AsksTwice), under_load(CHECK_OPTIONS), only=records)
    assert failed(report) == {}
    shown = {"permission.refused-ends", "permission.dismissed-ends", "permission.error-ends", "cancel.asking"}
    assert statuses(report, *shown, "unknown.permission") == {RequirementStatus.PASSED}


class EndsByAnError(AsksTwice):
    """A turn in which nothing may be done is answered with an error."""

    async def may(self, session: str, call: Message) -> bool:
        if not await super().may(session, call):
            raise Refusal(-32603, "so nothing was done")
        return True


async def test_a_turn_that_ends_with_an_error_after_a_no_has_ended() -> None:
    report = await check_agent(
        Plainly(EndsByAnError), under_load(CHECK_OPTIONS), only=["permission-refused", "permission-dismissed"]
    )
    assert failed(report) == {}


class Dependent(Plain):
    """What one setting offers depends on the other."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self.model, self.effort = "small", "low"

    def settings(self) -> list[Message]:
        efforts = {"small": ("low", "high"), "large": ("deep", "deeper")}
        if self.effort not in efforts[self.model]:
            self.effort = efforts[self.model][0]
        return [
            {"id": id, "name": id, "type": "select", "currentValue": now, "options": [{"value": one, "name": one} for one in all]}
            for id, now, all in (("model", self.model, tuple(efforts)), ("effort", self.effort, efforts[self.model]))
        ]  # fmt: skip

    def new(self, params: Message) -> Message:
        return {**super().new(params), "configOptions": self.settings()}

    async def do(self, method: str, params: Message) -> Any:
        if method != "session/set_config_option":
            return await super().do(method, params)
        offered = {one["id"]: [each["value"] for each in one["options"]] for one in self.settings()}
        if params["value"] not in offered.get(params["configId"], ()):
            raise Refusal(-32602, "there is no such thing to choose")
        setattr(self, params["configId"], params["value"])
        return {"configOptions": self.settings()}


async def test_a_setting_may_depend_on_another() -> None:
    report = await check_agent(Plainly(Dependent), under_load(CHECK_OPTIONS), only=["settings"])
    assert failed(report) == {}
    assert statuses(report, "config.chosen", "config.unknown-value") == {RequirementStatus.PASSED}


class Queues(Dependent):
    """One thing after the other, whichever session it is for; only requests without a session are answered at once."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self._turn = asyncio.Lock()

    async def do(self, method: str, params: Message) -> Any:
        if method not in ("session/prompt", "session/set_config_option"):
            return await super().do(method, params)
        async with self._turn:
            return await super().do(method, params)


async def test_turns_of_two_sessions_may_wait_for_each_other() -> None:
    report = await check_agent(Plainly(Queues), SHORT, only=["cancel-one", "turn-beside"])
    assert failed(report) == {}
    assert statuses(report, "cancel.one") == {RequirementStatus.UNSEEN}


async def test_a_setting_that_waits_for_the_end_of_a_turn_breaks_nothing_else() -> None:
    report = await check_agent(Plainly(Queues), SHORT, only=["settings-busy"])
    assert set(failed(report)) == {"config.busy"}


class Thinks(Plain):
    """Every turn lasts until it is cancelled."""

    async def turn(self, session: str, words: list[str]) -> None:
        await self.cancelled[session].wait()


async def test_a_turn_may_take_longer_than_we_wait() -> None:
    records = ["turn", "cancel-streaming", "permission-refused", "modest"]
    report = await check_agent(Plainly(Thinks), SHORT, only=records)
    assert failed(report) == {}
    shown = {one.verdict.text for one in report.results if one.requirement.scenario in records}
    assert shown and all("--timeout" in text for text in shown)


class Hangs(Plain):
    """A turn that never ends, cancelled or not."""

    async def turn(self, session: str, words: list[str]) -> None:
        await asyncio.get_running_loop().create_future()


async def test_a_turn_that_not_even_a_cancellation_ends_is_a_question_without_an_answer() -> None:
    report = await check_agent(Plainly(Hangs), SHORT, only=["turn"])
    assert set(failed(report)) == {"rpc.answered"}


class Dies(Plain):
    """Gone in the middle of a turn."""

    async def turn(self, session: str, words: list[str]) -> None:
        await self.transport.close()
        await asyncio.get_running_loop().create_future()


async def test_an_agent_that_dies_in_a_turn_has_not_stayed() -> None:
    for record in ("turn", "cancel-streaming", "cancel-running", "cancel-asking"):
        report = await check_agent(Plainly(Dies), under_load(CHECK_OPTIONS), only=[record])
        assert set(failed(report)) == {"process.stays"}, record


class DropsDead(Plain):
    """Leaves when it receives something that is not a message: whatever it was."""

    async def serve(self) -> None:
        with suppress(Exception):
            await super().serve()


async def test_no_must_is_broken_by_leaving_after_what_is_not_a_message() -> None:
    report = await check_agent(
        Plainly(DropsDead), under_load(CHECK_OPTIONS), only=["junk", "nonsense", "batch", "half-messages"]
    )
    assert {"junk.survives", "nonsense.survives", "batch.survives"} <= set(failed(report))
    assert [one.requirement.id for one in report.broken if one.is_fatal] == []


async def test_an_agent_that_only_sends_messages_has_not_shown_that_it_can_do_without_the_client() -> None:
    report = await check_agent(Plainly(Plain), under_load(CHECK_OPTIONS), only=["modest", "files-read-only"])
    assert statuses(report, "modest.read", "modest.write", "modest.run", "files.read-only") == {
        RequirementStatus.UNSEEN
    }


class Rereads(Plain):
    """Reads a file that it is to write, and then may not write it."""

    async def turn(self, session: str, words: list[str]) -> None:
        if words[0] != "write":
            await super().turn(session, words)
            return
        for kind, status in ("read", "completed"), ("edit", "failed"):
            call = await self.call(session, kind=kind, title=f"{kind} {words[1]}")
            await self.update(session, "tool_call_update", toolCallId=call["toolCallId"], status=status)


async def test_a_file_that_was_read_is_not_taken_for_written() -> None:
    report = await check_agent(Plainly(Rereads), under_load(CHECK_OPTIONS), only=["files-write"])
    assert failed(report) == {}
    assert statuses(report, "files.written") == {RequirementStatus.UNSEEN}


class OnlyAllows(AsksTwice):
    """There is no option to refuse, except by no response at all."""

    async def ask(self, method: str, **params: Any) -> Message:
        return await super().ask(method, **{**params, "options": params["options"][:1]})


async def test_a_no_is_never_turned_into_a_yes() -> None:
    records: list[Any] = []
    await check_agent(
        Plainly(OnlyAllows), under_load(CHECK_OPTIONS), only=["permission-refused"], progress=records.append
    )
    trace = records[0].wires[0].trace
    outcomes = [
        one.msg["result"]["outcome"]["outcome"]
        for one in trace
        if one.is_response and "outcome" in (one.msg.get("result") or ())
    ]
    assert outcomes == ["cancelled", "cancelled"]


class Late(Plain):
    """A session takes longer than we wait, and is there."""

    async def do(self, method: str, params: Message) -> Any:
        if method == "session/new":
            await asyncio.sleep(SHORT.limit * 1.3)
        return await super().do(method, params)


async def test_an_answer_that_comes_late_is_called_late_with_its_time_and_fails_nothing() -> None:
    report = await check_agent(Plainly(Late), SHORT, only=["turn"])
    assert failed(report) == {}
    shown = {one.verdict.text for one in report.results if one.requirement.scenario == "turn"}
    assert len(shown) == 1
    assert "`session/new` was answered late, after 0." in shown.pop()


class LeavesEarly(Plain):
    """Refuses a client that sends no `initialize`, and exits."""

    async def do(self, method: str, params: Message) -> Any:
        if method == "initialize":
            self.greeted = True
        elif not hasattr(self, "greeted"):
            asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(self.transport.close()))
            raise Refusal(-32600, "who are you?")
        return await super().do(method, params)


async def test_an_agent_that_exits_after_an_early_message_gets_the_other_requests_all_the_same() -> None:
    report = await check_agent(Plainly(LeavesEarly), under_load(CHECK_OPTIONS), only=["odd-client"])
    assert set(failed(report)) == {"init.after-early"}
    assert statuses(report, "init.unknown-capability", "init.meta", "init.unknown-field", "init.nulls") == {
        RequirementStatus.PASSED
    }


class LeavesAfterErrors(Plain):
    """Refuses params that are not what the schema says, and leaves a little later."""

    async def do(self, method: str, params: Message) -> Any:
        try:
            return await super().do(method, params)
        except Refusal as refusal:
            if refusal.code == -32602:
                later = asyncio.get_running_loop().call_later
                later(0.03, lambda: asyncio.ensure_future(self.transport.close()))
            raise

    async def prompt(self, session: str, blocks: Any) -> Message:
        if not isinstance(blocks, list):
            raise Refusal(-32602, "there is no prompt")
        return await super().prompt(session, blocks)


async def test_an_agent_that_exits_after_errors_fails_by_that_alone_and_never_by_a_must() -> None:
    class Careful(LeavesAfterErrors):
        async def do(self, method: str, params: Message) -> Any:
            return await super().do(
                method, dict(params) | {"prompt": params.get("prompt")} if type(params) is dict else {}
            )

    report = await check_agent(
        Plainly(Careful), under_load(CHECK_OPTIONS), only=["wrong-params", "turn", "unknown-methods"]
    )
    assert set(failed(report)) <= {"error.stays"}
    assert statuses(report, "error.missing", "error.wrong-type", "error.no-params", "turn.ends") == {
        RequirementStatus.PASSED
    }


@pytest.mark.slow
async def test_every_scenario_that_sends_what_no_client_may_send_is_marked() -> None:
    """So that no scenario after it is played with an agent that may leave because of it."""
    played: list[ScenarioRecord] = []
    records = [one for one in SUITE.scenarios.values() if not one.process]
    await check_agent(
        InMemory(),
        under_load(DEMO_OPTIONS),
        only=[one.name for one in records if not one.provokes],
        progress=played.append,
    )
    assert {one.name for one in played if any(wire.provocation for wire in one.wires)} == set()
    for record in records:
        if record.provokes:
            played.clear()
            await check_agent(InMemory(), under_load(DEMO_OPTIONS), only=[record.name], progress=played.append)
            assert any(wire.provocation for wire in played[0].wires), record.name
