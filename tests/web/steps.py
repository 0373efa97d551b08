"""What a person does on the page, for tests: start a session, write a message, open a menu."""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.gateway.processes import Gateway
from tests.web.browser import expect

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

__all__ = ["choose", "composer", "dialog", "log", "new_session", "project", "say", "wait_until_idle"]


def project(gateway: Gateway, name: str = "shop") -> Path:
    """Make a directory with two files inside the root of the gateway, and return it."""
    directory = gateway.directory / "root" / name
    (directory / "src").mkdir(parents=True, exist_ok=True)
    (directory / "README.md").write_text("# Shop\n", encoding="utf-8")
    (directory / "src" / "cart.py").write_text("def total(items):\n    return sum(items)\n", encoding="utf-8")
    return directory


def composer(page: "Page") -> "Locator":
    """The field where messages are written."""
    return page.get_by_role("textbox", name="Message")


def log(page: "Page") -> "Locator":
    """The transcript."""
    return page.get_by_role("log")


def dialog(page: "Page") -> "Locator":
    """The permission request or question that is shown."""
    return page.get_by_role("alertdialog")


async def new_session(page: "Page", directory: Path, text: str = "") -> None:
    """Start a session in a directory by the screen for it, and send a first message."""
    await page.goto(f"{page.url.partition('#')[0]}#/new")
    await page.get_by_role("combobox", name="Directory").fill(str(directory))
    await page.get_by_role("button", name="Start session").click()
    await expect(composer(page)).to_be_visible()
    if text:
        await say(page, text)


async def say(page: "Page", text: str) -> None:
    """Write a message and send it by the button."""
    await composer(page).fill(text)
    # What completes a command lies above the button's neighbours, never above the button.
    await page.locator(".composer").get_by_role("button", name="Send").click()


async def choose(page: "Page", menu: str, item: str) -> None:
    """Open a menu and choose one of its items."""
    await page.get_by_role("button", name=menu, exact=True).click()
    await page.get_by_role("menuitem", name=item).click()


async def wait_until_idle(page: "Page") -> None:
    """Wait until the turns of all messages that were sent have ended."""
    await expect(log(page).locator(".outgoing")).to_have_count(0)  # it was taken by the gateway
    await expect(log(page).locator("[data-entry]").last).to_have_attribute("data-entry", "end")
    await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
