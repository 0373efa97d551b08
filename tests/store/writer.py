"""A process that appends. `together DIR NAME COUNT`: to its own session and a shared one, when it is started.
`endlessly DIR`: one by one, each number printed once it is on the disk."""

import asyncio
import itertools
import sys
from contextlib import suppress
from pathlib import Path

from antiphon.store.errors import SessionExists
from antiphon.store.sessions import SessionStore
from tests.store.stores import opened


async def together(directory: Path, name: str, count: int) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    async with opened(directory) as store:
        await store.create(name, "demo", "/w")
        with suppress(SessionExists):
            await store.create("shared", "demo", "/w")
        for number in range(count):
            update = f"{name} {number}".encode()
            await asyncio.gather(store.append(name, [update]), store.append("shared", [update]))


async def endlessly(directory: Path) -> None:
    async with opened(directory) as store:
        with suppress(SessionExists):
            await store.create("s", "demo", "/w")
        begin = len(await store.history("s")) // 2
        for number in itertools.count(begin):
            await two_lines(store, number)
            print(number, flush=True)


async def two_lines(store: SessionStore, number: int) -> None:
    await store.append("s", [f"{number} a".encode(), f"{number} b".encode()])


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    asyncio.run(together(Path(where), rest[0], int(rest[1])) if what == "together" else endlessly(Path(where)))
