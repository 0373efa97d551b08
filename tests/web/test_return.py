"""People leave and come back: a phone that slept, a tab that was closed, a gateway that was killed, a second device. Nothing is shown
twice, and nothing is missing."""

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.gateway.processes import Gateway, running
from tests.web.browser import IN_BROWSER, Device, Problems, address, expect, serious_findings
from tests.web.steps import composer, dialog, log, new_session, project, say, wait_until_idle

if TYPE_CHECKING:
    from playwright.async_api import Page, WebSocketRoute

pytestmark = [pytest.mark.slow, pytest.mark.prove, IN_BROWSER]

NewDevice = Callable[..., Awaitable[Device]]
LOST = r"WebSocket connection|ERR_CONNECTION_REFUSED|Failed to load resource"
"""What a browser says about a gateway that is gone."""

MANY = 300


async def shown(page: "Page") -> list[str]:
    """Return all entries of the transcript, as text without the names of the senders: a device calls its own messages `You`.

    The time of an agent's message is left out: it is that of its first piece live, and that of its last one in a merged history.
    """
    script = "[...document.querySelectorAll('[role=log] [data-entry]')].map(each => `${each.dataset.entry} ${each.textContent}`)"
    found: list[str] = await page.evaluate(script)
    named = [re.sub(r"^(message \d\d:\d\d)(You|[A-Za-z ]+ on [A-Za-z]+ \d+)", r"\1", entry) for entry in found]
    return [re.sub(r"\d\d:\d\d$", "", entry) if entry.startswith("message ") else entry for entry in named]


async def same(one: "Page", other: "Page") -> None:
    """Wait until two devices show the same transcript, and check that it has no entry twice."""
    keys = "[...document.querySelectorAll('[role=log] [data-entry]')].map(each => each.dataset.key)"
    for page in (one, other):
        found = await page.evaluate(keys)
        assert len(found) == len({*found})
    await expect(other.locator("[role=log] [data-entry]")).to_have_count(len(await shown(one)))
    assert await shown(other) == await shown(one)


async def test_two_devices_show_the_same_session_live(desktop: Device, gateway: Gateway, new_device: NewDevice) -> None:
    page = desktop.page
    await new_session(page, project(gateway), f"/many {MANY}")
    await wait_until_idle(page)
    phone = (await new_device(phone=True, to=page.url.partition("#")[2])).page
    await expect(log(phone)).to_contain_text(f"/many {MANY}")
    await say(phone, "/think of both")
    await expect(log(page)).to_contain_text("of both")
    await expect(log(page)).to_contain_text(re.compile(r"Chrome on Android \d+"))  # who sent it
    await wait_until_idle(page)
    await wait_until_idle(phone)
    await same(page, phone)


async def test_a_phone_that_slept_shows_what_it_missed(
    desktop: Device, gateway: Gateway, new_device: NewDevice
) -> None:
    page = desktop.page
    await new_session(page, project(gateway), "hello")
    await wait_until_idle(page)
    phone = await new_device(phone=True, to=page.url.partition("#")[2])
    await expect(log(phone.page)).to_contain_text("hello")
    await phone.freeze()
    await say(page, f"/many {MANY}")
    await wait_until_idle(page)
    await say(page, "/title While the phone slept")
    await wait_until_idle(page)
    await phone.thaw()
    await expect(phone.page.locator(".session-head")).to_contain_text("While the phone slept")
    await wait_until_idle(phone.page)
    await same(page, phone.page)


async def test_a_turn_goes_on_without_its_tab(desktop: Device, gateway: Gateway) -> None:
    page = desktop.page
    await new_session(page, project(gateway), "/slow 10000")
    await expect(log(page)).to_contain_text("1 2 3 ")
    url = page.url
    await page.close()
    again = await page.context.new_page()
    await again.goto(url)
    await expect(log(again)).to_contain_text("1 2 3 ")
    counted = max(int(number) for number in re.findall(r"(\d+) ", await log(again).inner_text()))
    await expect(log(again)).to_contain_text(f" {counted + 5} ")
    await again.get_by_role("button", name="Stop").click()
    await wait_until_idle(again)
    assert len([entry for entry in await shown(again) if entry.startswith("end")]) == 1


async def test_a_network_that_goes_and_comes_back_costs_nothing(desktop: Device, gateway: Gateway) -> None:
    page = desktop.page
    await new_session(page, project(gateway), "hello")
    await wait_until_idle(page)
    await desktop.go_offline()
    await expect(page.locator("html:not([data-connection=open])")).to_have_count(1)
    await composer(page).fill("written without a network")
    await desktop.go_online()
    await expect(page.locator("html[data-connection=open]")).to_have_count(1)
    await expect(composer(page)).to_have_value("written without a network")
    await say(page, "/think of what was lost")
    await wait_until_idle(page)
    await expect(log(page)).to_contain_text("what was lost")


