"""The owner of every session of one process."""

import pytest

from antiphon.journal.owner import LOCAL, LocalOwner, NoOwner, Placement


async def test_a_request_reaches_the_owner_of_its_session() -> None:
    owner = LocalOwner()

    async def handle(request: bytes) -> bytes:
        return b"answer to " + request

    owner.serve("s", handle)
    assert await owner.ask("s", b"one") == b"answer to one"


async def test_a_session_that_is_not_open_has_no_owner() -> None:
    owner = LocalOwner()
    with pytest.raises(NoOwner) as caught:
        await owner.ask("s", b"one")
    assert "`s`" in str(caught.value) and caught.value.hint


async def test_every_session_is_placed_here() -> None:
    owner = LocalOwner()
    assert (await owner.place(Placement("claude", "/w"))).name == LOCAL


async def test_the_one_worker_is_alive_and_counts_its_sessions() -> None:
    owner = LocalOwner()

    async def handle(request: bytes) -> bytes:
        return request

    owner.serve("s", handle)
    watch = owner.watch()
    worker = await anext(watch)
    assert (worker.name, worker.alive, worker.sessions) == (LOCAL, True, 1)
    await watch.aclose()  # type: ignore[attr-defined]
    owner.forget("s")
    with pytest.raises(NoOwner):
        await owner.ask("s", b"one")
