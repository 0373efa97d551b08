"""What tests of the page get: a gateway that runs, one browser for each process, and pages that are signed in."""

import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import pytest_asyncio

from tests.gateway.processes import Gateway, running
from tests.web.browser import DESKTOP, PHONE, Device, Problems, address, opened_page, started_browser

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

NewDevice: TypeAlias = Callable[..., Awaitable[Device]]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """`antiphon serve` with the demo agent, in a process of its own with a home of its own."""
    places = {"HOME": tmp_path / "home", "TMPDIR": tmp_path / "tmp", "XDG_CONFIG_HOME": tmp_path / "home" / ".config"}
    for place in places.values():
        place.mkdir(parents=True, exist_ok=True)
    with running(tmp_path, env={name: str(place) for name, place in places.items()}) as gateway:
        yield gateway
        gateway.process.send_signal(
            signal.SIGTERM
        )  # the first of two: a turn that waits for a person is not waited for


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> "AsyncIterator[Browser]":
    """One Chromium for all tests of this process."""
    async with started_browser() as browser:
        yield browser


@pytest.fixture
def problems() -> Iterator[Problems]:
    """What pages complain of. The test fails with what it did not expect."""
    problems = Problems()
    yield problems
    assert problems.left == [], "\n".join(problems.left)


@pytest_asyncio.fixture(loop_scope="session")
async def new_device(browser: "Browser", gateway: Gateway, problems: Problems) -> AsyncIterator[NewDevice]:
    """A function that opens the page on another device, signed in: `await new_device(phone=True, to="/new")`."""
    async with AsyncExitStack() as stack:

        async def new_device(*, phone: bool = False, to: str = "", signed_in: bool = True, **options: Any) -> Device:
            chosen = {**(PHONE if phone else DESKTOP), **options}
            device = await stack.enter_async_context(opened_page(browser, problems, **chosen))
            if phone:
                await device.slow_down()
            if signed_in:
                await device.page.goto(address(gateway, to))
                await device.page.wait_for_selector("html[data-connection=open]")
            return device

        yield new_device


@pytest_asyncio.fixture(loop_scope="session")
async def desktop(new_device: NewDevice) -> Device:
    """The page in a desktop browser, signed in."""
    return await new_device()


@pytest_asyncio.fixture(loop_scope="session")
async def phone(new_device: NewDevice) -> Device:
    """The page on a phone, signed in: touch, three pixels for one, 360 by 740, a slow network."""
    return await new_device(phone=True)


@pytest_asyncio.fixture(loop_scope="session")
async def page(desktop: Device) -> "Page":
    """The page in a desktop browser, signed in, as Playwright has it."""
    return desktop.page
