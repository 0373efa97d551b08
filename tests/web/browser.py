"""A real browser for the tests of the page: Debian's Chromium, driven by Playwright, as a desktop or as a phone.

A test file has `pytestmark = [pytest.mark.slow, IN_BROWSER]` and async tests; the fixtures are in `conftest.py`. Playwright is imported
late: an environment without it still collects these files.
"""

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.gateway.processes import Gateway
from tests.limits import limit

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, ConsoleMessage, Page

__all__ = [
    "CHROMIUM",
    "DESKTOP",
    "IN_BROWSER",
    "PHONE",
    "Device",
    "Problems",
    "address",
    "expect",
    "opened_page",
    "serious_findings",
    "started_browser",
]

CHROMIUM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
"""The browser of this machine. Playwright brings none, and may not download one."""

IN_BROWSER: Final = pytest.mark.asyncio(loop_scope="session")
"""The mark of a test with a page: all of a process share one browser, so they share the event loop that it is driven from."""

AXE: Final = Path(__file__).with_name("node_modules") / "axe-core" / "axe.min.js"

FLAGS: Final = (
    "--no-sandbox",  # containers often forbid what it needs, and the only page that is opened is ours
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

DESKTOP: Final[dict[str, Any]] = {"viewport": {"width": 1280, "height": 800}}
PHONE: Final[dict[str, Any]] = {
    "viewport": {"width": 360, "height": 740},
    "device_scale_factor": 3,
    "is_mobile": True,
    "has_touch": True,
    "user_agent": "Mozilla/5.0 (Linux; Android 16; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Mobile Safari/537.36",
}

SLOW: Final = {"offline": False, "latency": 150, "downloadThroughput": 200_000, "uploadThroughput": 90_000}
"""A phone in a train: 150 ms until the first byte, 1.6 Mbit/s down, 0.7 up."""

ON_VIOLATION: Final = """
addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy violated: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""


class Problems:
    """What a page complained of: errors of scripts, errors in the console, and what its policy forbade. A test fails if one is left."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._expected: list[str] = []

    def expect(self, pattern: str) -> None:
        """Let what matches a pattern be: the test brings it about."""
        self._expected.append(pattern)

    @property
    def left(self) -> list[str]:
        """What no pattern expects."""
        return [text for text in self._found if not any(re.search(pattern, text) for pattern in self._expected)]

    def watch(self, page: "Page") -> None:
        """Note what a page complains of from now on."""
        page.on("pageerror", lambda error: self._found.append(f"{error}\n{error.stack}"))
        page.on("console", self._note)
        page.on("crash", lambda _: self._found.append("the page crashed"))

    def _note(self, message: "ConsoleMessage") -> None:
        if message.type == "error":
            self._found.append(f"{message.text} ({message.location.get('url', '')})")


class Device:
    """A page in a browser of its own, and what can happen to it: no network, a slow one, sleep."""

    def __init__(self, page: "Page", session: "CDPSession", problems: Problems) -> None:
        self.page = page
        self.problems = problems
        self._session = session
        self._is_slow = False

    async def freeze(self) -> None:
        """Stop the page as a phone does with one that is not seen: no script of it runs."""
        await self._session.send("Page.setWebLifecycleState", {"state": "frozen"})

    async def thaw(self) -> None:
        """Let it go on."""
        await self._session.send("Page.setWebLifecycleState", {"state": "active"})

    async def slow_down(self) -> None:
        """Give it the network of a phone."""
        self._is_slow = True
        await self._session.send("Network.enable")
        await self._session.send("Network.emulateNetworkConditions", SLOW)

    async def go_offline(self) -> None:
        """Take the network away. What the browser says about that is no problem."""
        self.problems.expect(r"ERR_INTERNET_DISCONNECTED|WebSocket connection|ERR_NETWORK_IO_SUSPENDED")
        if self._is_slow:  # what was set for the page counts before what is set for its context
            await self._session.send("Network.emulateNetworkConditions", {**SLOW, "offline": True})
        await self.page.context.set_offline(True)

    async def go_online(self) -> None:
        """Give it back."""
        await self.page.context.set_offline(False)
        if self._is_slow:
            await self._session.send("Network.emulateNetworkConditions", SLOW)


def expect(found: Any) -> Any:
    """Return Playwright's assertions about a page or a part of it; they wait."""
    from playwright.async_api import expect as assertions

    assertions.set_options(timeout=limit(10) * 1000)
    return assertions(found)


async def serious_findings(page: "Page") -> list[str]:
    """Return what axe-core finds that keeps people out: the rule, and the elements that break it."""
    if not AXE.exists():
        pytest.skip("npm has not installed axe-core: `make test` does")
    await page.evaluate(AXE.read_text(encoding="utf-8") + "; null")
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{rule['impact']} {rule['id']}: {rule['help']}: {[node['html'] for node in rule['nodes']]}"
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical")
    ]


def address(gateway: Gateway, to: str = "") -> str:
    """Return an address that signs a browser in, once; `to` is what it shows then, such as `/new`."""
    code = gateway.admin(action="launch")["code"]
    return f"http://127.0.0.1:{gateway.port}/#code={code}" + (f"&to={to}" if to else "")


@asynccontextmanager
async def started_browser() -> AsyncIterator["Browser"]:
    """Start the browser."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: the page is not tested (Debian: apt-get install chromium)")
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS], timeout=limit(10) * 1000)
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def opened_page(browser: "Browser", problems: Problems, **options: Any) -> AsyncIterator[Device]:
    """Give an empty page in a context of its own: no cookie, no storage, no cache of another test."""
    context: BrowserContext = await browser.new_context(**(options or DESKTOP))
    try:
        context.set_default_timeout(limit(10) * 1000)
        await context.add_init_script(ON_VIOLATION)
        context.on("page", problems.watch)
        page = await context.new_page()
        yield Device(page, await context.new_cdp_session(page), problems)
    finally:
        await context.close()
