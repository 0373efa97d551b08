"""Which projects are trusted, and with which text."""

import asyncio
from pathlib import Path

import pytest

from antiphon.store.decisions import TrustedProject, TrustStore
from antiphon.store.schema import open_database
from tests.store.stores import Clock


async def test_trust_outlives_the_process_and_ends_when_the_file_changes(tmp_path: Path) -> None:
    async with asyncio.timeout(10):
        async with open_database(tmp_path) as database:
            await TrustStore(database, Clock()).trust("/w", "one")
        async with open_database(tmp_path) as database:
            store = TrustStore(database)
            assert await store.trusted("/w", "one")
            assert not await store.trusted("/w", "two")
            assert not await store.trusted("/w", "")
            assert not await store.trusted("/w/below", "one")
            assert await store.all() == [TrustedProject("/w", "one", "2026-01-02T03:04:06.000000Z")]


async def test_to_trust_again_is_to_trust_the_new_text_only(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        store = TrustStore(database)
        await store.trust("/w", "one")
        await store.trust("/w", "two")
        assert (await store.trusted("/w", "one"), await store.trusted("/w", "two")) == (False, True)


async def test_trust_is_taken_back(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        store = TrustStore(database)
        await store.trust("/w", "one")
        assert (await store.distrust("/w"), await store.distrust("/w")) == (True, False)
        assert not await store.trusted("/w", "one")


async def test_nothing_cannot_be_trusted(tmp_path: Path) -> None:
    async with asyncio.timeout(10), open_database(tmp_path) as database:
        with pytest.raises(ValueError, match="digest"):
            await TrustStore(database).trust("/w", "")
