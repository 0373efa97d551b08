"""The page over a fleet: workers and gateways are killed while people look, and nothing is shown twice, nothing is missing."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from tests.fleet.programs import FleetPrograms, fleet_programs
from tests.gateway.processes import Gateway
from tests.web.browser import (
    DESKTOP,
    IN_BROWSER,
    PHONE,
    Device,
    Problems,
    address,
    expect,
    opened_page,
    serious_findings,
)
from tests.web.steps import composer, log, new_session, say, wait_until_idle
from tests.web.test_return import LOST, MANY, same

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.prove, IN_BROWSER]

Open = Callable[..., Awaitable["Page"]]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[FleetPrograms]:
    """A broker and two workers with the demo agent, in a home of their own."""
    home = tmp_path / "home"
    home.mkdir()
    with fleet_programs(tmp_path / "fleet", {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}) as fleet:
        for name in ("one", "two"):
            fleet.worker(name)
        yield fleet


@pytest_asyncio.fixture(loop_scope="session")
async def opened(browser: "Browser", problems: Problems) -> AsyncIterator[Open]:
    """A function that opens the page of a gateway, signed in."""
    problems.expect(LOST)
    async with AsyncExitStack() as stack:

        async def open_page(gateway: Gateway, *, phone: bool = False, to: str = "", at: str = "") -> "Page":
            device: Device = await stack.enter_async_context(
                opened_page(browser, problems, **(PHONE if phone else DESKTOP))
            )
            own = f"http://127.0.0.1:{gateway.port}"
            await device.page.goto(address(gateway, to).replace(own, at or own, 1))
            await device.page.wait_for_selector("html[data-connection=open]")
            return device.page

        yield open_page


def project(fleet: FleetPrograms, name: str = "shop") -> Path:
    directory = fleet.root / name
    directory.mkdir(exist_ok=True)
    return directory


class Front:
    """One address in front of several gateways, as a proxy has: each connection goes to the first one that answers."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        self.port = 0
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for port in self.ports:
            with suppress(OSError):
                far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
                break
        else:
            writer.transport.abort()
            return
        await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        self._writers.discard(writer)
        writer.close()

    def cut(self) -> None:
        """End all connections."""
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def front() -> AsyncIterator[Front]:
    found = Front()
    server = await asyncio.start_server(found._serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()
        found.cut()


async def in_thread(call: Callable[..., Any], *arguments: Any) -> Any:
    """Do what blocks beside the browser."""
    return await asyncio.to_thread(call, *arguments)


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
async def test_a_worker_that_is_killed_in_a_turn_is_reported_and_the_next_message_works(
    fleet: FleetPrograms, opened: Open, phone: bool
) -> None:
    gateway = await in_thread(fleet.gateway, "gateway")
    page = await opened(gateway, phone=phone)
    await new_session(page, project(fleet), "/slow 1000")
    await expect(page.get_by_role("button", name="Stop")).to_be_visible()
    owner = await in_thread(fleet.owner)
    await in_thread(owner.kill)
    moved = log(page).locator("[data-entry=notice]")
    await expect(moved.locator(".notice-title")).to_have_text(re.compile("^This session moved to worker (one|two)$"))
    await expect(moved).to_contain_text("Look at what the interrupted turn did before you send")
    box = page.locator("[data-tone=interrupted]")
    await expect(box.locator("p.t-plain")).to_have_text(
        re.compile("^(Worker (one|two) does not answer any more|Its worker ended); the message was not sent again.$")
    )
    assert await serious_findings(page) == []
    await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    await say(page, "/think of what was lost")
    await expect(log(page)).to_contain_text("what was lost")
    await wait_until_idle(page)
    assert (await in_thread(fleet.owner)).name != owner.name
    other = await opened(gateway, to=page.url.partition("#")[2])
    await expect(log(other)).to_contain_text("what was lost")
    await same(page, other)
    text = await log(other).locator("[data-entry=message]").nth(1).inner_text()
    pieces = re.sub(r"\d\d:\d\d", "", text).split()
    assert pieces == [str(number) for number in range(1, len(pieces) + 1)], "nothing is lost, nothing twice"


async def test_a_gateway_that_is_killed_is_replaced_by_another_behind_the_same_address(
    fleet: FleetPrograms, opened: Open
) -> None:
    async with front() as proxy:
        first, second = [
            await in_thread(fleet.gateway, name, "--public-url", proxy.url) for name in ("gateway-a", "gateway-b")
        ]
        proxy.ports = [first.port, second.port]
        page = await opened(first, at=proxy.url)
        await new_session(page, project(fleet), f"/many {MANY}")
        await wait_until_idle(page)
        await say(page, "/slow 30")
        await expect(page.get_by_role("button", name="Stop")).to_be_visible()
        await composer(page).fill("a draft")
        await in_thread(first.kill)
        await expect(page.locator("html:not([data-connection=open])")).to_have_count(1)
        await expect(page.locator("html[data-connection=open]")).to_have_count(1)  # signed in there too
        await expect(composer(page)).to_have_value("a draft")
        await wait_until_idle(page)
        await expect(page.locator("[data-tone=interrupted]")).to_have_count(0)
        await expect(log(page)).to_contain_text(" ".join(str(number) for number in range(1, 31)))
        fresh = await opened(second, at=proxy.url, to=page.url.partition("#")[2])
        await wait_until_idle(fresh)
        await same(page, fresh)
        await say(page, "/think of the other gateway")
        await expect(log(fresh)).to_contain_text("the other gateway")


async def test_the_list_shows_the_sessions_of_all_workers_live_at_every_gateway(
    fleet: FleetPrograms, opened: Open
) -> None:
    first, second = [await in_thread(fleet.gateway, name) for name in ("gateway-a", "gateway-b")]
    here, there = await opened(first), await opened(second)
    titles = ("The first", "The second")
    for title in titles:
        await new_session(here, project(fleet), f"/title {title}")
        await wait_until_idle(here)
    rows = there.get_by_role("navigation", name="Sessions")
    for title in titles:
        await expect(rows).to_contain_text(title)
    assert len({each.owner for each in await in_thread(fleet.sessions)}) == 2, "each worker has one"
    await say(here, "/slow 1000")
    await expect(rows.get_by_role("heading", name="Running")).to_be_visible()
    await here.get_by_role("button", name="Stop").click()
    await expect(rows.get_by_role("heading", name="Running")).to_have_count(0)


async def test_who_signed_in_at_one_gateway_is_signed_in_at_the_other_until_it_is_revoked(
    fleet: FleetPrograms, opened: Open, problems: Problems
) -> None:
    async with front() as proxy:
        first, second = [
            await in_thread(fleet.gateway, name, "--public-url", proxy.url) for name in ("gateway-a", "gateway-b")
        ]
        proxy.ports = [first.port]
        page = await opened(first, at=proxy.url)
        proxy.ports = [second.port]
        proxy.cut()
        await expect(page.locator("html:not([data-connection=open])")).to_have_count(1)
        await expect(page.locator("html[data-connection=open]")).to_have_count(1)
        await page.reload()
        await expect(page.locator("html[data-connection=open]")).to_have_count(1)
        await new_session(page, project(fleet), "hello")
        await wait_until_idle(page)
        tokens = (await in_thread(lambda: first.admin(action="tokens")))["tokens"]
        [browser] = [each["id"] for each in tokens if "Chrome" in each["name"]]
        problems.expect("401")
        await in_thread(lambda: first.admin(action="revoke", id=browser))
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
