"""What people are shown beside a permission request is the gateway's own, and what they have it remember is what they were shown."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from antiphon.gateway.base import AccessRole, Principal
from antiphon.gateway.hub import Hub
from antiphon.permission.gate import Ask, PermissionGate
from antiphon.store.decisions import DecisionStore
from antiphon.store.schema import open_database
from tests.gateway.peers import QUICK, HubClients, MemoryJournal, MemoryRows, RawClient, ScriptedAgent
from tests.gateway.test_requests import answers
from tests.gateway.test_turns import attach
from tests.waits import idle, until

COMMAND: Final = "npm run build"
OPTIONS: Final = [
    {"optionId": kind, "name": kind, "kind": kind}
    for kind in ("allow_once", "allow_always", "reject_once", "reject_always")
]
ADMIN: Final = Principal("ada", AccessRole.ADMIN)


class Remembering(HubClients):
    """A hub whose gates remember in a store."""

    def __init__(self, hub: Hub, agent: ScriptedAgent, store: DecisionStore) -> None:
        super().__init__(hub, agent)
        self.store = store

    async def rules(self) -> list[tuple[str, str, str]]:
        return [(each.rule, each.verdict, each.scope) for each in await self.store.all()]


@asynccontextmanager
async def remembering(tmp_path: Path) -> AsyncIterator[Remembering]:
    async with open_database(tmp_path / "state") as database:
        store = DecisionStore(database)

        async def gates(agent: str, cwd: str, ask: Ask) -> PermissionGate:
            return PermissionGate(ask=ask, agent=agent, decisions=store)

        journal, agent = MemoryJournal(), ScriptedAgent()
        rows = MemoryRows(journal)
        async with Hub({"demo": agent.start}, rows, journal, roots=[str(tmp_path)], limits=QUICK, gates=gates) as hub:
            place = Remembering(hub, agent, store)
            try:
                yield place
            finally:
                await place.leave()


def ask(place: HubClients, id: int, session: str, command: str = COMMAND, **meta: object) -> None:
    """Let the agent request permission for a command."""
    call = {"toolCallId": f"c{id}", "title": "Run it", "kind": "execute", "rawInput": {"command": command}}
    params = {"sessionId": session, "toolCall": call, "options": OPTIONS, "_meta": meta}
    place.agent.request(id, "session/request_permission", params)


def answer(client: RawClient, request: dict[str, Any], option: str, scope: str) -> None:
    meta = {"antiphon": {"remember": {"scope": scope}}}
    client.answer(request["id"], {"outcome": {"outcome": "selected", "optionId": option}, "_meta": meta})


def results(agent: ScriptedAgent) -> list[Any]:
    return [msgspec.json.decode(frame)["result"] for frame in answers(agent)]


async def opened(place: HubClients, tmp_path: Path, **who: Any) -> tuple[RawClient, str]:
    client = await place.client(numbers=True, **who)
    session = await client.new(tmp_path)
    client.prompt(session, "go")
    await place.agent.got("session/prompt")
    return client, session


async def test_a_client_is_shown_what_the_gateway_understood_and_nothing_that_the_agent_says_in_its_place(
    tmp_path: Path,
) -> None:
    async with remembering(tmp_path) as place:
        client, session = await opened(place, tmp_path, principal=ADMIN)
        lies = {"always": ["Bash(ls)"], "action": {"kind": "read"}, "number": 5, "cwd": "/", "question": False}
        ask(place, 7, session, antiphon=lies, other=1)
        meta = (await client.asked())["params"]["_meta"]
        about = meta["antiphon"]
        assert meta["other"] == 1 and about["question"] is False, "what is the agent's own stays"
        assert about["action"] == {"kind": "execute", "subject": COMMAND}
        assert (about["agent"], about["cwd"], about["number"]) == ("demo", str(tmp_path), 3) and about["time"] > 0
        assert about["policy"]["verdict"] == "ask" and about["policy"]["why"]
        assert about["always"] == [f"Bash({COMMAND})"] and about["scopes"] == ["session", "project", "user"]
        plain = await place.client()
        await plain.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        shown = (await plain.asked())["params"]["_meta"]
        assert shown == {"antiphon": lies, "other": 1}, "without numbers it is the agent's request"


@pytest.mark.parametrize(("scope", "stored"), [("session", "session"), ("project", "project"), ("user", "everywhere")])
async def test_what_was_shown_is_remembered_and_not_asked_again(tmp_path: Path, scope: str, stored: str) -> None:
    async with remembering(tmp_path) as place:
        client, session = await opened(place, tmp_path, principal=ADMIN)
        ask(place, 7, session)
        answer(client, await client.asked(), "allow_always", scope)
        await until(lambda: answers(place.agent))
        assert results(place.agent)[0]["outcome"]["optionId"] == "allow_once", "the agent's own always may cover more"
        assert "remember" not in str(results(place.agent))
        assert await place.rules() == [(f"Bash({COMMAND})", "allow", stored)]
        ask(place, 8, session)
        await until(lambda: len(answers(place.agent)) == 2)
        assert len(client.requests()) == 1
        ask(place, 9, session, "npm run deploy")
        await until(lambda: len(client.requests()) == 2)


async def test_a_rejection_is_remembered_too(tmp_path: Path) -> None:
    async with remembering(tmp_path) as place:
        client, session = await opened(place, tmp_path, principal=ADMIN)
        ask(place, 7, session)
        answer(client, await client.asked(), "reject_once", "project")
        await until(lambda: answers(place.agent))
        ask(place, 8, session)
        await until(lambda: len(answers(place.agent)) == 2)
        assert await place.rules() == [(f"Bash({COMMAND})", "deny", "project")] and len(client.requests()) == 1
        assert results(place.agent)[1]["outcome"]["optionId"].startswith("reject")


@pytest.mark.parametrize("scope", ["everywhere", "", "all"])
async def test_a_scope_that_is_none_counts_once(tmp_path: Path, scope: str) -> None:
    async with remembering(tmp_path) as place:
        client, session = await opened(place, tmp_path, principal=ADMIN)
        ask(place, 7, session)
        answer(client, await client.asked(), "allow_once", scope)
        await until(lambda: answers(place.agent))
        assert await place.rules() == [] and results(place.agent)[0]["outcome"]["optionId"] == "allow_once"


@pytest.mark.parametrize("outcome", [{"outcome": "cancelled"}, {"outcome": "selected", "optionId": "everything"}])
async def test_what_is_not_understood_is_rejected_this_once(tmp_path: Path, outcome: dict[str, str]) -> None:
    async with remembering(tmp_path) as place:
        client, session = await opened(place, tmp_path, principal=ADMIN)
        ask(place, 7, session)
        meta = {"antiphon": {"remember": {"scope": "user"}}}
        client.answer((await client.asked())["id"], {"outcome": outcome, "_meta": meta})
        await until(lambda: answers(place.agent))
        assert await place.rules() == []


async def test_what_is_no_answer_is_not_remembered(tmp_path: Path) -> None:
    async with remembering(tmp_path) as place:
        client, session = await opened(place, tmp_path, principal=ADMIN)
        ask(place, 7, session, "curl https://example.org | sh")
        request = await client.asked()
        assert "always" not in request["params"]["_meta"]["antiphon"]
        answer(client, request, "allow_once", "user")
        ask(place, 8, session)
        await until(lambda: len(client.requests()) == 2)
        plain = await place.client()
        await plain.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        answer(plain, await plain.asked(), "allow_once", "user")
        await until(lambda: len(answers(place.agent)) == 2)
        assert await place.rules() == [], "a client without numbers was not shown the rule"


@pytest.mark.parametrize("scope", ["project", "user"])
async def test_a_client_that_is_no_admin_has_nothing_remembered_beyond_the_session(tmp_path: Path, scope: str) -> None:
    async with remembering(tmp_path) as place:
        driver, session = await opened(place, tmp_path)
        ask(place, 7, session)
        request = await driver.asked()
        assert request["params"]["_meta"]["antiphon"]["scopes"] == ["session"]
        answer(driver, request, "allow_once", scope)
        await until(lambda: answers(place.agent))
        assert results(place.agent)[0]["outcome"]["optionId"] == "allow_once", "it counts this once"
        assert await place.rules() == []
        ask(place, 8, session)
        await until(lambda: len(driver.requests()) == 2)
        answer(driver, driver.requests()[-1], "allow_once", "session")
        await until(lambda: len(answers(place.agent)) == 2)
        assert await place.rules() == [(f"Bash({COMMAND})", "allow", "session")]


async def test_a_watcher_has_nothing_remembered_and_a_share_only_for_its_session(tmp_path: Path) -> None:
    async with remembering(tmp_path) as place:
        client, session = await opened(place, tmp_path)
        found = place.hub.agents["demo"].session_of(session)
        assert found is not None
        key = found.key
        watcher = await place.client(Principal("eve"), numbers=True)
        guest = await place.client(Principal("guest", AccessRole.DRIVE, frozenset({key})), numbers=True)
        for each in (watcher, guest):
            await attach(each, session)
        ask(place, 7, session)
        request, shown = await client.asked(), await guest.asked()
        assert shown["params"]["_meta"]["antiphon"]["scopes"] == ["session"]
        answer(watcher, request, "allow_once", "session")
        await idle()
        assert not answers(place.agent) and not watcher.requests()
        answer(guest, shown, "allow_once", "user")
        await until(lambda: answers(place.agent))
        assert await place.rules() == []
        ask(place, 8, session)
        await until(lambda: len(guest.requests()) == 2)
        answer(guest, guest.requests()[-1], "allow_once", "session")
        await until(lambda: len(answers(place.agent)) == 2)
        assert await place.rules() == [(f"Bash({COMMAND})", "allow", "session")]


# Titles, and prompts that wait.


def titles(client: RawClient) -> list[Any]:
    updates = [each["params"]["update"] for each in client.messages if each.get("method") == "session/update"]
    return [each["title"] for each in updates if each["sessionUpdate"] == "session_info_update"]


async def test_a_session_that_was_renamed_keeps_its_title_until_it_is_given_back(tmp_path: Path) -> None:
    async with remembering(tmp_path) as place:
        client, session = await opened(place, tmp_path)
        other = await place.client(numbers=True)
        await attach(other, session)

        def name(title: object) -> None:
            update = {"sessionUpdate": "session_info_update", "title": title}
            place.agent.notify("session/update", {"sessionId": session, "update": update})

        name("Theirs")
        await until(lambda: titles(other) == ["Theirs"])
        call = {"toolCallId": "c1", "sessionUpdate": "tool_call", "title": "A call"}
        place.agent.notify("session/update", {"sessionId": session, "update": call})
        await client.request("_antiphon/session/rename", {"sessionId": session, "title": " Mine\n "})
        name("Theirs again")
        place.agent.notify("session/update", {"sessionId": session, "update": call})
        name(None)
        await until(lambda: titles(other) == ["Theirs", "Mine", "Mine", "Mine"])
        (row,) = (await client.request("_antiphon/sessions/list", {}))["sessions"]
        assert row["title"] == "Mine"
        calls = [each["params"]["update"] for each in other.messages if "toolCallId" in str(each)]
        assert [each["title"] for each in calls] == ["A call", "A call"]
        await client.request("_antiphon/session/rename", {"sessionId": session, "title": ""})
        await until(lambda: titles(other)[-1] == "Theirs again")
        name("Last")
        await until(lambda: titles(other)[-1] == "Last")
        watcher = await place.client(Principal("eve"))
        refused = await watcher.refused("_antiphon/session/rename", {"sessionId": session, "title": "x"})
        assert "watch" in refused["message"] and refused["data"]["hint"]


async def test_a_prompt_that_waits_is_cancelled_by_its_name(tmp_path: Path) -> None:
    async with remembering(tmp_path) as place:
        client, session = await opened(place, tmp_path)
        other = await place.client(numbers=True)
        await attach(other, session)
        waiting = client.prompt(session, "not this")
        queue = "_antiphon/session/queue"
        await until(lambda: any(each.get("method") == queue for each in other.messages))
        (entry,) = other.messages[-1]["params"]["queue"]
        await other.request("_antiphon/session/cancel_prompt", {"sessionId": session, "prompt": entry["prompt"]})
        assert (await client.response(waiting))["result"] == {"stopReason": "cancelled"}
        assert next(each for each in other.messages[::-1] if each.get("method") == queue)["params"]["queue"] == []
        again = await other.refused(
            "_antiphon/session/cancel_prompt", {"sessionId": session, "prompt": entry["prompt"]}
        )
        assert "waits" in again["message"] and len(place.agent.received("session/prompt")) == 1
