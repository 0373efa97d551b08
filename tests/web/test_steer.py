"""Steering in the page: writing, stopping, waiting messages, settings, completion, files, drafts, and taking a prompt up again."""

from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.processes import Gateway
from tests.web.browser import IN_BROWSER, Device, expect, serious_findings
from tests.web.steps import choose, composer, log, new_session, project, say, wait_until_idle

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

pytestmark = [pytest.mark.slow, pytest.mark.prove, IN_BROWSER]

NewDevice = Callable[..., Awaitable[Device]]

PIXEL = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


async def attach(page: "Page", *files: tuple[str, str, bytes]) -> None:
    """Choose files in the composer: their names, types and contents."""
    chosen: Any = [{"name": name, "mimeType": type_, "buffer": content} for name, type_, content in files]
    await page.locator("input[type=file]").set_input_files(chosen)


async def top_of(found: "Locator") -> float:
    """Return where an element begins, in pixels from the top of the window."""
    place = await found.bounding_box()
    assert place, "it is shown"
    return place["y"]


async def test_enter_sends_and_shift_enter_breaks_the_line(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway))
    await composer(page).press_sequentially("one")
    await page.keyboard.press("Shift+Enter")
    await composer(page).press_sequentially("two")
    await expect(composer(page)).to_have_value("one\ntwo")
    await page.keyboard.press("Enter")
    await expect(composer(page)).to_have_value("")
    await expect(log(page)).to_contain_text("two")
    await wait_until_idle(page)
    await page.keyboard.press("ArrowUp")
    await expect(composer(page)).to_have_value("one\ntwo")


async def test_on_a_phone_enter_breaks_the_line_and_the_button_sends(phone: Device, gateway: Gateway) -> None:
    await new_session(phone.page, project(gateway))
    await composer(phone.page).press_sequentially("one")
    await phone.page.keyboard.press("Enter")
    await expect(composer(phone.page)).to_have_value("one\n")
    await phone.page.get_by_role("button", name="Send").tap()
    await expect(log(phone.page)).to_contain_text("one")


async def test_a_turn_is_stopped_by_the_button_or_by_esc_twice(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "/slow 10000")
    await page.get_by_role("button", name="Stop").click()
    await wait_until_idle(page)
    await say(page, "/slow 10000")
    await expect(page.get_by_role("button", name="Stop")).to_be_visible()
    await composer(page).focus()
    await page.keyboard.press("Escape")
    await expect(page.get_by_text("Press Esc again to stop the turn.")).to_be_visible()
    await page.keyboard.press("Escape")
    await wait_until_idle(page)


async def test_a_message_sent_while_a_turn_runs_waits_and_can_be_cancelled(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "/slow 10000")
    await expect(page.get_by_role("button", name="Stop")).to_be_visible()
    await say(page, "keep this")
    await say(page, "not this")
    waiting = page.get_by_role("list", name="Waiting messages").get_by_role("listitem")
    await expect(waiting).to_have_count(2)
    assert await serious_findings(page) == []
    await page.get_by_role("button", name="Cancel the waiting message: not this").click()
    await expect(waiting).to_have_count(1)
    await page.get_by_role("button", name="Cancel the waiting message: keep this").click()
    await expect(waiting).to_have_count(0)
    await page.get_by_role("button", name="Stop").click()


async def test_stop_puts_the_messages_that_wait_back_into_the_field(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "/slow 10000")
    await expect(page.get_by_role("button", name="Stop")).to_be_visible()
    await say(page, "do not lose this")
    await expect(page.get_by_role("list", name="Waiting messages")).to_be_visible()
    await composer(page).fill("half a thought")
    await page.get_by_role("button", name="Stop").click()
    await expect(composer(page)).to_have_value("do not lose this\n\nhalf a thought")
    await expect(page.get_by_text("1 waiting message is back in the field")).to_be_visible()
    await wait_until_idle(page)


