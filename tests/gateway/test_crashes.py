"""Agents that crash, gateways that are killed, processes that are parked: nothing is lost, nothing is sent twice."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from antiphon.errors import RequestError
from antiphon.gateway.agents.link import end_process
from antiphon.gateway.agents.process import AgentProcessState
from antiphon.gateway.base import AccessRole, Principal
from antiphon.transports.base import Transport
from antiphon.transports.process import ProcessTransport
from tests.gateway.peers import QUICK, HubClients, demo, stage, stored_stage
from tests.gateway.test_attachments import numbers
from tests.gateway.test_requests import begun
from tests.gateway.test_turns import attach, end
from tests.waits import idle, until


async def test_a_turn_whose_agent_crashes_is_reported_as_interrupted_and_never_sent_again(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.answers["session/load"] = lambda params: {}
        client, other = await place.client(), await place.client(numbers=True)
        session = await client.new(tmp_path)
        await attach(other, session)
        asked = client.prompt(session, "work")
        await place.agent.got("session/prompt")
        place.agent.say(session, "half")
        await until(lambda: client.texts == ["half"])
        await place.agent.crash()
        error = (await client.response(asked))["error"]
        assert "interrupted" in error["message"] and error["data"]["antiphon"] == {"interrupted": True}
        await until(lambda: other.messages[-1].get("method") == "_antiphon/session/turn_ended")
        assert other.messages[-1]["params"]["interrupted"] is True
        client.prompt(session, "more")
        await end(place, 2)
        assert [each["params"]["prompt"][0]["text"] for each in place.agent.received("session/prompt")] == [
            "work",
            "more",
        ]
        assert place.agent.starts == 2


async def test_an_agent_in_use_is_started_again_by_itself(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        await client.new(tmp_path)
        await place.agent.crash()
        await until(lambda: place.agent.starts == 2)


async def test_a_session_is_opened_again_with_resume_where_the_agent_has_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.capabilities = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
        place.agent.answers["session/resume"] = lambda params: {}
        client = await place.client()
        servers = [{"type": "http", "name": "n", "url": "https://x", "headers": []}]
        session = (await client.request("session/new", {"cwd": str(tmp_path), "mcpServers": servers}))["sessionId"]
        await place.agent.crash()
        client.prompt(session, "work")
        await end(place)
        opened = place.agent.received("session/resume")
        about = {"antiphon": {"unused": True}}
        assert [each["params"] for each in opened] == [
            {"sessionId": session, "cwd": str(tmp_path), "mcpServers": servers, "_meta": about}
        ]


async def test_the_replay_of_a_session_that_is_opened_again_is_not_shown_twice(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        place.agent.say(session, "one")
        await end(place)
        await place.agent.crash()
        asked = client.prompt(session, "two")
        opened = await place.agent.got("session/load")
        place.agent.say(session, "one")
        place.agent.result(opened["id"], {})
        await place.agent.got("session/prompt", 2)
        place.agent.say(session, "three")
        await end(place, 2)
        await client.response(asked)
        assert client.texts == ["one", "three"]


async def test_a_session_that_cannot_be_continued_can_still_be_read(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.capabilities = {}
        client = await place.client()
        session = await begun(place, tmp_path, client)
        place.agent.say(session, "one")
        await end(place)
        await place.agent.crash()
        error = await client.refused("session/prompt", {"sessionId": session, "prompt": []})
        assert "cannot be continued" in error["message"] and error["data"]["hint"]
        other = await place.client()
        await other.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert other.texts == ["work", "one"]


async def test_a_permission_request_of_an_agent_that_crashed_is_cancelled(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        place.agent.ask(1, session)
        asked = await client.asked()
        await place.agent.crash()
        cancelled = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": asked["id"]}}
        await until(lambda: cancelled in client.messages)
        client.choose(asked)
        await until(lambda: place.agent.starts == 2)
        later = await place.client()
        await later.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        await idle()
        assert not later.requests()


async def test_prompts_that_wait_are_sent_to_the_next_process(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.answers["session/load"] = lambda params: {}
        client = await place.client()
        session = await begun(place, tmp_path, client)
        waiting = client.prompt(session, "second")
        await until(lambda: place.hub.agents["demo"].sessions[b"s1"].turns.queued)
        await place.agent.crash()
        await end(place, 2)
        assert (await client.response(waiting))["result"] == {"stopReason": "end_turn"}


async def test_an_agent_that_never_starts_is_tried_less_and_less_often(tmp_path: Path) -> None:
    tries: list[float] = []

    async def source() -> Transport:
        tries.append(0)
        raise RequestError(-32603, "it does not start")

    limits = msgspec.structs.replace(QUICK, first_delay=30.0, longest_delay=100.0)
    async with stage(tmp_path, limits, source) as place:
        process = place.hub.agents["demo"]
        delays = []
        for _ in range(3):
            process._not_before = 0
            try:
                await process.ready()
            except RequestError:
                delays.append(process._not_before - process._now())
        assert 20 < delays[0] < 40 < delays[1] < 75 < delays[2] < 125
        with pytest.raises(RequestError, match="has crashed 3 times"):
            await process.ready()
        assert len(tries) == 3


async def test_an_agent_that_is_ended_because_its_sessions_moved_is_started_again_as_if_it_were_the_first_time(
    tmp_path: Path,
) -> None:
    limits = msgspec.structs.replace(QUICK, first_delay=30.0, longest_delay=100.0)
    async with stage(tmp_path, limits) as place:
        process = place.hub.agents["demo"]
        for _ in range(3):
            link = await process.ready()
            await end_process("demo", link, "another worker has one of its sessions", at_once=True)
            await until(lambda: process.link is None)
        await process.ready()
        assert place.agent.starts == 4
        await place.agent.crash()
        await until(lambda: process.link is None)
        with pytest.raises(RequestError, match="has crashed 1 times"):
            await process.ready()


async def test_a_prompt_waits_for_another_process_if_its_agent_is_ended_because_another_session_moved(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as place:
        client = await place.client(numbers=True)
        session = await client.new(tmp_path)
        process = place.hub.agents["demo"]
        await end_process("demo", await process.ready(), "another worker has one of its sessions", at_once=True)
        asked = client.prompt(session, "work")
        await place.agent.got("session/load")
        place.agent.answers["session/load"] = lambda _: {}
        await end_process("demo", await process.ready(), "another worker has one of its sessions", at_once=True)
        await end(place, 1)
        assert (await client.response(asked))["result"]["stopReason"] == "end_turn"
        assert place.agent.starts == 3 and len(place.agent.received("session/prompt")) == 1


async def test_the_process_of_an_idle_agent_is_ended_and_started_when_it_is_needed(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.answers["session/load"] = lambda params: {}
        client = await place.client()
        session = await begun(place, tmp_path, client)
        await end(place)
        process = place.hub.agents["demo"]
        await until(lambda: not process.sessions[b"s1"].turns.running)
        place.hub.limits = msgspec.structs.replace(
            QUICK, idle=0.0
        )  # only now: it may take long until a client is there
        await client.leave()
        process._look_again()
        await until(lambda: process.state is AgentProcessState.PARKED)
        place.hub.limits = QUICK
        assert not process.sessions
        other = await place.client()
        await other.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert other.texts == ["work"]
        other.prompt(session, "more")
        await end(place, 2)
        assert place.agent.starts == 2


async def test_a_process_whose_sessions_were_never_used_is_parked_unless_something_was_chosen_in_one(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, msgspec.structs.replace(QUICK, idle=0.02)) as place:
        place.agent.capabilities = {}
        place.agent.answers["session/set_mode"] = lambda params: {}
        process = place.hub.agents["demo"]
        client = await place.client()
        session = await client.new(tmp_path)
        await client.request("session/set_mode", {"sessionId": session, "modeId": "plan"})
        await client.leave()
        await idle()
        assert not process.can_park
        client = await place.client()
        await client.request("session/delete", {"sessionId": session})
        session = await client.new(tmp_path)
        await client.leave()
        await until(lambda: process.state is AgentProcessState.PARKED)
        again = await place.client()
        await again.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        asked = again.prompt(session, "work")
        await end(place)
        assert (await again.response(asked))["result"]["stopReason"] == "end_turn"


# A session that was never used, and that its agent does not know any more.


def refuses(place: HubClients, request: dict[str, Any]) -> None:
    """Let the agent answer that it does not know a session."""
    error = {"code": -32002, "message": "no such session"}
    place.agent.send(msgspec.json.encode({"jsonrpc": "2.0", "id": request["id"], "error": error}))


@pytest.mark.parametrize("loads", [True, False])
async def test_a_session_that_was_never_used_goes_on_with_an_agent_that_has_not_stored_it(
    tmp_path: Path, loads: bool
) -> None:
    """The agent opens a new one in its place, under another id; clients see the id that they have."""
    modes = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "plan", "name": "Plan"}]}
    async with stage(tmp_path) as place:
        place.agent.capabilities = {"loadSession": loads, "sessionCapabilities": {"fork": {}, "close": {}, "list": {}}}
        listed = [{"sessionId": id, "cwd": str(tmp_path)} for id in ("renamed", "third")]
        place.agent.answers |= {
            "session/new": lambda params: {"sessionId": "first", "modes": {**modes, "currentModeId": "plan"}},
            "session/set_mode": lambda params: {},
            "session/list": lambda params: {"sessions": listed},
            "session/fork": lambda params: {"sessionId": "forked"},
        }
        client, watcher = await place.client(), await place.client(numbers=True)
        session = await client.new(tmp_path)
        await attach(watcher, session)
        await place.agent.crash()
        place.agent.answers["session/new"] = lambda params: {"sessionId": "renamed", "modes": modes}
        asked = client.prompt(session, "work")
        if loads:
            refuses(place, await place.agent.got("session/load"))
        assert (await place.agent.got("session/prompt"))["params"]["sessionId"] == "renamed"
        mode = {"sessionUpdate": "current_mode_update", "currentModeId": "ask"}
        await until(lambda: any(each["params"].get("update") == mode for each in watcher.messages if "params" in each))
        place.agent.say("renamed", "a")
        place.agent.ask(7, "renamed")
        request = await client.asked()
        assert request["params"]["sessionId"] == session and client.texts == ["a"]
        client.choose(request)
        await until(lambda: any(each.get("id") == 7 for each in map(msgspec.json.decode, place.agent.lines)))
        client.notify("session/cancel", {"sessionId": session})
        assert (await place.agent.got("session/cancel"))["params"] == {"sessionId": "renamed"}
        await end(place, reason="cancelled")
        assert (await client.response(asked))["result"]["stopReason"] == "cancelled"
        assert await client.request("session/set_mode", {"sessionId": session, "modeId": "plan"}) == {}
        await client.request("session/fork", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        for method in ("session/set_mode", "session/fork"):
            assert (await place.agent.got(method))["params"]["sessionId"] == "renamed"
        rows = (await client.request("session/list", {}))["sessions"]
        assert sorted(row["sessionId"] for row in rows) == ["first", "forked", "third"], "each once"
        assert all(b"renamed" not in frame for frame in (*client.frames, *watcher.frames))


async def test_a_session_that_was_opened_anew_is_known_by_its_ids_after_a_restart_of_the_gateway(
    tmp_path: Path,
) -> None:
    async with stored_stage(tmp_path) as place:
        session = await (await place.client()).new(tmp_path)
    async with stored_stage(tmp_path, agent=place.agent) as place:
        place.agent.answers["session/new"] = lambda params: {"sessionId": "renamed"}
        client = await place.client()
        client.prompt(session, "work")
        refuses(place, await place.agent.got("session/load"))
        place.agent.say("renamed", "early")
        await end(place)
        await until(lambda: "early" in client.texts)
    async with stored_stage(tmp_path, agent=place.agent) as place:
        place.agent.answers["session/load"] = lambda params: {}
        client = await place.client()
        await client.request("session/load", {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []})
        assert client.texts == ["early", "work"]
        asked = client.prompt(session, "more")
        assert (await place.agent.got("session/load", 2))["params"]["sessionId"] == "renamed"
        await end(place, 2)
        await client.response(asked)


async def test_a_session_that_the_agent_opens_neither_again_nor_anew_is_an_error_with_what_to_do(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        await place.agent.crash()
        asked = client.prompt(session, "work")
        place.agent.answers["session/new"] = lambda params: {}
        refuses(place, await place.agent.got("session/load"))
        error = (await client.response(asked))["error"]
        assert "cannot be continued" in error["message"] and "new session" in error["data"]["hint"]


async def test_an_agent_learns_that_a_session_which_it_is_to_open_again_had_no_prompt(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.answers["session/load"] = lambda params: {}
        client = await place.client()
        session = await client.new(tmp_path)
        await place.agent.crash()
        client.prompt(session, "work")
        assert (await place.agent.got("session/load"))["params"]["_meta"] == {"antiphon": {"unused": True}}
        await end(place)
        await place.agent.crash()
        client.prompt(session, "more")
        assert "_meta" not in (await place.agent.got("session/load", 2))["params"]
        await end(place, 2)


async def test_a_gateway_that_was_killed_reports_the_turns_that_ran_as_interrupted(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.answers["session/load"] = lambda params: {}
        client = await place.client(numbers=True)
        session = await begun(place, tmp_path, client)
        place.agent.say(session, "half")
        place.agent.ask(1, session)
        await client.asked()
        seen = numbers(client)
        rows, events = dict(place.rows.rows), {key: list(found) for key, found in place.journal.events.items()}
    place.rows.rows, place.journal.events = rows, events  # as it was when it was killed
    place.journal.forget_leases()
    async with stage(tmp_path, earlier=place) as again:
        client = await again.client(numbers=True)
        state = await attach(client, session, seen[-1])
        assert state["turn"] is None
        await until(lambda: client.messages[-1].get("method") == "_antiphon/session/turn_ended")
        assert client.messages[-1]["params"]["interrupted"] is True
        assert seen + numbers(client) == list(range(1, len(again.journal.events["key0"]) + 1))
        assert not client.requests()
        assert len(again.agent.received("session/prompt")) == 1
        client.prompt(session, "more")
        await end(again, 2)


async def test_a_gateway_that_was_killed_ends_requests_that_waited_outside_of_a_turn(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client(numbers=True)
        session = await client.new(tmp_path)
        place.agent.say(session, "before")
        place.agent.ask(1, session)
        place.agent.say(session, "behind")
        await client.asked()
        await until(lambda: numbers(client) == [1, 2, 3])
        rows, events = dict(place.rows.rows), {key: list(found) for key, found in place.journal.events.items()}
    place.rows.rows, place.journal.events = rows, events  # as it was when it was killed
    place.journal.forget_leases()
    async with stage(tmp_path, earlier=place) as again:
        client = await again.client(numbers=True)
        await attach(client, session, 0)
        await until(lambda: client.messages[-1].get("method") == "_antiphon/session/resolved")
        assert numbers(client) == [1, 2, 3, 4] and not client.requests()
        assert b"askedAfter" not in again.rows.rows["key0"].state


async def test_a_request_outside_of_a_turn_that_was_answered_is_not_looked_for(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client(numbers=True)
        session = await client.new(tmp_path)
        place.agent.ask(1, session)
        client.choose(await client.asked())
        await until(lambda: numbers(client) == [1, 2])
        assert b"askedAfter" not in place.hub.agents["demo"].sessions[session.encode()].settings.stored()


async def test_drain_waits_for_turns_and_begins_none(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        waits = client.prompt(session, "later")
        await until(lambda: place.hub.agents["demo"].sessions[session.encode()].turns.queued == 1)
        draining = asyncio.ensure_future(place.hub.drain())
        await idle()
        assert not draining.done()
        assert (await client.refused("session/prompt", {"sessionId": session, "prompt": []}))["code"] == -32600
        await end(place)
        await draining
        refused = (await client.response(waits))["error"]
        assert refused["message"] == "The gateway is shutting down" and refused["data"]["recoverable"] is True
        assert len(place.agent.received("session/prompt")) == 1


async def test_a_gateway_that_ends_records_the_turns_that_run_as_interrupted(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await begun(place, tmp_path, client)
        asked = 3
        await place.hub.close()
        assert "interrupted" in (await client.response(asked))["error"]["message"]
        assert place.journal.events["key0"][-1].startswith(b"E")
        assert await place.rows.interrupted() == []
        assert session and client.is_lost


async def test_the_demo_that_is_killed_in_a_turn_is_started_again_and_goes_on(tmp_path: Path) -> None:
    started: list[ProcessTransport] = []

    async def source() -> Transport:
        transport = await demo(tmp_path)
        assert isinstance(transport, ProcessTransport)
        started.append(transport)
        return transport

    async with stage(tmp_path, source=source) as place:
        client = await place.client(numbers=True)
        session = await client.new(tmp_path)
        await client.response(client.prompt(session, "hello"))
        asked = client.prompt(session, "/permission")
        await client.asked()
        os.kill(started[0].pid, signal.SIGKILL)
        assert "interrupted" in (await client.response(asked))["error"]["message"]
        done = await client.response(client.prompt(session, "/many 5"))
        assert done["result"]["stopReason"] == "end_turn"
        assert client.texts[-5:] == ["0 ", "1 ", "2 ", "3 ", "4 "]
        assert numbers(client) == list(range(1, len(place.journal.events["key0"]) + 1))
        assert len(started) == 2


def recovery(error: dict[str, Any]) -> tuple[object, object]:
    return error["data"]["recoverable"], error["data"]["action"]


async def test_errors_of_the_gateway_have_whether_to_try_again_and_what_to_do(tmp_path: Path) -> None:
    limits = msgspec.structs.replace(QUICK, first_delay=30.0, longest_delay=100.0, prompts_per_minute=1)
    async with stage(tmp_path, limits) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        unknown = await client.refused("session/prompt", {"sessionId": "renamed", "prompt": []})
        assert recovery(unknown) == (False, "check the name")
        other = client.begin("_vendor/slow", {"sessionId": session})
        await place.agent.got("_vendor/slow")
        prompt = client.prompt(session, "work")
        await place.agent.got("session/prompt")
        too_many = await client.refused("session/prompt", {"sessionId": session, "prompt": []})
        assert recovery(too_many) == (True, "try again later")
        await place.agent.crash()
        assert recovery((await client.response(other))["error"]) == (True, "try again later"), "it is started again"
        interrupted = (await client.response(prompt))["error"]
        assert recovery(interrupted) == (False, "send another prompt"), "a prompt that has begun is never sent again"
        place.hub.agents["demo"]._not_before += 30
        crashed = await client.refused("session/new", {"cwd": str(tmp_path), "mcpServers": []})
        assert recovery(crashed) == (True, "try again later")


async def test_what_a_token_may_not_do_is_refused_with_the_role_that_may(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        session = await (await place.client()).new(tmp_path)
        watcher = await place.client(Principal("eve", AccessRole.WATCH))
        for method, params in (
            ("session/new", {"cwd": str(tmp_path), "mcpServers": []}),
            ("session/prompt", {"sessionId": session, "prompt": []}),
            ("_vendor/thing", {}),
        ):
            error = await watcher.refused(method, params)
            assert recovery(error) == (False, "use another token") and error["data"]["hint"]
        driver = await place.client()
        error = await driver.refused("logout", {})
        assert recovery(error) == (False, "use another token") and "the role admin" in error["data"]["hint"]
