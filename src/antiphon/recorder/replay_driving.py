"""The client's part against a real agent: started here, spoken to, and ended with everything it started."""

import asyncio
from collections.abc import Sequence
from typing import Final

from antiphon.config.environment import with_new_sessions
from antiphon.errors import ConnectionClosed
from antiphon.recorder.replay_client import ClientPlayer
from antiphon.transports.process import ProcessTransport, spawn

__all__ = ["drive"]

TAIL: Final = 1.0
"""Seconds in which updates may come that were recorded after the last answer."""


async def drive(player: ClientPlayer, command: Sequence[str], cwd: str, patience: float) -> str | None:
    """Play against this agent. Why it ended early, in words, if it did: it died, or was silent for so many seconds."""
    agent = await spawn(command, cwd=cwd, env=with_new_sessions())
    try:
        return await _converse(player, agent, patience)
    except ConnectionClosed as error:
        return str(error)
    finally:
        await agent.close()


async def _converse(player: ClientPlayer, agent: ProcessTransport, patience: float) -> str | None:
    clock = asyncio.get_running_loop().time
    receiving = asyncio.ensure_future(agent.receive())
    try:
        while True:
            for line in player.ready(clock()):
                await agent.send(line.rstrip(b"\n"))
            if player.is_through and not player.wants_more:
                return None
            pause = player.wait(clock())
            limit = TAIL if player.is_through else patience
            await asyncio.wait([receiving], timeout=limit if pause is None else pause)
            if receiving.done():
                frame = receiving.result()
                if frame is None:
                    return None if player.is_through else str(agent.lost)
                player.hear(bytes(frame) if isinstance(frame, bytes | bytearray) else frame.head, clock())
                receiving = asyncio.ensure_future(agent.receive())
            elif pause is None:
                return None if player.is_through else f"the agent was silent for {limit:g} seconds"
    finally:
        player.end(clock())
        receiving.cancel()
        await asyncio.wait([receiving])