async def test_mode_and_options_are_changed_and_others_who_come_see_it(
    page: "Page", new_device: NewDevice, gateway: Gateway
) -> None:
    await new_session(page, project(gateway), "Hello")
    await wait_until_idle(page)
    await page.get_by_role("button", name="Mode: Ask first").click()
    await page.get_by_role("menuitemradio", name="Only look").click()
    await expect(page.get_by_role("button", name="Mode: Only look")).to_be_visible()
    await page.get_by_role("button", name="Options", exact=True).click()
    options = page.get_by_role("dialog", name="Options of this session")
    await options.get_by_role("switch").first.click()
    await expect(options.get_by_role("switch").first).to_be_checked()
    assert await serious_findings(page) == []
    other = await new_device(to=page.url.partition("#")[2])
    await expect(other.page.get_by_role("button", name="Mode: Only look")).to_be_visible()


async def test_commands_are_completed_at_the_start_of_a_message(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway))
    await composer(page).press_sequentially("/us")
    chosen = page.get_by_role("option", name="/usage")
    await expect(chosen).to_have_attribute("aria-selected", "true")
    assert await serious_findings(page) == []
    await page.keyboard.press("Tab")
    await expect(composer(page)).to_have_value("/usage ")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("img", name="Context")).to_be_visible()


async def test_files_are_completed_and_sent_as_links(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway))
    await composer(page).press_sequentially("Look at @cart")
    await page.get_by_role("option", name="cart.py").click()
    await expect(composer(page)).to_have_value("Look at @src/cart.py ")
    await page.keyboard.press("Enter")
    await expect(log(page)).to_contain_text("cart.py")


async def test_pictures_and_text_files_are_shown_before_they_are_sent(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway))
    await attach(page, ("dot.png", "image/png", PIXEL), ("notes.txt", "text/plain", b"remember the milk"))
    sent = page.get_by_role("list", name="Sent along").get_by_role("listitem")
    await expect(sent).to_have_count(2)
    await page.get_by_role("button", name="Remove notes.txt").click()
    await expect(sent).to_have_count(1)
    await attach(page, ("x.bin", "application/zip", b"\0\1\2"))
    await expect(page.get_by_text("“x.bin” is neither a picture nor a text file.")).to_be_visible()
    await attach(page, ("big.txt", "text/plain", b"x" * 600_000))
    await expect(page.get_by_text("a text file may have 512 kB")).to_be_visible()
    await page.get_by_role("button", name="Send").click()
    await expect(log(page).locator("img")).to_be_visible()


async def test_a_draft_is_there_again_after_the_page_was_closed(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "Hello")
    await wait_until_idle(page)
    await composer(page).fill("half a thought")
    await page.reload()
    await expect(composer(page)).to_have_value("half a thought")


async def test_an_earlier_prompt_is_edited_in_a_fork_that_says_what_it_keeps(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "the first idea")
    await wait_until_idle(page)
    first = page.url
    await log(page).get_by_text("the first idea").first.hover()
    await log(page).get_by_role("button", name="Edit in a fork").first.click()
    asked = page.get_by_role("alertdialog", name="Edit this message in a fork?")
    await expect(asked).to_contain_text("keeps this message and everything after it")
    await asked.get_by_role("button", name="Cancel").click()
    await expect(page).to_have_url(first)
    await log(page).get_by_role("button", name="Edit in a fork").first.click()
    await asked.get_by_role("button", name="Fork").click()
    await expect(page).not_to_have_url(first)
    await expect(composer(page)).to_have_value("the first idea")
    await page.goto(first)
    await choose(page, "Session menu", "Fork")
    await expect(page).not_to_have_url(first)


