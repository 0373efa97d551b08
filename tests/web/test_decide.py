"""Deciding in the page: permission requests and questions, on a desktop and on a phone.

A person must not allow what they did not mean to: the safest option has the focus, none works at once, and Esc never answers.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from tests.gateway.processes import Gateway
from tests.web.browser import IN_BROWSER, Device, expect, serious_findings
from tests.web.steps import composer, dialog, log, new_session, project, wait_until_idle

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [pytest.mark.slow, pytest.mark.prove, IN_BROWSER]

NewDevice = Callable[..., Awaitable[Device]]


async def armed(page: "Page") -> None:
    """Wait until the options of the request work."""
    await expect(dialog(page).locator(".option:not([aria-disabled])").first).to_be_visible()


async def reject(page: "Page") -> None:
    """Answer the request that is shown: a gateway lets a turn that waits go on for a minute before it ends."""
    await armed(page)
    await page.keyboard.press("n")
    await expect(dialog(page)).to_have_count(0)


async def test_a_request_shows_the_exact_command_and_where_it_would_run(page: "Page", gateway: Gateway) -> None:
    directory = project(gateway)
    await new_session(page, directory, "/run touch made")
    asked = dialog(page)
    await expect(asked).to_be_visible()
    await expect(asked.get_by_role("heading")).to_have_text("Antiphon demo wants to run a command")
    await expect(asked.locator(".subject")).to_have_text("touch made")
    await expect(asked.get_by_text(str(directory))).to_be_visible()
    await expect(asked.locator(".policy")).to_contain_text("No rule decides about it")
    await armed(page)
    assert await serious_findings(page) == []
    await reject(page)


async def test_an_edit_that_was_rejected_is_shown_as_rejected(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "/edit notes.txt a line")
    await reject(page)
    await wait_until_idle(page)
    call = log(page).locator(".call").last
    await expect(call).to_have_attribute("data-state", "rejected")
    await expect(call.locator(".call-state")).to_have_text("rejected")
    await page.reload()
    await expect(call).to_have_attribute("data-state", "rejected")


async def test_the_safest_option_has_the_focus_and_none_works_at_once(page: "Page", gateway: Gateway) -> None:
    directory = project(gateway)
    await new_session(page, directory)
    # The clock of the page stands still, so what is pressed now is pressed before the options work.
    await page.clock.install()
    await page.clock.pause_at(await page.evaluate("Date.now() + 1000"))
    await composer(page).fill("/run touch made")
    await page.clock.run_for(200)
    await page.get_by_role("button", name="Send").click()
    while not await dialog(page).count():
        await page.clock.run_for(20)  # the page draws by its clock
    await expect(dialog(page)).to_be_visible()
    options = dialog(page).locator(".option")
    await expect(options.first).to_be_focused()
    assert await options.first.get_attribute("data-kind") == "reject_once"
    assert await options.evaluate_all("all => all.map((one) => one.dataset.kind)") == [
        "reject_once", "reject_always", "allow_once", "allow_always",
    ]  # fmt: skip
    await expect(options.first).to_have_attribute("aria-disabled", "true")
    for key in ("y", "3", "Enter"):
        await page.keyboard.press(key)
    await expect(dialog(page)).to_be_visible()
    assert not (directory / "made").exists()
    await page.clock.run_for(600)
    await armed(page)
    await page.keyboard.press("y")
    await page.clock.resume()
    await wait_until_idle(page)
    assert (directory / "made").exists()


async def test_esc_puts_a_request_aside_and_never_answers_it(page: "Page", gateway: Gateway) -> None:
    directory = project(gateway)
    await new_session(page, directory, "/run touch made")
    await armed(page)
    await page.keyboard.press("Escape")
    await expect(dialog(page)).to_have_count(0)
    await expect(page.get_by_text("1 request waits for you")).to_be_visible()
    await expect(page).to_have_title("(1) /run touch made · Antiphon")
    assert not (directory / "made").exists()
    await page.get_by_role("button", name="Decide").click()
    await reject(page)
    await wait_until_idle(page)
    assert not (directory / "made").exists()
    await expect(page).not_to_have_title("(1) /run touch made · Antiphon")


async def test_one_tap_allows_on_a_phone_and_the_diff_is_seen_before(phone: Device, gateway: Gateway) -> None:
    directory = project(gateway)
    await new_session(phone.page, directory, "/edit src/cart.py # in cents")
    asked = dialog(phone.page)
    await expect(asked.get_by_role("heading")).to_have_text("Antiphon demo wants to change a file")
    await expect(asked.locator(".diff")).to_contain_text("# in cents")
    await armed(phone.page)
    assert await serious_findings(phone.page) == []
    small = await asked.locator("button").evaluate_all(
        "all => all.filter((one) => one.offsetHeight < 44).map((one) => one.outerHTML)"
    )
    assert [each for each in small if "copy" not in each.lower()] == []
    await asked.get_by_role("button", name="Allow", exact=True).tap()
    await wait_until_idle(phone.page)
    assert (directory / "src" / "cart.py").read_text(encoding="utf-8").endswith("# in cents\n")


async def test_always_shows_the_rule_and_the_next_such_action_is_not_asked(page: "Page", gateway: Gateway) -> None:
    directory = project(gateway)
    await new_session(page, directory, "/run touch made")
    await expect(dialog(page).get_by_role("group", name="What always remembers")).to_contain_text("Bash(touch made)")
    await dialog(page).get_by_role("radio", name="Project").check(force=True)
    await armed(page)
    await dialog(page).get_by_role("button", name="Always allow").click()
    await wait_until_idle(page)
    (directory / "made").unlink()
    await new_session(page, directory, "/run touch made")
    await expect(log(page)).to_contain_text("ended with 0")
    assert (directory / "made").exists()


async def test_characters_that_would_not_be_seen_are_shown_by_their_names(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "/run echo a\u202eb")
    await expect(dialog(page).locator(".subject .control-character")).to_have_text("<U+202E>")
    await reject(page)


async def test_another_session_that_waits_is_listed_first_and_leads_there(page: "Page", gateway: Gateway) -> None:
    directory = project(gateway)
    await new_session(page, directory, "/run touch made")
    await armed(page)
    await page.keyboard.press("Escape")
    await new_session(page, directory, "Hello")
    waiting = page.get_by_role("region", name="Waiting for you")
    await expect(waiting.get_by_role("link")).to_contain_text("/run touch made")
    await page.get_by_role("region", name="Other sessions that wait").get_by_role("link", name="Open").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("/run touch made")
    await page.get_by_role("button", name="Decide").click()
    await reject(page)


async def test_an_answer_on_one_device_ends_the_request_on_the_other(
    page: "Page", new_device: NewDevice, gateway: Gateway
) -> None:
    await new_session(page, project(gateway), "/run touch made")
    await expect(dialog(page)).to_be_visible()
    other = await new_device(phone=True, to=page.url.partition("#")[2])
    await armed(other.page)
    await dialog(other.page).get_by_role("button", name="Reject", exact=True).tap()
    await expect(dialog(page)).to_have_count(0)
    await wait_until_idle(page)


async def test_a_question_is_a_form_whose_values_are_checked(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "/ask")
    asked = dialog(page)
    name = asked.get_by_role("textbox", name="Your name")
    await name.fill("")
    await asked.get_by_role("button", name="Send answer").click()
    await expect(name).to_be_focused()
    await expect(asked.get_by_text("this cannot be left out")).to_be_visible()
    assert await serious_findings(page) == []
    await name.fill("Ada")
    await asked.get_by_role("button", name="Send answer").click()
    await expect(log(page)).to_contain_text("Ada")


@pytest.mark.parametrize("word", ["Decline", "Cancel"])
async def test_to_decline_is_an_answer_and_to_cancel_is_none(page: "Page", gateway: Gateway, word: str) -> None:
    await new_session(page, project(gateway), "/ask")
    await dialog(page).get_by_role("button", name=word).click()
    await expect(dialog(page)).to_have_count(0)
    await wait_until_idle(page)
    said = await log(page).inner_text()
    assert "ada" not in said.lower()


async def test_an_address_is_shown_before_it_is_opened(page: "Page", gateway: Gateway) -> None:
    await new_session(page, project(gateway), "/visit https://example.org/sign-in")
    asked = dialog(page)
    await expect(asked.get_by_text("https://example.org/sign-in", exact=True)).to_be_visible()
    await asked.get_by_role("button", name="Decline").click()
    await wait_until_idle(page)
    assert len(page.context.pages) == 1


async def test_those_who_watch_see_that_a_request_waits_and_cannot_answer_it(
    page: "Page", new_device: NewDevice, gateway: Gateway
) -> None:
    await new_session(page, project(gateway), "/run touch made")
    await expect(dialog(page)).to_be_visible()
    token = gateway.admin(action="create token", name="Ann", role="watch")["secret"]
    watcher = await new_device(signed_in=False)
    await watcher.page.goto(f"http://127.0.0.1:{gateway.port}/#token={token}&to={page.url.partition('#')[2]}")
    await expect(watcher.page.get_by_text("waits for someone who may decide")).to_be_visible()
    await expect(dialog(watcher.page)).to_have_count(0)
    await expect(composer(watcher.page)).to_have_count(0)
    await expect(watcher.page.get_by_text("You are watching.")).to_be_visible()
    await reject(page)


async def test_a_phone_on_its_side_has_the_options_in_one_row(new_device: NewDevice, gateway: Gateway) -> None:
    page = (await new_device(phone=True, viewport={"width": 740, "height": 360})).page
    await new_session(page, project(gateway), "/edit src/cart.py one more line")
    added = dialog(page).get_by_text("one more line", exact=True)
    await expect(added).to_be_in_viewport()
    tops = "(buttons) => new Set(buttons.map((button) => button.getBoundingClientRect().top)).size"
    assert await dialog(page).locator(".option").evaluate_all(tops) == 1
