"""Sessions resumed, forked, closed and deleted, and those that another process has open."""

from uuid import uuid4

import pytest

from antiphon.errors import Code, RequestRefused
from antiphon.transcript.fork_point import fork_meta
from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import open_with, shown
from tests.engines.client import connected

pytestmark = pytest.mark.slow


async def test_a_resumed_session_knows_its_history_and_does_not_replay_it(at: Place) -> None:
    async with connected(at) as client:
        await open_with(client, route="duet", mode="acceptEdits")
        at.answer("Lethe.", "Mnemosyne.")
        await client.say("name a river")
        id = client.session.id
    async with connected(at) as client:
        await client.resume(id)
        assert client.session.id == id and client.option("route").current_value == "duet"
        assert client.updates_of("agent_message_chunk") == [] and client.updates_of("user_message_chunk") == []
        at.answer("It was Lethe.", "It was Mnemosyne.")
        await client.say("which one was it?")
    for each in (at.claude.model.last.everything, at.codex.model.last.everything):
        assert "Lethe." in each and "Mnemosyne." in each and "name a river" in each


async def test_a_fork_knows_the_history_and_leaves_the_first_session_alone(at: Place) -> None:
    async with connected(at) as client:
        await open_with(client, route="duet", mode="acceptEdits")
        at.answer("Lethe.", "Mnemosyne.")
        await client.say("name a river")
        await at.claude.keeps("Lethe.")
        first = client.session
        fork = await client.fork(first.id)
        assert fork.id != first.id and client.option("route").current_value == "duet"
        at.answer("The fork.", "The fork, too.")
        await client.say("the fork goes on")
        for each in (at.claude.model.last.everything, at.codex.model.last.everything):
            assert "name a river" in each and "the fork goes on" in each
        at.answer("The first.", "The first, too.")
        await client.say("and so does the first", first)
        for each in (at.claude.model.last.everything, at.codex.model.last.everything):
            assert "name a river" in each and "the fork goes on" not in each
    async with connected(at) as client:
        again = await client.load(fork.id)
        assert "Lethe." in again.text and "The fork, too." in again.text and "The first" not in again.text
        again = await client.load(first.id)
        assert "Lethe." in again.text and "The first, too." in again.text and "The fork" not in again.text


async def test_a_fork_that_is_cut_before_a_prompt_is_cut_for_both_engines(at: Place) -> None:
    async with connected(at) as client:
        await open_with(client, route="duet", mode="acceptEdits")
        at.answer("Lethe.", "Mnemosyne.")
        await client.say("name a river")
        at.answer("Styx.", "Acheron.")
        await client.say("name a darker one")
        await at.claude.keeps("Styx.")
        first = client.session
        fork = await client.fork(first.id, meta=fork_meta(["name a darker one"]))
        at.answer("The fork.", "The fork, too.")
        await client.say("go on from there")
        for each, own in ((at.claude.model.last, "Lethe."), (at.codex.model.last, "Mnemosyne.")):
            assert "name a river" in each.everything and own in each.everything
            assert not any(word in each.everything for word in ("darker", "Styx", "Acheron"))
    async with connected(at) as client:
        again = await client.load(fork.id)
        assert "Lethe." in again.text and "The fork, too." in again.text and "Styx" not in again.text
        again = await client.load(first.id)
        assert "Acheron." in again.text and "The fork" not in again.text


async def test_a_closed_session_ends_its_programs_and_can_be_loaded_again(at: Place) -> None:
    async with connected(at) as client:
        await client.say("remember the river")
        id, before = client.session.id, shown(client)
        await client.session.close()
        await at.claude.runs(0)
        await client.load(id)
        assert shown(client) == before and (await client.say("go on")).text == "echo: go on"


async def test_a_deleted_session_is_gone_with_the_engine_sessions(at: Place) -> None:
    async with connected(at) as client:
        await client.say("remember the river")
        await at.claude.keeps("echo: remember the river")
        id = client.session.id
        await client.session.close()
        await client.agent.delete_session(id)
        assert [each async for each in client.agent.list_sessions(at.folder)] == []
        with pytest.raises(RequestRefused) as caught:
            await client.load(id)
        assert caught.value.code == Code.RESOURCE_NOT_FOUND
        await client.agent.delete_session(id)  # twice is not an error
    async with connected(at) as client:
        assert [each async for each in client.agent.list_sessions(at.folder)] == []


async def test_a_session_that_does_not_exist_is_an_error(at_codex: Place) -> None:
    nobody = str(uuid4())
    async with connected(at_codex) as client:
        for open_it in (client.load, client.resume, client.fork):
            with pytest.raises(RequestRefused) as caught:
                await open_it(nobody)
            assert caught.value.code == Code.RESOURCE_NOT_FOUND


async def test_a_session_that_is_live_in_another_process_is_a_clear_error_and_free_when_that_ends(
    at: Place,
) -> None:
    async with connected(at) as other:
        await other.say("remember the river")
        id = other.session.id
        async with connected(at) as client:
            for open_it in (client.load, client.resume):
                with pytest.raises(RequestRefused) as caught:
                    await open_it(id)
                assert "hint: " in str(caught.value)
            with pytest.raises(RequestRefused):
                await client.agent.delete_session(id)
            assert id in [each.session_id async for each in client.agent.list_sessions(at.folder)]
            assert (await other.say("go on")).text == "echo: go on"  # and it is not disturbed
            await other.session.close()
            await client.load(id)
            assert (await client.say("mine now")).text == "echo: mine now"


async def test_a_session_that_was_closed_can_be_opened_in_another_process_while_the_first_one_runs(
    at_codex: Place,
) -> None:
    async with connected(at_codex) as one, connected(at_codex) as two:
        await one.say("remember the river")
        id = one.session.id
        await one.session.close()
        await two.load(id)
        assert (await two.say("mine now")).text == "echo: mine now"


async def test_two_processes_work_in_one_folder_at_a_time(at_codex: Place) -> None:
    async with connected(at_codex) as one, connected(at_codex) as two:
        assert (await one.say("of the river")).text == "echo: of the river"
        assert (await two.say("of the sea")).text == "echo: of the sea"
        assert one.session.id != two.session.id
        for client in (one, two):
            assert len([each async for each in client.agent.list_sessions(at_codex.folder)]) == 2
