"""Browsers that sign in with a token or a share: a bounded number of them, with its limits, and no longer than it is good."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from antiphon.gateway.access.tokens import BROWSERS, AccessToken, TokenStore
from antiphon.gateway.base import AccessRole
from antiphon.gateway.data import GatewayData
from tests.gateway.peers import QUICK, stage


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def shared(directory: Path, clock: Clock) -> AsyncIterator[tuple[TokenStore, AccessToken]]:
    """The tokens of a gateway, with a share."""
    async with GatewayData.open(directory) as data:
        store = TokenStore(data.database, directory, clock=clock)
        await store.load()
        yield store, (await store.create("share", "link", AccessRole.WATCH, sessions=["key"], lifetime=100))[0]


async def test_a_further_browser_of_a_share_signs_out_the_first(tmp_path: Path) -> None:
    async with shared(tmp_path, Clock()) as (store, share):
        gone: list[int] = []
        store.revoked = lambda token: gone.append(token.id)
        made = [await store.create_for_browser(share) for _ in range(BROWSERS + 2)]
        assert [token.id for token, _ in made[:2]] == gone
        assert [each.id for each in store.browsers(share.id)] == [token.id for token, _ in made[2:]]
        assert store.find(made[0][1]) is None and store.find(made[-1][1]) is not None


async def test_a_browser_that_shows_its_own_token_is_another_browser_of_the_share(tmp_path: Path) -> None:
    async with shared(tmp_path, Clock()) as (store, share):
        browser, _ = await store.create_for_browser(share)
        second, _ = await store.create_for_browser(browser)
        assert second.parent == share.id and len(store.browsers(share.id)) == 2


async def test_the_browsers_of_a_share_end_with_it(tmp_path: Path) -> None:
    clock = Clock()
    async with shared(tmp_path, clock) as (store, share):
        _, secret = await store.create_for_browser(share)
        clock.now += 99
        _, later = await store.create_for_browser(share)
        clock.now += 2
        assert store.find(secret) is None and store.find(later) is None and not store.browsers(share.id)
        clock.now -= 2
        await store.revoke(share.id)
        assert store.find(secret) is None and store.find(later) is None
        await store.load()
        assert not store.list("share", "browser")


async def test_browsers_send_no_more_prompts_than_their_token_may(tmp_path: Path) -> None:
    token = AccessToken(7, "share", "link", AccessRole.DRIVE, b"", None, 0, None)
    browsers = [AccessToken(id, "browser", "link", AccessRole.DRIVE, b"", None, 0, None, 7) for id in (8, 9)]
    async with stage(tmp_path, QUICK) as place:
        most = place.hub.limits.prompts_per_minute
        refused = [place.hub.refuse_prompt(browsers[number % 2].principal) for number in range(most)]
        assert not any(refused) and all(place.hub.refuse_prompt(each.principal) for each in (token, *browsers))
