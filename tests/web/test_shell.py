"""The shell of the page: the list of sessions, search, new sessions, keys, settings, administration, and what others see."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from antiphon import __version__
from tests.gateway.processes import Gateway
from tests.limits import limit
from tests.web.browser import IN_BROWSER, Device, Problems, expect, serious_findings
from tests.web.steps import choose, composer, log, new_session, project, wait_until_idle

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.prove, IN_BROWSER]

NewDevice = Callable[..., Awaitable[Device]]


async def test_an_empty_list_leads_to_the_first_session(page: "Page", gateway: Gateway) -> None:
    project(gateway)
    await expect(page.get_by_text("No sessions yet.")).to_be_visible()
    await expect(page.get_by_role("heading", name="Welcome to Antiphon")).to_be_visible()
    await page.get_by_role("link", name="Start the first one").click()
    await expect(page.get_by_role("heading", name="New session")).to_be_visible()
    await expect(page.get_by_role("radio", name="Shows what an agent can do")).to_be_checked()
    directory = page.get_by_role("combobox", name="Directory")
    await directory.fill(f"{gateway.directory / 'root'}/sh")
    await page.get_by_role("option", name="shop").click()
    await page.get_by_role("button", name="Browse").click()
    await page.get_by_role("dialog").get_by_role("button", name="src").click()
    await page.get_by_role("button", name="Use this directory").click()
    await expect(directory).to_have_value(str(gateway.directory / "root" / "shop" / "src"))
    assert await serious_findings(page) == []
    await page.get_by_role("button", name="Start session").click()
    await expect(composer(page)).to_be_focused()


async def test_a_new_session_begins_with_the_last_choice(page: "Page", gateway: Gateway) -> None:
    directory = project(gateway)
    await new_session(page, directory, "Hello")
    await wait_until_idle(page)
    await page.get_by_role("link", name="New session").click()
    await page.get_by_role("combobox", name="Mode", exact=True).select_option(label="Only look")
    await page.get_by_role("button", name="Start session").click()
    await expect(page.get_by_role("button", name="Mode: Only look")).to_be_visible()
    await page.reload()
    await page.get_by_role("navigation").get_by_title("New session (n)").click()
    await expect(page.get_by_role("combobox", name="Directory")).to_have_value(str(directory))
    await expect(page.get_by_role("combobox", name="Mode", exact=True)).to_have_value("plan")


async def test_sessions_are_renamed_in_the_list_found_by_title_and_deleted(page: "Page", gateway: Gateway) -> None:
    directory = project(gateway)
    await new_session(page, directory, "first words")
    await wait_until_idle(page)
    await new_session(page, directory, "second words")
    await wait_until_idle(page)
    rows = page.get_by_role("navigation", name="Sessions").get_by_role("listitem")
    await rows.filter(has_text="first words").get_by_role("link").focus()
    await page.keyboard.press("r")
    await page.get_by_role("textbox", name="Title of the session").fill("Mend the cart")
    await page.keyboard.press("Enter")
    await expect(rows.filter(has_text="Mend the cart")).to_be_visible()
    await page.keyboard.press("/")
    await page.keyboard.type("mend")
    await expect(rows).to_have_count(1)
    await page.keyboard.press("Escape")
    await expect(rows).to_have_count(2)
    await rows.filter(has_text="Mend").get_by_role("button").click()
    await page.get_by_role("menuitem", name="Delete…").click()
    asked = page.get_by_role("alertdialog", name="Delete this session?")
    await expect(asked.get_by_role("button", name="Cancel")).to_be_focused()
    await asked.get_by_role("button", name="Delete session").click()
    await expect(rows).to_have_count(1)


async def test_messages_are_searched_and_shown_with_their_words(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "Where is the harpsichord?")
    await wait_until_idle(page)
    await choose(page, "Session menu", "Rename")
    await page.get_by_role("textbox", name="Title of the session").fill("Instruments")
    await page.keyboard.press("Enter")
    field = page.get_by_role("searchbox", name="Search sessions")
    await field.fill("harpsichord")
    found = page.get_by_role("region", name="Found in messages")
    async with asyncio.timeout(limit()):
        # The gateway reads a turn for the search a moment after its end.
        while not await found.get_by_role("link").count():
            await field.press("Enter")
            await found.wait_for()
    await expect(found.get_by_role("link")).to_contain_text("Where is the harpsichord?")
    await expect(found.locator("mark").first).to_have_text("harpsichord")


async def test_keys_move_through_the_list_open_a_session_and_show_all_keys(page: "Page", gateway: Gateway) -> None:
    directory = project(gateway)
    for text in ("older", "newer"):
        await new_session(page, directory, text)
        await wait_until_idle(page)
    await page.goto(f"{page.url.partition('#')[0]}#/")
    await page.get_by_role("heading", level=1).focus()
    await page.keyboard.press("j")
    await page.keyboard.press("j")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("older")
    await composer(page).blur()
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    assert await serious_findings(page) == []
    await page.keyboard.press("Escape")
    await page.keyboard.press("n")
    await expect(page.get_by_role("button", name="Start session")).to_be_focused()


async def test_a_phone_shows_the_list_or_the_session_and_goes_back(phone: Device, gateway: Gateway) -> None:
    page = phone.page
    await new_session(page, project(gateway), "Hello")
    await expect(page.get_by_role("navigation", name="Sessions")).to_be_hidden()
    assert await page.evaluate("document.documentElement.scrollWidth") == 360
    await page.get_by_role("link", name="Back to the sessions").tap()
    await expect(page.get_by_role("navigation", name="Sessions").get_by_role("link", name="Hello")).to_be_visible()
    assert await serious_findings(page) == []


async def test_changes_of_a_session_are_one_diff_and_exports_are_files(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "/edit src/cart.py # in cents")
    await page.locator(".option[data-kind=allow_once]:not([aria-disabled])").click()
    await wait_until_idle(page)
    await choose(page, "Session menu", "All changes")
    changes = page.get_by_role("complementary", name="Changes of the session")
    await expect(changes.get_by_text("1 file changed")).to_be_visible()
    await expect(changes.locator(".diff")).to_contain_text("# in cents")
    assert await serious_findings(page) == []
    await page.get_by_role("link", name="Close the changes").click()
    for name, suffix in {"Markdown": ".md", "HTML": ".html", "JSON": ".json"}.items():
        async with page.expect_download() as saved:
            await choose(page, "Session menu", f"Export as {name}")
        assert (await saved.value).suggested_filename.endswith(suffix)


async def test_a_share_lets_a_guest_watch_one_session_until_it_is_revoked(
    page: "Page", new_device: NewDevice, gateway: Gateway, problems: Problems
) -> None:
    await new_session(page, project(gateway), "Hello")
    await wait_until_idle(page)
    await choose(page, "Session menu", "Share…")
    share = page.get_by_role("dialog")
    await share.get_by_role("button", name="Create link").click()
    await expect(share.get_by_role("img", name="QR code of the link")).to_be_visible()
    await expect(share.get_by_role("note")).to_contain_text("ssh -L")
    assert await serious_findings(page) == []
    link = await share.get_by_role("textbox", name="Link").input_value()
    guest = await new_device(signed_in=False)
    await guest.page.goto(link)
    await expect(log(guest.page)).to_contain_text("Hello")
    await expect(composer(guest.page)).to_have_count(0)
    problems.expect("WebSocket connection|status of 401")
    await share.get_by_role("button", name="Revoke").click()
    await expect(guest.page.get_by_role("heading", name="This link has ended")).to_be_visible()
    await expect(guest.page.get_by_text("Ask for a new one.")).to_be_visible()
    await expect(guest.page.get_by_text("antiphon serve status --launch")).to_have_count(0)


async def test_a_phone_is_signed_in_by_a_code_that_is_good_once(
    page: "Page", new_device: NewDevice, gateway: Gateway
) -> None:
    await choose(page, "Menu", "Open on another device")
    shown = page.get_by_role("dialog", name="Open on another device")
    await expect(shown.get_by_role("img", name="QR code that signs a device in")).to_be_visible()
    await expect(shown.get_by_role("note")).to_contain_text("--public-url")
    device = await new_device(phone=True, signed_in=False)
    await device.page.goto(await shown.get_by_role("textbox").input_value())
    await device.page.wait_for_selector("html[data-connection=open]")


async def test_the_theme_is_chosen_kept_and_forgotten_when_signing_out(page: "Page", problems: Problems) -> None:
    await choose(page, "Menu", "Settings")
    await page.get_by_role("radio", name="Dark").check(force=True)
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert await serious_findings(page) == []
    problems.expect("status of 401|WebSocket")
    await page.get_by_role("button", name="Sign out").click()
    await page.get_by_role("alertdialog").get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", name="Sign in to this gateway")).to_be_visible()
    assert await page.evaluate("localStorage.length") == 0
    assert await page.evaluate("caches.keys()") == []
    await page.reload()
    await expect(page.get_by_role("heading", name="Sign in to this gateway")).to_be_visible()


async def test_a_token_that_is_pasted_signs_in(new_device: NewDevice, gateway: Gateway, problems: Problems) -> None:
    problems.expect("status of 401|WebSocket")
    device = await new_device(signed_in=False)
    await device.page.goto(f"http://127.0.0.1:{gateway.port}/")
    field = device.page.get_by_label("Address, code or token")
    await field.fill("wrong")
    await device.page.get_by_role("button", name="Sign in").click()
    await expect(device.page.get_by_role("alert")).to_contain_text("does not know this code or token")
    await field.fill(gateway.token)
    await device.page.keyboard.press("Enter")
    await device.page.wait_for_selector("html[data-connection=open]")


async def test_an_admin_sees_the_gateway_makes_a_token_and_reads_the_log(page: "Page", gateway: Gateway) -> None:
    await choose(page, "Menu", "Administration")
    await expect(page.get_by_text(__version__, exact=True)).to_be_visible()
    await page.get_by_role("radio", name="Tokens and shares").check(force=True)
    await page.get_by_role("button", name="New token").click()
    await page.get_by_role("dialog").get_by_role("textbox", name="Name").fill("laptop")
    await page.get_by_role("button", name="Create token").click()
    secret = await page.get_by_role("textbox", name="Token").input_value()
    await page.get_by_role("button", name="Done").click()
    assert gateway.ask("/metrics", {"Authorization": f"Bearer {secret}"}).status == 200
    await page.get_by_role("button", name="Revoke laptop").click()
    await page.get_by_role("alertdialog").get_by_role("button", name="Revoke").click()
    await expect(page.get_by_role("button", name="Revoke laptop")).to_have_count(0)
    await expect(page.get_by_text("this browser", exact=True)).to_have_count(1)
    await expect(page.get_by_text("created just now").first).to_be_visible()
    await page.get_by_role("radio", name="Audit log").check(force=True)
    await expect(page.get_by_role("cell", name="create token")).to_be_visible()
    assert await serious_findings(page) == []


async def test_the_audit_log_shows_the_newest_entries_and_loads_older_ones(page: "Page", gateway: Gateway) -> None:
    gateway.admin(action="create token", name="the oldest")
    for _ in range(200):
        gateway.admin(action="launch", role="watch")
    await choose(page, "Menu", "Administration")
    await page.get_by_role("radio", name="Audit log").check(force=True)
    rows = page.get_by_role("region", name="Audit log").get_by_role("row")
    await expect(rows).to_have_count(201)  # with the head of the table
    oldest = page.get_by_role("cell", name="the oldest")
    await expect(oldest).to_have_count(0)
    await page.get_by_role("button", name="Load older entries").click()
    await expect(oldest).to_be_visible()


async def test_the_audit_log_fits_on_a_phone(phone: Device, gateway: Gateway) -> None:
    gateway.admin(action="create token", name="laptop")
    page = phone.page
    await choose(page, "Menu", "Administration")
    await page.get_by_role("radio", name="Audit log").check(force=True)
    region = page.get_by_role("region", name="Audit log")
    await expect(region.get_by_text("create token")).to_be_visible()
    assert await region.evaluate("(region) => region.scrollWidth - region.clientWidth") == 0
    assert await serious_findings(page) == []


async def test_a_directory_outside_of_the_roots_is_refused_with_what_to_do(page: "Page", gateway: Gateway) -> None:
    await page.goto(f"{page.url.partition('#')[0]}#/new")
    await expect(page.get_by_text("The option --root DIR of antiphon serve")).to_be_visible()
    await page.get_by_role("combobox", name="Directory").fill("/")
    await page.get_by_role("button", name="Start session").click()
    problem = page.get_by_role("alert")
    await expect(problem).to_contain_text("outside the directories that may be used")
    await expect(problem).not_to_contain_text("fix the params")
    await expect(problem.locator("code").last).to_have_text(str(gateway.directory / "root"))
    await page.get_by_role("button", name="Browse").click()
    await expect(page.get_by_role("dialog").get_by_text("there is no way up")).to_be_visible()


async def test_a_search_without_hits_says_so(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "Hello")
    await wait_until_idle(page)
    await page.get_by_role("searchbox", name="Search sessions").fill("nowhere to be found")
    sessions = page.get_by_role("navigation", name="Sessions")
    await expect(sessions.get_by_text("Nothing was found for")).to_be_visible()
    await expect(sessions.get_by_text("1 session")).to_have_count(0)


async def test_a_message_of_the_page_does_not_cover_the_button_that_sends(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "Hello")
    await wait_until_idle(page)
    await page.get_by_role("searchbox", name="Search sessions").focus()
    await page.evaluate("navigator.clipboard.writeText = async () => {}")
    await choose(page, "Session menu", "Copy link")
    shown = await page.locator(".toast").bounding_box()
    foot = await page.locator(".session-foot").bounding_box()
    assert shown and foot and shown["y"] + shown["height"] < foot["y"]


async def test_about_can_be_loaded_again_where_a_file_did_not_come(new_device: NewDevice, problems: Problems) -> None:
    problems.expect("Failed to load resource")
    page = (await new_device(service_workers="block")).page  # one would have the file already
    await page.route("**/vendor/*", lambda route: route.abort())
    await choose(page, "Menu", "About")
    problem = page.get_by_role("alert")
    await expect(problem).to_contain_text("The list could not be loaded.")
    await page.unroute("**/vendor/*")
    await problem.get_by_role("button", name="Try again").click()
    await page.route("**/vendor/**", lambda route: route.abort())
    licence = page.get_by_role("button", name="Licence of preact", exact=True)
    await licence.click()
    await expect(page.get_by_text("The gateway did not send the file.")).to_be_visible()
    await page.unroute("**/vendor/**")
    await licence.click()
    await expect(page.get_by_role("dialog", name="Licence of preact")).to_contain_text("MIT")


async def test_about_has_the_licences_of_what_the_page_is_made_of(page: "Page") -> None:
    await choose(page, "Menu", "About")
    await page.get_by_role("button", name="Licence of preact", exact=True).click()
    await expect(page.get_by_role("dialog", name="Licence of preact")).to_contain_text("MIT")
