"""The page in a real browser: it loads, signs in, keeps to its policy, and is small."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from antiphon.web.assets import page_hash
from tests.gateway.processes import Gateway
from tests.web.browser import IN_BROWSER, Device, Problems, address, expect, serious_findings

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [pytest.mark.slow, IN_BROWSER]

FIRST_LOAD = 120_000
"""Bytes of everything that is sent before the page shows its first screen, with the heads of the responses."""

NewDevice = Callable[..., Awaitable[Device]]


async def test_a_launch_code_signs_in_and_leaves_the_address(page: "Page", gateway: Gateway) -> None:
    who = await page.evaluate("fetch('/api/login').then((answer) => answer.json())")
    assert who["role"] == "admin" and who["expires"]
    assert "code" not in page.url
    assert not await page.evaluate("document.cookie"), "no script can read it"


async def test_a_reloaded_page_is_still_signed_in(page: "Page") -> None:
    await page.reload()
    await page.wait_for_selector("html[data-connection=open]")


@pytest.mark.parametrize("code", ["used", "wrong"])
async def test_a_code_that_is_not_good_shows_what_to_do(
    new_device: NewDevice, gateway: Gateway, problems: Problems, code: str
) -> None:
    problems.expect(r"status of 401")
    used = address(gateway)
    if code == "used":
        done = gateway.ask("/api/login", gateway.origin, method="POST", body={"code": used.partition("code=")[2]})
        assert done.status == 200
    device = await new_device(signed_in=False)
    await device.page.goto(used if code == "used" else f"{used}x")
    await expect(device.page.get_by_role("alert")).to_be_visible()
    await expect(device.page.get_by_text("antiphon serve status --launch")).to_be_visible()


async def test_without_a_code_the_page_says_how_to_sign_in(
    new_device: NewDevice, gateway: Gateway, problems: Problems
) -> None:
    problems.expect(r"status of 401")
    device = await new_device(signed_in=False)
    await device.page.goto(f"http://127.0.0.1:{gateway.port}/")
    await expect(device.page.get_by_text("antiphon serve status --launch")).to_be_visible()


@pytest.mark.prove
async def test_a_share_signs_a_browser_in_as_a_guest(new_device: NewDevice, gateway: Gateway) -> None:
    token = gateway.admin(action="create token", name="Ann", role="watch")["secret"]
    device = await new_device(signed_in=False)
    await device.page.goto(f"http://127.0.0.1:{gateway.port}/#token={token}")
    await device.page.wait_for_selector("html[data-connection=open]")
    who = await device.page.evaluate("fetch('/api/login').then((answer) => answer.json())")
    assert (who["name"], who["role"]) == ("Ann", "watch") and token not in device.page.url


async def test_the_first_load_is_small(new_device: NewDevice, gateway: Gateway) -> None:
    device = await new_device(signed_in=False)
    session = await device.page.context.new_cdp_session(device.page)
    sizes: dict[str, float] = {}
    names: dict[str, str] = {}

    def named(event: Any) -> None:
        names[event["requestId"]] = event["request"]["url"]

    def finished(event: Any) -> None:
        sizes[names.get(event["requestId"], "")] = event["encodedDataLength"]

    session.on("Network.requestWillBeSent", named)
    session.on("Network.loadingFinished", finished)
    await session.send("Network.enable")
    await device.page.goto(address(gateway))
    await device.page.wait_for_selector("html[data-connection=open]")
    assert any(page_hash() in name for name in sizes), sizes
    assert sum(sizes.values()) < FIRST_LOAD, sorted(sizes.items(), key=lambda each: -each[1])


async def test_the_policy_lets_no_other_script_run(desktop: Device) -> None:
    desktop.problems.expect(r"policy violated|Content Security Policy|TrustedHTML|TrustedScript|Trusted Type")
    page = desktop.page
    await page.evaluate(
        """() => {
          const script = document.createElement("script");
          try { script.textContent = "window.owned = 1"; } catch {}
          document.body.append(script);
          const image = document.createElement("img");
          image.setAttribute("src", "data:image/png,x");
          try { image.setAttribute("onerror", "window.owned = 2"); } catch {}
          document.body.append(image);
        }"""
    )
    refused = await page.evaluate(
        "() => { try { document.body['inner' + 'HTML'] = '<b>x</b>'; return false } catch { return true } }"
    )
    assert refused, "text does not become elements"
    assert await page.evaluate("typeof window.owned") == "undefined"


@pytest.mark.prove
async def test_people_with_a_screen_reader_or_a_keyboard_can_use_the_first_screen(page: "Page", phone: Device) -> None:
    assert await serious_findings(page) == []
    assert await serious_findings(phone.page) == []


@pytest.mark.prove
async def test_a_frozen_page_goes_on_when_it_is_thawed(phone: Device) -> None:
    await phone.freeze()
    await phone.thaw()
    assert await phone.page.evaluate("innerWidth") == 360
    assert await phone.page.evaluate("devicePixelRatio") == 3


@pytest.mark.prove
async def test_the_page_can_be_installed(desktop: Device) -> None:
    session = await desktop.page.context.new_cdp_session(desktop.page)
    manifest = await session.send("Page.getAppManifest")
    assert manifest["errors"] == [] and manifest["url"].endswith("/app.webmanifest")
    found = await session.send("Page.getInstallabilityErrors")
    assert [each["errorId"] for each in found["installabilityErrors"]] == ["in-incognito"], "as every page of a test is"


@pytest.mark.prove
async def test_an_installed_page_opens_without_a_network(phone: Device) -> None:
    await phone.page.evaluate("navigator.serviceWorker.ready.then(() => null)")
    await phone.go_offline()
    await phone.page.reload()
    await expect(phone.page.locator("html")).not_to_have_attribute("data-connection", "open")
    await expect(phone.page.locator("#app")).not_to_be_empty()
    await phone.go_online()
    await phone.page.wait_for_selector("html[data-connection=open]")


@pytest.mark.prove
async def test_a_page_without_a_network_is_still_there_and_connects_again(phone: Device) -> None:
    await phone.go_offline()
    assert await phone.page.evaluate("navigator.onLine") is False
    await phone.go_online()
    await phone.page.wait_for_selector("html[data-connection=open]")
