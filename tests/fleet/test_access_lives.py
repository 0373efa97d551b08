"""Tokens of a fleet while connections are lost, answers do not come and callers are cancelled at any step: what was revoked ends everywhere,
a launch code is used once, no two tokens have one name, and all gateways agree in the end."""

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path

from antiphon.errors import AcpError
from antiphon.fleet.access.tokens import LOOK_INTERVAL, FleetTokens
from antiphon.fleet.simulation import SimulatedBroker, SimulatedServer
from antiphon.gateway.access.tokens import AccessToken
from antiphon.gateway.base import AccessRole
from tests.schedules import World, check

GATEWAYS = 3
USERS = 4


async def no_file() -> None:
    """Keep no token file."""


def _note(ended: "Counter[int]", token: AccessToken) -> None:
    ended[token.id] += 1


class Fleet:
    """Gateways, and people who use them."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._server = SimulatedServer(seed=world.schedule.seed)
        self._brokers = [self._server.connect() for _ in range(GATEWAYS)]
        self._gateways = [FleetTokens(broker, Path("nowhere")) for broker in self._brokers]
        self._ended: list[Counter[int]] = [Counter() for _ in self._gateways]
        for gateway, ended in zip(self._gateways, self._ended, strict=True):
            gateway._keep_file = no_file  # type: ignore[method-assign]
            gateway.revoked = partial(_note, ended)
        self._gone: list[tuple[AccessToken, str]] = []
        self._kept: list[str] = []
        self._mended_at = 0.0
        server = self._server
        for number, broker in enumerate(self._brokers):
            world.offer(f"cut {number}", partial(self._fault, broker))
        world.offer("restart", self._restart)
        world.offer("stale", lambda: setattr(server, "stale", 0.7))
        world.offer("unsure", lambda: setattr(server, "unsure", 0.4))

    async def _fault(self, broker: SimulatedBroker) -> None:
        self._server.cut(broker)
        await asyncio.sleep(self._world.random.choice([0.0, 0.2, 8.0]))
        self._server.mend(broker)
        self._mended_at = asyncio.get_running_loop().time()

    async def _restart(self) -> None:
        self._server.stop()
        await asyncio.sleep(self._world.random.choice([0.0, 0.2, 8.0]))
        self._server.start()
        self._mended_at = asyncio.get_running_loop().time()

    async def _settled(self) -> None:
        """Wait until every gateway has had the time to look at what was stored since the last fault."""
        loop = asyncio.get_running_loop()
        self._mended_at = loop.time()

        def is_early() -> bool:
            is_away = not all(broker.is_connected for broker in self._brokers)
            return is_away or loop.time() < self._mended_at + 3 * LOOK_INTERVAL

        while is_early():  # noqa: ASYNC110 - on a virtual clock
            await asyncio.sleep(1)

    async def play(self) -> None:
        try:
            for gateway in self._gateways:
                await gateway.load()
            self._server.delay = (0.0, 0.03)
            await asyncio.wait([self._world.start(self._use()) for _ in range(USERS)])
            self._server.unsure = self._server.stale = 0.0
            await self._settled()
            self._check()
        finally:
            for gateway in self._gateways:
                await gateway.close()

    async def _use(self) -> None:
        random = self._world.random
        for turn in range(2):
            try:
                one, two = random.sample(self._gateways, 2)
                token, secret = await one.create("token", f"name {turn}", AccessRole.DRIVE)
                self._kept.append(secret)
                await asyncio.sleep(random.choice([0.05, 0.2]))
                if (browser := await two.create_for_browser(token)) is not None:
                    self._kept.append(browser[1])
                code = await one.launch_code(AccessRole.DRIVE)
                used = await asyncio.gather(*(each.redeem(code) for each in self._gateways), return_exceptions=True)
                assert sum(isinstance(each, tuple) for each in used) <= 1
                if random.random() < 0.6:
                    await self._revoke(two, token, [secret, *([] if browser is None else [browser[1]])])
            except AcpError:
                assert self._world.acted

    async def _revoke(self, gateway: FleetTokens, token: AccessToken, secrets: list[str]) -> None:
        if not gateway.is_good(token):
            return  # it does not know of it yet
        for secret in secrets:
            self._kept.remove(secret)
            self._gone.append((token, secret))
        revoking = self._world.start(gateway.revoke(token.id))
        await asyncio.sleep(0)  # it has begun
        if self._world.acted and self._world.random.random() < 0.3:
            await self._world.pause()
            revoking.cancel()
        await asyncio.wait([revoking])

    def _check(self) -> None:
        lists = [gateway.list("token", "share", "browser") for gateway in self._gateways]
        assert lists[0] == lists[1] == lists[2], "all gateways agree"
        names = [token.name for token in lists[0] if token.parent is None]
        assert len(names) == len({*names}), names
        for gateway, ended in zip(self._gateways, self._ended, strict=True):
            assert not gateway.problem
            assert not any(gateway.find(secret) for _, secret in self._gone), "it was revoked"
            assert all(gateway.find(secret) for secret in self._kept), "it was not"
            assert max(ended.values(), default=1) == 1, "connections of a token are ended once"


async def lives(world: World) -> None:
    await Fleet(world).play()


def test_all_gateways_agree_on_tokens_whatever_happens() -> None:
    check(lives, ("cut 0", "cut 1", "cut 2", "restart", "stale", "unsure"))