@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_a_gateway_that_was_started_again_is_found_and_the_draft_is_kept(
    tmp_path: Path, new_device: NewDevice, problems: Problems, how: str
) -> None:
    problems.expect(LOST)
    places = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "home")}
    device = await new_device(signed_in=False)
    page = device.page
    with running(tmp_path / "own", env=places) as first:
        await page.goto(address(first))
        await page.wait_for_selector("html[data-connection=open]")
        await new_session(page, project(first), f"/many {MANY}")
        await wait_until_idle(page)
        if how == "killed":
            await say(page, "/slow 100")
            await expect(page.get_by_role("button", name="Stop")).to_be_visible()
        await composer(page).fill("a draft")
        before = await shown(page)
        if how == "killed":
            first.kill()
            await expect(page.locator("html:not([data-connection=open])")).to_have_count(1)
            banner = page.get_by_role("region", name="Connection")
            await expect(banner).to_contain_text("The gateway does not answer. Trying again…")
            sessions = page.get_by_role("navigation", name="Sessions")
            await expect(sessions.get_by_role("heading", name="Running when last seen")).to_be_visible()
            await expect(sessions.get_by_text("Running", exact=True)).to_have_count(0)
    with running(tmp_path / "own", "--port", str(first.port), env=places):
        await expect(page.locator("html[data-connection=open]")).to_have_count(1)
        await expect(composer(page)).to_have_value("a draft")
        if how == "killed":
            await expect(page.locator("[role=log] [data-entry=end]")).to_have_count(2)
            box = page.locator("[data-tone=interrupted]")
            await expect(box.locator("p.t-plain")).to_have_text("The gateway ended; the message was not sent again.")
            await expect(box).not_to_contain_text("-32603")
            await box.get_by_role("button", name="Send again").click()
            await expect(composer(page)).to_have_value("/slow 100\n\na draft")
        after = await shown(page)
        assert after[: len(before) - 1] == before[:-1]
        assert after[len(before) - 1].startswith(before[-1].rstrip())  # it may have gone on before the end
        await composer(page).fill("")
        await say(page, "/think of the time before")
        await expect(log(page)).to_contain_text("I have thought about of the time before")


async def test_a_message_that_the_gateway_refused_can_be_edited_or_sent_again(
    tmp_path: Path, new_device: NewDevice
) -> None:
    places = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "home")}
    page = (await new_device(signed_in=False)).page
    with running(tmp_path / "own", "--limit", "prompts-per-minute=1", env=places) as own:
        await page.goto(address(own))
        await page.wait_for_selector("html[data-connection=open]")
        await new_session(page, project(own), "hello")
        await wait_until_idle(page)
        await say(page, "one too many")
        refused = log(page).locator(".outgoing[data-state=failed]")
        await expect(refused).to_contain_text("Not sent")
        assert await serious_findings(page) == []
        await refused.get_by_role("button", name="Send again").click()
        await expect(refused).to_contain_text("Not sent")
        await refused.get_by_role("button", name="Edit").click()
        await expect(refused).to_have_count(0)
        await expect(composer(page)).to_have_value("one too many")
        await page.close()  # before its gateway ends: it would complain of that


async def test_signing_out_clears_what_the_browser_keeps(desktop: Device, gateway: Gateway, problems: Problems) -> None:
    problems.expect(r"status of 401|WebSocket connection")
    page = desktop.page
    await new_session(page, project(gateway), "hello")
    await wait_until_idle(page)
    await composer(page).fill("a secret draft")
    await page.goto(f"{page.url.partition('#')[0]}#/settings")
    await page.get_by_role("button", name="Sign out").click()
    await dialog(page).get_by_role("button", name="Sign out").click()
    await expect(page.get_by_text("antiphon serve status --launch")).to_be_visible()
    kept = await page.evaluate("[JSON.stringify(localStorage), JSON.stringify(sessionStorage)].join(' ')")
    assert "secret draft" not in kept and "hello" not in kept
    assert await page.evaluate("caches.keys()") == []


async def test_a_gateway_that_answers_with_an_error_is_named_and_asked_again(page: "Page", problems: Problems) -> None:
    problems.expect("WebSocket")
    is_broken = True

    def relay(socket: "WebSocketRoute") -> None:
        server = socket.connect_to_server()

        def forward(message: str | bytes) -> None:
            request = json.loads(message)
            if is_broken and request.get("method") == "_antiphon/gateway/info":
                error = {"code": -32603, "message": "Internal error"}
                socket.send(json.dumps({"jsonrpc": "2.0", "id": request["id"], "error": error}))
            else:
                server.send(message)

        socket.on_message(forward)

    await page.route_web_socket("**/acp", relay)
    await page.reload()
    banner = page.get_by_role("region", name="Connection")
    await expect(banner).to_contain_text("The gateway answers with an error: Internal error.")
    is_broken = False
    await banner.get_by_role("button", name="Try now").click()
    await expect(banner).to_have_count(0)
    await expect(page.get_by_text("No sessions yet.")).to_be_visible()
