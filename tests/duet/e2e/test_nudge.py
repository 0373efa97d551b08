"""Going on by itself: when a turn stops at a limit and tasks are left."""

import json

import pytest

from antiphon import v1
from tests.duet.e2e.editors import Place
from tests.duet.e2e.scenarios import open_with, shown, stops
from tests.engines.claude.model.steps import Call
from tests.engines.client import Client, connected
from tests.engines.model.steps import Gate, Stop, Text, Wait

pytestmark = pytest.mark.slow

LEFT = [{"id": "verse-2", "title": "Sing the second verse", "status": "open"}]
ROUND = Call("Bash", {"command": "true", "description": "Nothing"})
CUT_SHORT = Text("la la la"), Stop("max_output_tokens")
AT_ONCE = "[duet]\nnudge_cooldown = 0\n"


def limited(at: Place, tasks: list[dict[str, str]] = LEFT, config: str = AT_ONCE) -> None:
    """Claude Code may ask its model once in a turn, and this is left to do."""
    at.environment["CLAUDE_CODE_MAX_TURNS"] = "1"
    at.program("dot", f"[ \"$1 $2\" = 'ls --json' ] && cat <<'END'\n{json.dumps(tasks)}\nEND")
    at.configure(config)


def added(client: Client) -> list[str]:
    """What was sent for the user, as the user sees it."""
    return [str(each["content"]["text"]) for each in client.updates_of("user_message_chunk")]


async def test_a_turn_that_stops_at_a_limit_goes_on_while_tasks_are_left(at: Place) -> None:
    limited(at)
    at.claude.model.answers(ROUND)
    at.claude.model.answers(Text("Now it is done."))
    async with connected(at) as client:
        reply = await client.say("sing both verses")
        [nudge] = added(client)
        lines = shown(client)
        id = client.session.id
    assert reply.stop == "end_turn" and reply.text.endswith("Now it is done.") and stops(client) == ["end_turn"]
    assert len(at.claude.model.asked) == 2 and at.claude.model.last.prompt == nudge
    async with connected(at) as client:
        await client.load(id)
        assert shown(client) == lines


async def test_a_limit_of_tokens_is_one_too(at: Place) -> None:
    limited(at)
    at.codex.model.answers(Text("la la la"), Stop("max_output_tokens"))
    at.codex.model.answers(Text("Now it is done."))
    async with connected(at) as client:
        await open_with(client, route="codex")
        reply = await client.say("sing both verses")
        assert len(added(client)) == 1
    assert reply.stop == "end_turn" and "Now it is done." in reply.text


async def test_another_command_may_list_the_open_tasks(at_codex: Place) -> None:
    at_codex.program("left-to-do", f"cat <<'END'\n{json.dumps(LEFT)}\nEND")
    at_codex.configure(f'{AT_ONCE}tasks = ["left-to-do", "--all"]\n')
    at_codex.codex.model.answers(*CUT_SHORT)
    async with connected(at_codex) as client:
        await client.say("sing both verses")
        assert len(added(client)) == 1


async def test_it_goes_on_so_often_and_no_more(at_codex: Place) -> None:
    limited(at_codex, config=f"{AT_ONCE}nudge_max = 2\n")
    at_codex.codex.model.otherwise = CUT_SHORT
    async with connected(at_codex) as client:
        reply = await client.say("go round in circles")
        assert len(added(client)) == 2
    assert reply.stop == "max_tokens" and len(at_codex.codex.model.asked) == 3


async def test_where_no_task_is_left_or_known_it_does_not_go_on(at_codex: Place) -> None:
    limited(at_codex)
    at_codex.codex.model.otherwise = CUT_SHORT
    async with connected(at_codex) as client:
        for number, program in enumerate(("echo '[]'", "echo 'no JSON'", "exit 1"), 1):
            at_codex.program("dot", program)
            reply = await client.say("sing")
            assert added(client) == [] and reply.stop == "max_tokens" and len(at_codex.codex.model.asked) == number


async def test_a_turn_that_ends_by_itself_is_not_gone_on_with(at_codex: Place) -> None:
    limited(at_codex)
    async with connected(at_codex) as client:
        assert (await client.say("sing")).stop == "end_turn"
        assert added(client) == []
    assert len(at_codex.codex.model.asked) == 1


async def test_it_is_switched_off_and_on(at_codex: Place) -> None:
    limited(at_codex)
    async with connected(at_codex) as client:
        await client.open()
        assert "off" in (await client.say("/nudge off")).text
        at_codex.codex.model.answers(*CUT_SHORT)
        assert (await client.say("sing")).stop == "max_tokens" and added(client) == []
        assert "on" in (await client.say("/nudge on")).text
        at_codex.codex.model.answers(*CUT_SHORT)
        assert (await client.say("sing")).stop == "end_turn" and len(added(client)) == 1
    assert len(at_codex.codex.model.asked) == 3


async def test_it_is_off_from_the_beginning_if_the_config_file_turns_it_off(at_codex: Place) -> None:
    limited(at_codex, config=f"{AT_ONCE}nudge = false\n")
    at_codex.codex.model.answers(*CUT_SHORT)
    async with connected(at_codex) as client:
        assert (await client.say("sing")).stop == "max_tokens" and added(client) == []


async def test_a_cancel_stops_it(at_codex: Place) -> None:
    limited(at_codex)
    gate = Gate()
    at_codex.codex.model.answers(*CUT_SHORT)
    at_codex.codex.model.answers(Text("la la "), Wait(gate))
    at_codex.codex.model.otherwise = CUT_SHORT
    async with connected(at_codex) as client:
        await client.open()
        turn = client.session.prompt("sing")
        await gate.is_reached()
        assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
        assert len(added(client)) == 1 and stops(client) == ["cancelled"]
        at_codex.codex.model.otherwise = (Text("I am here."),)
        assert (await client.say("are you there?")).stop == "end_turn"
    assert len(at_codex.codex.model.asked) == 3
