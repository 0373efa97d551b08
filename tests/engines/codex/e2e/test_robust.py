"""When things go wrong: unknown words, lines that are huge, a configuration that is wrong, a server that dies."""

import asyncio
import os
import signal
import sys

import pytest

from antiphon.errors import RequestRefused
from tests.engines.codex.bullets import proves
from tests.engines.codex.client import connected
from tests.engines.codex.model.steps import patch
from tests.engines.codex.place import Place
from tests.engines.codex.stand_in_lines import asked, message, notification, stand_in_says
from tests.engines.codex.versions import BOTH
from tests.engines.model.steps import Gate, Text, Wait
from tests.engines.proofs import STAND_IN

HUGE = 20 * 1024 * 1024


@proves("robust.unknown", on=[STAND_IN])
async def test_unknown_messages_are_ignored_and_counted(at: Place) -> None:
    stand_in_says(
        at,
        notification("thread/from/tomorrow", words=["a", {"b": None}]),
        notification("item/started", item={"type": "hologram", "id": "h1"}),
        notification("item/completed", item={"type": "hologram", "id": "h1"}),
        notification("item/agentMessage/delta", itemId=7),
        {"method": "everybody/from/tomorrow", "params": [1, 2]},
        {"neither": "this", "nor": "that"},
        asked("q", "item/from/tomorrow"),
        notification(
            "item/completed", item={"type": "agentMessage", "id": "m1", "text": "still here", "from_tomorrow": 1}
        ),
    )
    log = at.temporary / "log.txt"
    logged = (
        f"import logging; logging.basicConfig(level='INFO', filename={str(log)!r}); "
        "from antiphon.cli.main import main; main(['agent', '--engine', 'codex'])"
    )
    async with connected(at, command=(sys.executable, "-P", "-c", logged)) as client:
        for _ in range(2):
            answer = await client.say("sing")
            assert answer.text == "still here" and answer.stop == "end_turn"
        await client.session.close()
    text = log.read_text(encoding="utf-8")
    assert (
        "Codex sent messages that are not known here" in text
        and "'thread/from/tomorrow': 2" in text
        and "hologram" in text
    )


@proves("robust.bad-config", on=BOTH)
async def test_a_configuration_that_cannot_be_read_is_an_error_with_the_file_and_the_key(at: Place) -> None:
    at.settings(tables='[model_providers.other]\nname = "other"\nrequest_max_retries = "many"')
    async with connected(at) as client:
        with pytest.raises(RequestRefused) as caught:
            await client.open()
        text = str(caught.value)
        assert "config.toml" in text and "request_max_retries" in text and "hint: " in text, text
        at.settings()
        await client.open()  # without a restart of ours
        assert (await client.say("hello")).text == "echo: hello"


@pytest.mark.prove  # `tests/engines/test_line_process.py` shows it of any program
@proves("robust.long-line", "turn.once", on=[STAND_IN])  # Codex itself takes minutes for so long a message
async def test_a_line_of_20_mb_works(at: Place) -> None:
    stand_in_says(at, message("m1", "la" * (HUGE // 2)))
    async with connected(at) as client:
        for _ in range(2):
            answer = await client.say("sing at length")
            assert len(answer.text) == HUGE and answer.stop == "end_turn"


@proves("robust.crash", "approval.elsewhere")
async def test_a_question_of_a_server_that_dies_is_cancelled(at: Place) -> None:
    at.model.answers(patch("*** Add File: song.txt", "+la"))
    async with connected(at) as client:
        client.decisions.append(lambda _: asyncio.Event().wait())
        await client.open()
        await client.session.set_mode("default")
        turn = client.session.prompt("write")
        await client.until(lambda: client.asked)
        [pid] = at.processes()
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(RequestRefused):
            await turn
        await client.until(lambda: [each for each in client.frames if each.get("method") == "$/cancel_request"])
        assert (await client.say("go on")).text == "echo: go on" and not (at.folder / "song.txt").exists()


@proves("robust.crash")
async def test_all_sessions_learn_of_a_server_that_dies(at: Place) -> None:
    gates = Gate(), Gate()
    for gate in gates:
        at.model.answers(Text("la "), Wait(gate))
    async with connected(at) as client:
        turns = []
        for gate in gates:
            turns.append((await client.open()).prompt("sing for ever"))
            await gate.is_reached()
        [pid] = at.processes()
        os.kill(pid, signal.SIGKILL)
        for turn in turns:
            with pytest.raises(RequestRefused):
                await turn
