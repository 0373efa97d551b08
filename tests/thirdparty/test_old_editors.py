"""An editor of version 1 with agents that speak version 2 alone, through `antiphon bridge`: the real CLIs, with a model on loopback."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import antiphon
from antiphon import v1
from tests.engines.client import Can, Client, connected
from tests.engines.model.steps import Gate, Text, Wait, wait_limit
from tests.thirdparty.adapters import NAMES, Adapter, adapter

pytestmark = [pytest.mark.slow, pytest.mark.prove, pytest.mark.timeout(180)]


def fill_in(form: v1.FormElicitation) -> v1.Accepted:
    return v1.Accepted({next(iter(form.requested_schema.properties)): "Soprano"})


async def answered(client: Client, on: Adapter) -> None:
    reply = await client.say("sing")
    assert (reply.text, reply.stop) == ("echo: sing", "end_turn")


async def permitted(client: Client, on: Adapter) -> None:
    """Allowed once, then rejected: the one runs, the other does not."""
    if on.name == "codex-acp":  # in its usual mode the model decides
        await client.session.set_mode("workspace-write")
    for file, decision in (("one", "allow_once"), ("two", "reject_once")):
        client.decisions.append(decision)
        on.script(f"make {file}", on.at.calls.asked_command(f"touch {file}"))
        await client.say(f"make {file}")
        assert (on.at.folder / file).exists() == (decision == "allow_once"), decision
        asked = client.asked[-1]
        assert asked.tool_call.title and asked.tool_call.kind is v1.ToolKind.EXECUTE


async def queued(client: Client, on: Adapter) -> None:
    """A prompt that is sent while another one is answered has a response of its own."""
    gate = Gate()
    on.script("one", Text("first "), Wait(gate), Text("song"))
    first = asyncio.ensure_future(client.say("one"))
    await gate.is_reached()
    second = asyncio.ensure_future(client.say("two"))
    await client.until(lambda: any("session/prompt" in str(each) and "two" in str(each) for each in client.sent))
    gate.open()
    replies = [await first, await second]
    assert "".join(reply.text for reply in replies) == "first songecho: two"
    assert [reply.stop for reply in replies] == ["end_turn", "end_turn"]


async def cancelled(client: Client, on: Adapter) -> None:
    gate = Gate()
    on.script("go on", Text("This goes on "), Wait(gate))
    turn = client.session.prompt("go on")
    await gate.is_reached()
    await client.until(lambda: client.all_text.endswith("This goes on "))
    assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
    await gate.is_left()
    assert (await client.say("still there?")).text == "echo: still there?"


async def cancelled_while_asked(client: Client, on: Adapter) -> None:
    """A turn that is cancelled while the user is asked: the request is cancelled with it."""
    asked = asyncio.Event()

    async def never(request: v1.RequestPermission) -> Any:
        asked.set()
        await asyncio.Event().wait()

    client.decisions.append(never)
    on.script("make three", on.at.calls.asked_command("touch three"))
    turn = client.session.prompt("make three")
    await asked.wait()
    assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
    assert not (on.at.folder / "three").exists()
    assert (await client.say("and now?")).stop == "end_turn"


async def asked_a_question(client: Client, on: Adapter) -> None:
    on.script("ask me", on.question)
    if on.name == "codex-acp":  # it asks nothing in its usual mode
        await client.session.set_config_option("collaboration_mode", "plan")
    await client.say("ask me")
    assert "Which voice?" in str(client.forms[-1])
    assert any("Soprano" in str(asked.body) for asked in on.at.model.asked)


async def failed(client: Client, on: Adapter) -> None:
    """An error of the work is the error of the prompt, and an unknown session has one too."""
    on.script("fail", on.failure)
    with pytest.raises(antiphon.RequestRefused) as error:
        await client.say("fail")
    assert "no such chord" in str(error.value), error.value
    with pytest.raises(antiphon.RequestRefused):
        await client.agent.load_session("no-such-session", on.at.folder)


@pytest.mark.parametrize("name", NAMES)
async def test_an_editor_of_version_1_uses_an_agent_of_version_2_through_a_bridge(name: str, tmp_path: Path) -> None:
    with adapter(name, tmp_path) as on:
        async with connected(on.at, Can(files=None, forms=fill_in)) as client:
            await client.open()
            for step in (answered, permitted, queued, cancelled, cancelled_while_asked, asked_a_question, failed):
                async with asyncio.timeout(wait_limit()):
                    await step(client, on)
            session = client.session.id
        async with connected(on.at, Can(files=None)) as client, asyncio.timeout(wait_limit()):  # another process
            replayed = await client.load(session)
            assert "echo: sing" in replayed.text and "This goes on" in replayed.text
            users = "".join(each.content.text for each in replayed.of(v1.UserMessageChunk))
            assert "sing" in users and "make one" in users
            assert (await client.say("again")).text == "echo: again"
            await client.resume(session)
            assert (await client.say("more")).text == "echo: more"