async def test_a_fork_has_one_name_in_the_list_and_above_it(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "/title The plan")
    await wait_until_idle(page)
    first = page.url
    await choose(page, "Session menu", "Fork")
    await expect(page).not_to_have_url(first)
    await expect(page.locator(".session-head h1")).to_have_text("The plan (fork)")
    await expect(page.get_by_role("link", name="The plan (fork)")).to_be_visible()
    await page.reload()
    await expect(page.locator(".session-head h1")).to_have_text("The plan (fork)")


async def test_a_plan_that_is_done_is_shown_until_the_next_turn_begins(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "/plan")
    await wait_until_idle(page)
    plan = page.get_by_role("region", name="Plan")
    await expect(plan).to_contain_text("The plan is done")
    await plan.get_by_role("button").click()
    await expect(plan.get_by_text("Check the work")).to_be_visible()
    await page.reload()
    await expect(plan).to_contain_text("The plan is done")
    await say(page, "Hello")
    await wait_until_idle(page)
    await expect(plan).to_have_count(0)


async def test_a_phone_names_mode_and_model_beside_the_gauge_and_the_buttons(phone: Device, gateway: Gateway) -> None:
    page = phone.page
    await new_session(page, project(gateway), "/usage")
    await wait_until_idle(page)
    await expect(page.locator(".gauge")).to_be_visible()
    cut = "(names) => names.filter((name) => name.scrollWidth > name.clientWidth).map((name) => name.textContent)"
    names = page.locator(".choice-button .truncate")
    await expect(names).to_have_text(["Ask first", "Echo"])
    assert await names.evaluate_all(cut) == []
    await say(page, "/slow 1000")
    await composer(page).fill("what comes next")
    await expect(page.get_by_role("button", name="Send after this turn")).to_be_visible()
    assert await names.evaluate_all(cut) == []
    await page.get_by_role("button", name="Stop").click()
    await wait_until_idle(page)


async def test_the_end_of_a_turn_is_announced(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "Hello")
    await expect(page.locator("#announcements")).to_have_text("The turn is finished: Hello.")


@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
async def test_the_connection_comes_and_goes_and_covers_nothing(
    new_device: NewDevice, gateway: Gateway, phone: bool
) -> None:
    device = await new_device(phone=phone)
    page = device.page
    await new_session(page, project(gateway), "Hello")
    await wait_until_idle(page)
    before = await composer(page).bounding_box()
    head = page.locator(".session-head")
    top = await top_of(head)
    await device.go_offline()
    banner = page.get_by_role("region", name="Connection")
    await expect(banner.get_by_text("You are offline.")).to_be_visible()
    assert await composer(page).bounding_box() == before
    await page.evaluate("Promise.all(document.getAnimations().map((each) => each.finished.catch(() => {})))")
    shown = await banner.bounding_box()
    assert shown and shown["y"] + shown["height"] <= await top_of(head), "it has a row of its own"
    await device.go_online()
    await expect(banner).to_have_count(0)
    assert await top_of(head) == top
    await say(page, "back again")
    await expect(log(page)).to_contain_text("back again")


async def test_notifications_come_only_after_they_were_turned_on_and_while_the_page_is_not_seen(
    new_device: NewDevice, gateway: Gateway
) -> None:
    device = await new_device(permissions=["notifications"])
    page = device.page
    # What the browser would show, and whether the page is seen, are the test's to say.
    await page.evaluate(
        """() => {
          Object.defineProperty(document, "hidden", { get: () => true });
          navigator.serviceWorker.getRegistration = async () => ({ showNotification: async (title) => { document.body.dataset.shown = title; } });
        }"""
    )
    await new_session(page, project(gateway), "first")
    await wait_until_idle(page)
    await expect(page.locator("body")).not_to_have_attribute("data-shown", "The turn is finished")
    await choose(page, "Menu", "Settings")
    await page.get_by_role("switch", name="Notify me").check(force=True)
    await new_session(page, gateway.directory / "root" / "shop", "second")
    await expect(page.locator("body")).to_have_attribute("data-shown", "The turn is finished")
