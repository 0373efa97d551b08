"""Browsers that sign in with a token or a share: a bounded number of them, with its limits, and no longer than it is good."""

import asyncio
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


async def browser_of(store: TokenStore, token: AccessToken) -> tuple[AccessToken, str]:
    """Sign a browser in with a token that is good."""
    made = await store.create_for_browser(token)
    assert made is not None
    return made


async def test_a_further_browser_of_a_share_signs_out_the_first(tmp_path: Path) -> None:
    async with shared(tmp_path, Clock()) as (store, share):
        gone: list[int] = []
        store.revoked = lambda token: gone.append(token.id)
        made = [await browser_of(store, share) for _ in range(BROWSERS + 2)]
        assert [token.id for token, _ in made[:2]] == gone
        assert [each.id for each in store.browsers(share.id)] == [token.id for token, _ in made[2:]]
        assert store.find(made[0][1]) is None and store.find(made[-1][1]) is not None


async def test_a_browser_that_shows_its_own_token_is_another_browser_of_the_share(tmp_path: Path) -> None:
    async with shared(tmp_path, Clock()) as (store, share):
        browser, _ = await browser_of(store, share)
        second, _ = await browser_of(store, browser)
        assert second.parent == share.id and len(store.browsers(share.id)) == 2


async def test_the_browsers_of_a_share_end_with_it(tmp_path: Path) -> None:
    clock = Clock()
    async with shared(tmp_path, clock) as (store, share):
        _, secret = await browser_of(store, share)
        clock.now += 99
        _, later = await browser_of(store, share)
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
        refused = [place.hub.refuse_often(browsers[number % 2].principal, "session/prompt") for number in range(most)]
        assert not any(refused) and all(
            place.hub.refuse_often(each.principal, "session/prompt") for each in (token, *browsers)
        )


async def test_browsers_that_sign_in_at_once_are_no_more_than_those_that_come_one_by_one(tmp_path: Path) -> None:
    async with shared(tmp_path, Clock()) as (store, share):
        await asyncio.gather(*(browser_of(store, share) for _ in range(2 * BROWSERS)))
        assert len(store.browsers(share.id)) == BROWSERS


async def test_a_browser_whose_token_is_revoked_while_it_signs_in_is_not_signed_in(tmp_path: Path) -> None:
    async with shared(tmp_path, Clock()) as (store, share):
        signing_in = asyncio.ensure_future(store.create_for_browser(share))
        await asyncio.sleep(0)
        await store.revoke(share.id)
        assert await signing_in is None and not store.list("share", "browser")
        await store.load()
        assert not store.list("share", "browser")


async def test_two_tokens_have_two_names(tmp_path: Path) -> None:
    async with shared(tmp_path, Clock()) as (store, _):
        made = [(await store.create("token", "phone", AccessRole.DRIVE))[0] for _ in range(2)]
        assert [each.name for each in made] == ["phone", f"phone {made[1].id}"]
        codes = [await store.redeem(await store.launch_code(AccessRole.DRIVE)) for _ in range(2)]
        assert len({found[0].name for found in codes if found is not None}) == 2
        await store.revoke(made[0].id)
        assert (await store.create("token", "phone", AccessRole.DRIVE))[0].name == "phone"
