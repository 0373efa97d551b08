"""Requests of agents: the policy first, then people; they wait, and the first answer wins."""

from pathlib import Path

import msgspec
import pytest

from antiphon.gateway.base import AccessRole, Principal
from antiphon.gateway.hub import Hub
from antiphon.permission.gate import Ask, PermissionGate
from antiphon.policy import Rules
from tests.gateway.peers import QUICK, MemoryJournal, MemoryRows, RawClient, ScriptedAgent, Stage, stage
from tests.gateway.test_turns import BOB, attach, end
from tests.waits import idle, until


def answers(agent: ScriptedAgent) -> list[bytes]:
    """The responses that the agent got."""
    return [line for line in agent.lines if b'"method"' not in line]


async def begun(place: Stage, tmp_path: Path, client: RawClient) -> str:
    """A session with a turn that runs."""
    session = await client.new(tmp_path)
    client.prompt(session, "work")
    await place.agent.got("session/prompt")
    return session


async def test_a_permission_request_waits_for_a_client_that_attaches_later(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        await client.leave()
        place.agent.ask("p", session)
        await until(lambda: len(place.journal.events["key0"]) == 3)
        await idle()
        assert not answers(place.agent)
        later = await place.client(BOB)
        await later.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        later.choose(await later.asked())
        await until(lambda: answers(place.agent))
        assert msgspec.json.decode(answers(place.agent)[0]) == {
            "jsonrpc": "2.0", "id": "p", "result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}},
        }  # fmt: skip


async def test_the_first_answer_wins_and_the_others_get_a_cancellation(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        alice, bob, carol = await place.client(), await place.client(BOB), await place.client(numbers=True)
        session = await begun(place, tmp_path, alice)
        await attach(bob, session)
        await attach(carol, session)
        place.agent.ask(7, session)
        asked = [await client.asked() for client in (alice, bob, carol)]
        bob.send(
            b'{"jsonrpc":"2.0","id":%d,"result":{"outcome":{"outcome":"selected","optionId":"reject_once"},"why":1.0}}'
            % asked[1]["id"]
        )
        await until(lambda: answers(place.agent))
        expected = b'{"jsonrpc":"2.0","id":7,"result":{"outcome":{"outcome":"selected","optionId":"reject_once"}}}'
        assert answers(place.agent) == [expected], "in the form of the schema, and nothing else"
        cancelled = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": asked[0]["id"]}}
        await until(lambda: cancelled in alice.messages)
        assert not any(each.get("method") == "$/cancel_request" for each in bob.messages)
        await until(lambda: carol.messages[-1].get("method") == "_antiphon/session/resolved")
        assert carol.messages[-1]["params"]["from"] == "bob"
        alice.choose(asked[0])
        await idle()
        assert answers(place.agent) == [expected]


async def test_a_client_that_refuses_a_request_leaves_it_to_the_others(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client, other = await place.client(), await place.client(BOB)
        session = await begun(place, tmp_path, client)
        await attach(other, session)
        place.agent.ask(1, session)
        asked = await client.asked()
        client.send(b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"no"}}' % asked["id"])
        await idle()
        assert not answers(place.agent)
        other.choose(await other.asked())
        await until(lambda: answers(place.agent))


async def test_an_answer_that_is_no_option_is_no_permission(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        place.agent.ask(1, session)
        asked = await client.asked()
        client.answer(asked["id"], {"outcome": {"outcome": "selected", "optionId": "everything"}})
        await until(lambda: answers(place.agent))
        assert b"reject_once" in answers(place.agent)[0]


async def test_cancel_answers_what_waits_as_cancelled(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client(elicitation={"form": {}})
        session = await begun(place, tmp_path, client)
        place.agent.ask(1, session)
        place.agent.request(
            2, "elicitation/create", {"sessionId": session, "mode": "form", "message": "?", "requestedSchema": {}}
        )
        await client.asked()
        await client.asked("elicitation/create")
        client.notify("session/cancel", {"sessionId": session})
        await until(lambda: len(answers(place.agent)) == 2)
        results = {each["id"]: each["result"] for each in map(msgspec.json.decode, answers(place.agent))}
        assert results == {1: {"outcome": {"outcome": "cancelled"}}, 2: {"action": "cancel"}}
        await until(lambda: sum(each.get("method") == "$/cancel_request" for each in client.messages) == 2)


async def test_a_request_that_the_agent_cancels_with_the_next_line_is_answered_all_the_same(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        session = await begun(place, tmp_path, await place.client())
        ask = {"jsonrpc": "2.0", "id": "p", "method": "_ask", "params": {"sessionId": session}}
        cancel = b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"p"}}'
        place.agent.send(msgspec.json.encode(ask), cancel)
        await until(lambda: answers(place.agent))
        assert msgspec.json.decode(answers(place.agent)[0])["error"]["code"] == -32800


async def test_a_request_that_the_agent_cancels_is_cancelled_at_the_clients(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        place.agent.ask("p", session)
        asked = await client.asked()
        place.agent.send(b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"p"}}')
        await until(lambda: answers(place.agent))
        assert msgspec.json.decode(answers(place.agent)[0])["error"]["code"] == -32800
        cancelled = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": asked["id"]}}
        await until(lambda: cancelled in client.messages)


async def test_a_question_that_no_attached_client_can_show_is_cancelled_and_without_a_client_it_waits(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as place:
        plain = await place.client()
        session = await plain.new(tmp_path)
        question = {"sessionId": session, "mode": "form", "message": "?", "requestedSchema": {}}
        place.agent.request(1, "elicitation/create", question)
        await until(lambda: b'{"jsonrpc":"2.0","id":1,"result":{"action":"cancel"}}' in place.agent.lines)
        await plain.leave()
        place.agent.request(2, "elicitation/create", question)
        forms = await place.client(elicitation={"form": {}})
        await attach(forms, session)
        forms.answer((await forms.asked("elicitation/create"))["id"], {"action": "decline"})
        await until(lambda: b'{"jsonrpc":"2.0","id":2,"result":{"action":"decline"}}' in place.agent.lines)


async def test_a_form_is_shown_to_clients_that_show_forms(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        plain, forms = await place.client(), await place.client(BOB, elicitation={"form": {}})
        session = await begun(place, tmp_path, plain)
        await attach(forms, session)
        place.agent.request(
            1, "elicitation/create", {"sessionId": session, "mode": "form", "message": "?", "requestedSchema": {}}
        )
        asked = await forms.asked("elicitation/create")
        forms.answer(asked["id"], {"action": "accept", "content": {"a": 1.0}})
        await until(lambda: answers(place.agent))
        assert answers(place.agent) == [b'{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"a":1.0}}}']
        assert not plain.requests("elicitation/create")


async def test_a_request_that_the_gateway_does_not_know_goes_to_one_driver(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client, other = await place.client(), await place.client(BOB)
        session = await begun(place, tmp_path, client)
        await attach(other, session)
        place.agent.request(1, "_vendor/ask", {"sessionId": session})
        asked = await client.asked("_vendor/ask")
        client.send(b'{"jsonrpc":"2.0","id":%d,"error":{"code":5,"message":"no","z":1}}' % asked["id"])
        await until(lambda: answers(place.agent))
        assert answers(place.agent) == [b'{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"no","z":1}}']
        assert not other.requests("_vendor/ask")
        await client.leave()
        await other.leave()
        place.agent.request(2, "_vendor/ask", {"sessionId": session})
        await until(lambda: len(answers(place.agent)) == 2)
        assert b"-32601" in answers(place.agent)[1]


async def test_a_time_limit_answers_with_an_option_that_rejects(tmp_path: Path) -> None:
    async with stage(tmp_path, msgspec.structs.replace(QUICK, answer_timeout=0.05)) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        place.agent.ask(1, session)
        await until(lambda: answers(place.agent))
        assert b'"reject_once"' in answers(place.agent)[0]


async def test_the_policy_of_the_gateway_decides_before_people(tmp_path: Path) -> None:
    async def gates(agent: str, cwd: str, ask: Ask) -> PermissionGate:
        return PermissionGate(Rules.parse(deny=["Bash"]), ask=ask, agent=agent)

    journal, agent = MemoryJournal(), ScriptedAgent()
    rows = MemoryRows(journal)
    async with Hub({"demo": agent.start}, rows, journal, roots=[str(tmp_path)], limits=QUICK, gates=gates) as hub:
        place = Stage(hub, rows, journal, agent)
        client = await place.client()
        session = await begun(place, tmp_path, client)
        options = [{"optionId": kind, "name": kind, "kind": kind} for kind in ("allow_once", "reject_once")]
        call = {"toolCallId": "c", "title": "rm", "kind": "execute", "rawInput": {"command": "rm -rf x"}}
        agent.request(1, "session/request_permission", {"sessionId": session, "toolCall": call, "options": options})
        await until(lambda: answers(agent))
        assert b'"reject_once"' in answers(agent)[0] and not client.requests()
        await client.leave()


async def test_files_are_served_inside_the_directory_of_the_session(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        inside = tmp_path / "work"
        inside.mkdir()
        (inside / "a.txt").write_text("hello\n", encoding="utf-8")
        (tmp_path / "secret").write_text("x", encoding="utf-8")
        (inside / "way_out").symlink_to(tmp_path / "secret")
        client = await place.client()
        session = await client.new(inside)
        client.prompt(session, "work")
        await place.agent.got("session/prompt")
        for number, path in enumerate((inside / "a.txt", tmp_path / "secret", inside / "way_out"), 1):
            place.agent.request(number, "fs/read_text_file", {"sessionId": session, "path": str(path)})
        await until(lambda: len(answers(place.agent)) == 3)
        found = {each["id"]: each for each in map(msgspec.json.decode, answers(place.agent))}
        assert found[1]["result"] == {"content": "hello\n"}
        assert "error" in found[2] and "error" in found[3]


async def test_a_write_without_a_permission_request_is_asked_about(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        params = {"sessionId": session, "path": str(tmp_path / "new.txt"), "content": "x"}
        place.agent.request(1, "fs/write_text_file", params)
        client.choose(await client.asked(), "reject_once")
        await until(lambda: len(answers(place.agent)) == 1)
        assert not (tmp_path / "new.txt").exists() and b"error" in answers(place.agent)[0]
        place.agent.request(2, "fs/write_text_file", params)
        await until(lambda: len(client.requests()) == 2)
        client.choose(client.requests()[1])
        await until(lambda: len(answers(place.agent)) == 2)
        assert (tmp_path / "new.txt").read_text(encoding="utf-8") == "x"


async def test_commands_run_on_the_host_without_its_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "secret")
    monkeypatch.setenv("LC_HARMLESS", "fine")
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        params = {"sessionId": session, "command": "env", "args": []}
        place.agent.request(1, "terminal/create", params)
        client.choose(await client.asked())
        await until(lambda: len(answers(place.agent)) == 1)
        terminal = {"sessionId": session, **msgspec.json.decode(answers(place.agent)[0])["result"]}
        place.agent.request(2, "terminal/wait_for_exit", terminal)
        await until(lambda: len(answers(place.agent)) == 2)
        place.agent.request(3, "terminal/output", terminal)
        await until(lambda: len(answers(place.agent)) == 3)
        output = msgspec.json.decode(answers(place.agent)[2])["result"]["output"]
        assert "LC_HARMLESS=fine" in output and "SOME_TOKEN" not in output


async def test_requests_of_a_watched_session_are_not_for_watchers(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        watcher = await place.client(Principal("eve", AccessRole.WATCH), numbers=True)
        session = await begun(place, tmp_path, client)
        await attach(watcher, session)
        place.agent.ask(1, session)
        await until(lambda: any(each.get("method") == "_antiphon/session/requested" for each in watcher.messages))
        assert not watcher.requests()
        client.choose(await client.asked())
        await end(place)


async def test_a_session_that_is_loaded_again_does_not_repeat_a_request_that_waits(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client, bob = await place.client(numbers=True), await place.client(BOB)
        session = await begun(place, tmp_path, client)
        await attach(bob, session)
        place.agent.ask(1, session)
        asked = await client.asked()
        await attach(client, session, after=0)
        await client.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        await idle()
        assert len(client.requests()) == 1
        again = client.messages[client.messages.index(asked) + 1 :]
        assert [each["params"]["number"] for each in again if each.get("method") == "_antiphon/session/requested"] == [
            asked["params"]["_meta"]["antiphon"]["number"]
        ] * 2, "its event is not left out of the replay"
        bob.choose(await bob.asked())
        cancelled = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": asked["id"]}}
        await until(lambda: cancelled in client.messages)
        await end(place)


async def test_all_requests_that_wait_are_shown_at_once(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        place.agent.ask(1, session)
        place.agent.request(
            2, "fs/write_text_file", {"sessionId": session, "path": str(tmp_path / "a"), "content": "x"}
        )
        place.agent.ask(3, session)
        await until(lambda: len(client.requests()) == 3)
        client.choose(next(each for each in client.requests() if each["params"]["toolCall"]["toolCallId"] == "call-3"))
        await until(lambda: answers(place.agent))
        assert [msgspec.json.decode(each)["id"] for each in answers(place.agent)] == [3]


async def test_a_write_that_was_requested_before_the_turn_was_cancelled_is_not_asked_about_after_it(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        for id in (1, 2):
            params = {"sessionId": session, "path": str(tmp_path / f"{id}.txt"), "content": "x"}
            place.agent.request(id, "fs/write_text_file", params)
        await client.asked()
        place.agent.request(
            3, "fs/write_text_file", {"sessionId": session, "path": str(tmp_path / "3.txt"), "content": "x"}
        )
        client.notify("session/cancel", {"sessionId": session})
        await until(lambda: len(answers(place.agent)) == 3)
        assert all(b"error" in each for each in answers(place.agent)) and not any(
            (tmp_path / f"{id}.txt").exists() for id in (1, 2, 3)
        )


async def test_what_a_person_filled_into_a_form_is_not_stored_and_not_shown_to_others(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        forms = await place.client(elicitation={"form": {}})
        watcher = await place.client(Principal("eve", AccessRole.WATCH), numbers=True)
        session = await begun(place, tmp_path, forms)
        await attach(watcher, session)
        place.agent.request(
            1, "elicitation/create", {"sessionId": session, "mode": "form", "message": "?", "requestedSchema": {}}
        )
        asked = await forms.asked("elicitation/create")
        forms.answer(asked["id"], {"action": "accept", "content": {"password": "hunter2"}})
        await until(lambda: answers(place.agent))
        assert b"hunter2" in answers(place.agent)[0]
        await until(lambda: watcher.messages[-1].get("method") == "_antiphon/session/resolved")
        assert watcher.messages[-1]["params"]["result"] == {"action": "accept"}
        assert not any(b"hunter2" in event for event in place.journal.events["key0"])


FORM = {"mode": "form", "message": "?", "requestedSchema": {}}


async def test_a_question_about_a_request_is_for_the_client_that_sent_it_under_its_own_id(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client, other = await place.client(elicitation={"form": {}}), await place.client(BOB, elicitation={"form": {}})
        client.send(b'{"jsonrpc":"2.0","id":"mine","method":"_vendor/sign_in","params":{}}')
        at_agent = (await place.agent.got("_vendor/sign_in"))["id"]
        place.agent.request("q", "elicitation/create", {"requestId": at_agent, **FORM})
        asked = await client.asked("elicitation/create")
        assert asked["params"]["requestId"] == "mine"
        client.answer(asked["id"], {"action": "accept", "content": {"code": "7"}})
        await until(lambda: answers(place.agent))
        assert answers(place.agent) == [
            b'{"jsonrpc":"2.0","id":"q","result":{"action":"accept","content":{"code":"7"}}}'
        ]
        assert not other.requests("elicitation/create")


async def test_a_question_about_nothing_is_for_every_driver_and_the_first_answer_wins(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        forms: dict[str, object] = {"form": {}}
        client, other = await place.client(elicitation=forms), await place.client(BOB, elicitation=forms)
        shared = await place.client(Principal("eve", AccessRole.DRIVE, frozenset({"key0"})), elicitation=forms)
        plain = await place.client()
        place.agent.request("q", "elicitation/create", FORM)
        asked, too = await client.asked("elicitation/create"), await other.asked("elicitation/create")
        other.answer(too["id"], {"action": "decline"})
        await until(lambda: answers(place.agent))
        assert answers(place.agent) == [b'{"jsonrpc":"2.0","id":"q","result":{"action":"decline"}}']
        cancelled = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": asked["id"]}}
        await until(lambda: cancelled in client.messages)
        assert not shared.requests("elicitation/create") and not plain.requests("elicitation/create")


async def test_a_question_that_no_client_can_answer_is_cancelled(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        await place.client()
        place.agent.request(1, "elicitation/create", FORM)
        await until(lambda: len(answers(place.agent)) == 1)
        leaving = await place.client(elicitation={"form": {}})
        place.agent.request(2, "elicitation/create", FORM)
        await leaving.asked("elicitation/create")
        await leaving.leave()
        await until(lambda: len(answers(place.agent)) == 2)
        place.agent.request(3, "elicitation/create", {"requestId": 12345, **FORM})
        await until(lambda: len(answers(place.agent)) == 3)
        assert all(msgspec.json.decode(each)["result"] == {"action": "cancel"} for each in answers(place.agent))
