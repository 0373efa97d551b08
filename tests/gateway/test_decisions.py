"""An agent gets the permission decision that the gateway understood and wrote down."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from antiphon.gateway import requests
from antiphon.gateway.base import Principal
from antiphon.gateway.hub import Hub
from antiphon.permission.gate import Ask, PermissionGate
from antiphon.policy import Rules
from tests.gateway.peers import QUICK, MemoryJournal, MemoryRows, RawClient, ScriptedAgent, Stage, stage
from tests.gateway.test_requests import answers, begun
from tests.gateway.test_turns import BOB, attach
from tests.rows import each_row
from tests.waits import idle, until


def audited(hub: Hub) -> list[tuple[str, str, str]]:
    """Let a hub write its audit into a list: by whom, the action, more about it."""
    entries: list[tuple[str, str, str]] = []

    def note(principal: Principal, action: str, key: str, detail: str) -> None:
        entries.append((principal.name, action, detail))

    hub.audit = note
    return entries


def selected(option: str) -> dict[str, object]:
    return {"outcome": {"outcome": "selected", "optionId": option}}


def result_of(agent: ScriptedAgent) -> Any:
    return msgspec.json.decode(answers(agent)[-1])["result"]


def refuse(client: RawClient, request: dict[str, Any]) -> None:
    error = {"code": -32603, "message": "no screen"}
    client.send(msgspec.json.encode({"jsonrpc": "2.0", "id": request["id"], "error": error}))


REJECTED: Final = selected("reject_once")
ALLOWED: Final = selected("allow_once")
CANCELLED: Final[dict[str, object]] = {"outcome": {"outcome": "cancelled"}}


@each_row(
    "given, forwarded",
    [
        (ALLOWED, ALLOWED),
        ({"outcome": {"outcome": "selected", "optionId": "allow_once"}, "decision": "reject"}, ALLOWED),
        ({"outcome": {"outcome": "selected", "optionId": "reject_once"}, "decision": "allow"}, REJECTED),
        ({"outcome": {"outcome": "selected", "optionId": "reject_once", "option_id": "allow_once"}}, REJECTED),
        ({"outcome": "selected", "optionId": "allow_once"}, ALLOWED),
        ({"outcome": "allow_once"}, REJECTED),
        ({"outcome": "allowed", "optionId": "allow_once"}, REJECTED),
        ({"decision": "allowed"}, REJECTED),
        ({"decision": {"outcome": "selected", "optionId": "allow_once"}}, REJECTED),
        ({"outcome": {"outcome": "selected", "option_id": "allow_once"}}, REJECTED),
        ({"outcome": {"outcome": "selected", "optionId": "everything"}}, REJECTED),
        ({"outcome": {"outcome": "selected", "optionId": ["allow_once"]}}, REJECTED),
        ({"outcome": {"outcome": "selected"}}, REJECTED),
        ({"Outcome": {"outcome": "selected", "optionId": "allow_once"}}, REJECTED),
        ({"optionId": "allow_once"}, REJECTED),
        (["allow_once"], REJECTED),
        ("allow_once", REJECTED),
        (True, REJECTED),
        (None, REJECTED),
        (CANCELLED, CANCELLED),
        ({**CANCELLED, "decision": "allow"}, CANCELLED),
    ],
)
async def test_the_agent_gets_the_outcome_that_is_written_down_and_nothing_beside_it(
    given: object, forwarded: dict[str, object], tmp_path: Path
) -> None:
    async with stage(tmp_path) as place:
        entries = audited(place.hub)
        client = await place.client()
        watcher = await place.client(BOB, numbers=True)
        session = await begun(place, tmp_path, client)
        await attach(watcher, session)
        place.agent.ask(1, session)
        client.answer((await client.asked())["id"], given)
        await until(lambda: answers(place.agent))
        assert result_of(place.agent) == forwarded
        outcome: Any = forwarded["outcome"]
        written = outcome.get("optionId", outcome["outcome"])
        assert entries[-1] == ("alice", "answer", f"session/request_permission: {written}")
        await until(lambda: watcher.messages[-1].get("method") == "_antiphon/session/resolved")
        assert watcher.messages[-1]["params"]["result"] == forwarded


async def test_of_what_a_client_adds_only_the_harmless_meta_reaches_the_agent(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        place.agent.ask(1, session)
        meta = {"antiphon": {"refused": "why"}, "claudeCode": {"allow": True}}
        client.answer((await client.asked())["id"], {**REJECTED, "_meta": meta})
        await until(lambda: answers(place.agent))
        assert result_of(place.agent) == {**REJECTED, "_meta": {"antiphon": {"refused": "why"}}}


async def test_of_two_options_under_one_id_the_one_that_rejects_counts(tmp_path: Path) -> None:
    """Else a write that follows would be taken for the one that was just allowed."""
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        kinds = {"allow_once": "same", "reject_once": "same", "reject_always": "never"}
        options = [{"optionId": id, "name": kind, "kind": kind} for kind, id in kinds.items()]
        path = str(tmp_path / "new.txt")
        diff = {"type": "diff", "path": path, "oldText": None, "newText": "x"}
        call = {"toolCallId": "c", "title": "Write", "kind": "edit", "content": [diff]}
        place.agent.request(
            1, "session/request_permission", {"sessionId": session, "toolCall": call, "options": options}
        )
        client.answer((await client.asked())["id"], selected("same"))
        await until(lambda: answers(place.agent))
        assert result_of(place.agent) == selected("same")
        place.agent.request(2, "fs/write_text_file", {"sessionId": session, "path": path, "content": "x"})
        await until(lambda: len(client.requests()) == 2)


@each_row(
    "given, forwarded",
    [
        ({"action": "accept", "content": {"a": "b"}}, {"action": "accept", "content": {"a": "b"}}),
        ({"action": "accept"}, {"action": "accept"}),
        ({"action": "decline", "content": {"a": "b"}}, {"action": "decline"}),
        ({"action": "decline", "decision": "accept"}, {"action": "decline"}),
        ({"Action": "accept", "action": "decline"}, {"action": "decline"}),
        ({"action": "accepted"}, {"action": "cancel"}),
        ({"action": {"action": "accept"}}, {"action": "cancel"}),
        ("accept", {"action": "cancel"}),
        (None, {"action": "cancel"}),
    ],
)
async def test_the_agent_gets_the_answer_to_a_question_that_is_written_down(
    given: object, forwarded: dict[str, object], tmp_path: Path
) -> None:
    async with stage(tmp_path) as place:
        entries = audited(place.hub)
        client = await place.client(elicitation={"form": {}})
        session = await begun(place, tmp_path, client)
        for number, about in enumerate(({"sessionId": session}, {}), 1):
            form = {**about, "mode": "form", "message": "?", "requestedSchema": {}}
            place.agent.request(number, "elicitation/create", form)
            await until(lambda number=number: len(client.requests("elicitation/create")) == number)  # type: ignore[misc]
            client.answer(client.requests("elicitation/create")[-1]["id"], given)
            await until(lambda number=number: len(answers(place.agent)) == number)  # type: ignore[misc]
            assert result_of(place.agent) == forwarded
            assert entries[-1] == ("alice", "answer", f"elicitation/create: {forwarded['action']}")


@pytest.fixture
def quick_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "REFUSAL_GRACE", 0.01)


def twice(client: RawClient, request: dict[str, Any]) -> None:
    """Answer with a key that is there twice."""
    outcome = b'{"outcome":"selected","optionId":"reject_once","optionId":"allow_once"}'
    client.send(b'{"jsonrpc":"2.0","id":%d,"result":{"outcome":%b}}' % (request["id"], outcome))


@each_row("answer", [refuse, twice])
async def test_a_request_that_the_only_client_refuses_is_rejected(
    answer: Callable[[RawClient, dict[str, Any]], None], tmp_path: Path, quick_refusal: None
) -> None:
    async with stage(tmp_path) as place:
        entries = audited(place.hub)
        client = await place.client(elicitation={"form": {}})
        session = await begun(place, tmp_path, client)
        place.agent.ask(1, session)
        answer(client, await client.asked())
        await until(lambda: answers(place.agent))
        assert result_of(place.agent) == REJECTED
        assert entries[-1] == ("gateway", "answer", "session/request_permission: reject_once")
        form = {"sessionId": session, "mode": "form", "message": "?", "requestedSchema": {}}
        place.agent.request(2, "elicitation/create", form)
        answer(client, await client.asked("elicitation/create"))
        await until(lambda: len(answers(place.agent)) == 2)
        assert result_of(place.agent) == {"action": "cancel"}


async def test_a_request_that_one_client_refuses_is_rejected_when_the_other_leaves(
    tmp_path: Path, quick_refusal: None
) -> None:
    async with stage(tmp_path) as place:
        client, other = await place.client(), await place.client(BOB)
        session = await begun(place, tmp_path, client)
        await attach(other, session)
        place.agent.ask(1, session)
        refuse(client, await client.asked())
        await other.asked()
        await idle()
        assert not answers(place.agent)
        await other.leave()
        await until(lambda: answers(place.agent))
        assert result_of(place.agent) == REJECTED


async def test_a_client_that_sends_an_error_and_leaves_has_decided_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        place.agent.ask(1, session)
        refuse(client, await client.asked())
        await client.leave()
        later = await place.client(BOB)
        await attach(later, session)
        later.choose(await later.asked())
        await until(lambda: answers(place.agent))
        assert result_of(place.agent) == ALLOWED


async def test_what_the_gateway_decides_alone_is_in_its_audit_log(tmp_path: Path) -> None:
    async def gates(agent: str, cwd: str, ask: Ask) -> PermissionGate:
        return PermissionGate(Rules.parse(deny=["Bash(rm:*)"], allow=["Bash(true)"]), ask=ask, agent=agent)

    journal, agent = MemoryJournal(), ScriptedAgent()
    rows = MemoryRows(journal)
    limits = msgspec.structs.replace(QUICK, answer_timeout=0.05)
    async with Hub({"demo": agent.start}, rows, journal, roots=[str(tmp_path)], limits=limits, gates=gates) as hub:
        place = Stage(hub, rows, journal, agent)
        entries = audited(hub)
        client = await place.client()
        session = await begun(place, tmp_path, client)
        options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
        call = {"toolCallId": "c", "title": "rm", "kind": "execute", "rawInput": {"command": "rm -rf x"}}
        agent.request(1, "session/request_permission", {"sessionId": session, "toolCall": call, "options": options})
        await until(lambda: len(answers(agent)) == 1)
        agent.request(2, "terminal/create", {"sessionId": session, "command": "true"})
        await until(lambda: len(answers(agent)) == 2)
        agent.ask(3, session)
        await until(lambda: len(answers(agent)) == 3)
        decided = [(action, detail) for name, action, detail in entries if name == "gateway"]
        assert [action for action, _ in decided] == ["decide", "decide", "answer"]
        assert decided[0][1].startswith("deny ") and "rm -rf x" in decided[0][1] and "Bash(rm:*)" in decided[0][1]
        assert decided[1][1].startswith("allow ") and "true" in decided[1][1]
        assert decided[2][1] == "session/request_permission: reject_once"
        await client.leave()
