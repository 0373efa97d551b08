"""Random faults of a gateway as people start it, from a seed: whatever happens when, every user sees every event once, with its content.

ANTIPHON_SCHEDULES=500 says how many schedules there are, ANTIPHON_SCHEDULE=17 runs the one that failed.
"""

import asyncio
import os
import random
from functools import partial
from pathlib import Path

import pytest

from tests.gateway.faults import FaultyGateway, ReturningUser, SmallDisk
from tests.gateway.peers import RawClient
from tests.gateway.test_faults import same
from tests.limits import limit
from tests.waits import until

pytestmark = pytest.mark.slow

CHOSEN = os.environ.get("ANTIPHON_SCHEDULE")
SCHEDULES = int(os.environ.get("ANTIPHON_SCHEDULES") or "30")
PARTS = 1 if CHOSEN else 3  # side by side: a schedule waits more than it works
PROMPTS = ("/many 30", "/slow 4", "/permission", "/big 300", "hello")
FAULTS = ("nothing", "cut", "cut watcher", "kill agent", "kill gateway", "fill disk", "read slowly", "jump")


async def back(*users: ReturningUser) -> None:
    """Let users connect whose connection has ended."""
    for user in users:
        if user.client is not None and user.client.is_lost:
            await user.leave()
        if user.client is None:
            await user.come()


async def strike(fault: str, draw: random.Random, gateway: FaultyGateway, *users: ReturningUser) -> None:
    """Let one fault happen."""
    user, watcher = users
    match fault:
        case "cut":
            await user.cut()
        case "cut watcher":
            await watcher.cut()
        case "kill agent":
            gateway.kill_agent()
        case "kill gateway":
            gateway.kill()
            await until(lambda: all(each.client is None or each.client.is_lost for each in users))
        case "fill disk":
            assert gateway.disk is not None
            gateway.disk.fill()
            try:
                await (await gateway.client()).leave()
            finally:
                gateway.disk.free()
        case "read slowly":
            watcher.here.transport.pause()
        case "jump":
            gateway.jump(draw.choice((-86_400.0, -1.0, 0.0, 3_600.0)))
        case _:
            pass


def _may_strike(client: RawClient, wanted: int, asked: int) -> bool:
    """Whether so many frames have arrived, or no more will before something is done."""
    return (
        client.is_lost
        or len(client.frames) >= wanted
        or bool(client.requests())
        or any(each.get("id") == asked and "method" not in each for each in client.messages)
    )


async def play(seed: int, gateway: FaultyGateway) -> None:
    """Play one schedule in a session of its own."""
    draw = random.Random(seed)
    user, watcher = ReturningUser(gateway), ReturningUser(gateway)
    await user.come()
    watcher.session = user.session
    for count in range(draw.randint(2, 4)):
        await back(user, watcher)
        client, wanted = user.here, len(user.here.frames) + draw.randint(0, 10)
        text = draw.choice(PROMPTS)
        asked = client.prompt(user.session, text if text.startswith("/") else f"{text} {count}")
        await until(partial(_may_strike, client, wanted, asked))
        await strike(draw.choice(FAULTS), draw, gateway, user, watcher)
        await gateway.idle(user.session)
    if watcher.client is not None and not watcher.client.is_lost:
        watcher.client.transport.resume()
    await back(user, watcher)
    await same(gateway, user, watcher)
    said = [text for text in user.texts if text.startswith("hello ")]
    assert len(said) == len(set(said)), "no prompt is sent twice"


# `make prove` plays them; a number that was asked for is played whole.
LATER = () if "ANTIPHON_SCHEDULES" in os.environ else (pytest.mark.prove,)


@pytest.mark.parametrize("part", [pytest.param(part, marks=LATER) for part in range(PARTS)])
async def test_users_see_every_event_once_whatever_breaks_when(part: int, tmp_path: Path) -> None:
    seeds = [int(CHOSEN)] if CHOSEN else range(part, SCHEDULES, PARTS)
    options = ("--limit", "unsent=64K")
    with (
        SmallDisk.mounted(tmp_path / "data", "64m") as disk,
        FaultyGateway(tmp_path, *options, without="quick restarts,clock", disk=disk) as gateway,
    ):
        for seed in seeds:
            try:
                async with asyncio.timeout(limit()):
                    await play(seed, gateway)
            except BaseException as error:
                error.add_note(f"ANTIPHON_SCHEDULE={seed}")
                raise
