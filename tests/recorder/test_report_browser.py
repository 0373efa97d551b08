"""The report in a real browser: its script runs under its policy, the diagram can be searched and walked by keys, and content stays content."""

from pathlib import Path

import pytest

from tests.recorder.browser import CHROMIUM, Browser, browsing
from tests.recorder.recordings import Tape
from tests.recorder.report_recordings import HOSTILE, hostile_tape, page, working_tape

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")]

MANY = 20_000


def test_a_report_can_be_looked_at(tmp_path: Path) -> None:
    pages = {"calm": working_tape(), "hostile": hostile_tape(), "long": long_tape()}
    for name, tape in pages.items():
        (tmp_path / f"{name}.html").write_text(page(tape, HOSTILE), encoding="utf-8")
    with browsing(tmp_path / "browser") as browser:
        browser.open(tmp_path / "calm.html")
        the_diagram_has_its_arrows(browser)
        messages_are_searched_and_read_by_keys(browser)
        the_address_chooses_a_turn_and_a_message(browser)
        browser.open(tmp_path / "long.html")
        only_what_is_in_sight_is_drawn(browser)
        browser.open(tmp_path / "hostile.html")
        everything_hostile_is_inert(browser)
        assert browser.messages == []
        the_policy_lets_nothing_else_run(browser)


def long_tape() -> Tape:
    tape = Tape().meet()
    for number in range(MANY):
        tape.later(0.01).update("plan" if number % 2 else "usage_update", entries=[], used=1, size=2)
    return tape


def rows(browser: Browser, kind: str) -> int:
    found = browser.look(f"document.querySelectorAll('#rows .row{kind}').length")
    assert isinstance(found, int)
    return found


def words(browser: Browser, selector: str) -> str:
    return str(browser.look(f"document.querySelector('{selector}').textContent"))


def the_diagram_has_its_arrows(browser: Browser) -> None:
    assert words(browser, "#count") == "16 messages"
    assert rows(browser, ".turn") == 2
    assert rows(browser, ".run.a2c") == 1, "four words of the agent are folded into one line"
    assert rows(browser, ".message.c2a") == 5 and rows(browser, ".message.a2c") == 7
    assert rows(browser, ".silence") == 4, (
        "the wait, the end of the turn, the long one between the turns, and the failure"
    )
    assert rows(browser, ".failed") == 1


def messages_are_searched_and_read_by_keys(browser: Browser) -> None:
    browser.press("/")
    browser.type("SONG")
    browser.until("document.querySelector('#count').textContent === '1 of 16 messages'")
    browser.look("document.querySelector('#rows').focus()")
    browser.press("End")
    browser.press("Enter")
    assert "session/prompt" in words(browser, "#message h3")
    assert '"text": "sing a song"' in words(browser, "#message pre")
    assert browser.look("location.hash") == "#q=SONG&m=5"
    browser.press("Escape")
    assert browser.look("document.querySelector('#message pre')") is None


def the_address_chooses_a_turn_and_a_message(browser: Browser) -> None:
    browser.look("location.hash = '#turn=2'")
    browser.until("document.querySelector('#count').textContent === '2 of 16 messages'")
    browser.look("location.hash = '#m=7'")
    browser.until("document.querySelector('#message pre')?.textContent.includes('la ')")
    assert words(browser, "#count") == "16 messages", "a message outside of what was chosen is shown in the whole"
    assert rows(browser, ".inside[aria-selected=true]") == 1, "the run that hid it is open"


def only_what_is_in_sight_is_drawn(browser: Browser) -> None:
    assert words(browser, "#count") == f"{MANY + 4:,} messages"
    assert rows(browser, "") < 100
    browser.look("document.querySelector('#rows').focus()")
    browser.press("End")
    assert str(MANY + 4) in words(browser, ".row.active")
    assert rows(browser, "") < 100


def everything_hostile_is_inert(browser: Browser) -> None:
    for number in range(1, browser.look("JSON.parse(document.querySelector('#data').textContent).entries.length") + 1):
        browser.look(f"location.hash = '#m={number}'")
        browser.until(f"document.querySelector('#message p')?.textContent.startsWith('Message {number},')")
    assert browser.look("typeof owned") == "undefined"
    assert (
        browser.look("document.querySelectorAll('img, iframe, object, [onerror]').length + document.scripts.length")
        == 2
    )
    assert "onerror" in words(browser, "#rows"), "it is there, as words"


def the_policy_lets_nothing_else_run(browser: Browser) -> None:
    browser.look(
        "const more = document.createElement('script'); more.textContent = 'owned = 1'; document.body.append(more)"
    )
    assert browser.look("typeof owned") == "undefined"
    assert len(browser.messages) == 1 and "Content Security Policy" in browser.messages[0]
