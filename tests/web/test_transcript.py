"""The transcript in a real browser: every kind of entry, streaming, folding, diffs, links to calls, older pages, and no script from text."""

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.processes import Gateway, call
from tests.limits import limit
from tests.web.browser import IN_BROWSER, Device, expect, serious_findings
from tests.web.scenes import Stage, agent_text, end_call, playing, shown, start_call, thought, whole_call

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

pytestmark = [pytest.mark.slow, pytest.mark.prove, IN_BROWSER]

NewDevice = Callable[..., Awaitable[Device]]

LINES = "".join(f"line {number}\n" for number in range(1, 41))
CHANGE = {
    "type": "diff",
    "path": "/w/song.py",
    "oldText": LINES.replace("line 20\n", "def sing(voice):\n"),
    "newText": LINES.replace("line 20\n", "def sing(voice, tempo):\n"),
}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A gateway whose agent plays scenes; it is `gateway` of the devices as well."""
    with playing(tmp_path) as stage:
        yield stage


@pytest.fixture
def gateway(request: pytest.FixtureRequest) -> Iterator[Gateway]:
    """The gateway of the stage, or the one with the demo agent."""
    if "stage" in request.fixturenames:
        yield request.getfixturevalue("stage").gateway
    else:
        yield request.getfixturevalue("demo")


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway with the demo agent."""
    from tests.gateway.processes import running

    home = {name: str(tmp_path / "home") for name in ("HOME", "XDG_CONFIG_HOME")}
    with running(tmp_path, env=home) as gateway:
        yield gateway


def log(page: "Page") -> "Locator":
    """The transcript."""
    return page.get_by_role("log")


def card(page: "Page", title: str) -> "Locator":
    """The card of a call."""
    return log(page).locator("[data-entry=call]").filter(has_text=title)


def toggle(found: "Locator") -> "Locator":
    """The button that unfolds a card or a thought."""
    return found.locator("[aria-expanded]").first


# Every kind of entry.


def play_everything(gateway: Gateway) -> str:
    """Let the demo agent do everything, allow what it asks, and return the address of the session."""
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        root = gateway.directory / "root"
        (root / "README.md").write_text("# Call and response\n", encoding="utf-8")
        id = call(opened, 1, "session/new", cwd=str(root), mcpServers=[])["result"]["sessionId"]
        params = {"sessionId": id, "prompt": [{"type": "text", "text": "/all"}]}
        opened.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}))
        while (message := json.loads(opened.recv(timeout=limit()))).get("id") != 2 or "method" in message:
            if message.get("method") == "session/request_permission":
                option = message["params"]["options"][0]["optionId"]
                result = {"outcome": {"outcome": "selected", "optionId": option}}
                opened.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}))
        [row] = call(opened, 3, "_antiphon/sessions/list")["result"]["sessions"]
        call(opened, 4, "session/prompt", sessionId=id, prompt=[{"type": "text", "text": "/fail -32001"}])
        call(opened, 5, "session/prompt", sessionId=id, prompt=[{"type": "text", "text": "/stop max_tokens"}])
    return f"/session/{row['agent']}/{id}"


async def test_everything_that_the_demo_agent_does_is_shown(new_device: NewDevice, gateway: Gateway) -> None:
    page = (await new_device(to=play_everything(gateway))).page
    entries = log(page)
    await expect(entries.get_by_text("the answer reached the model's limit of tokens")).to_be_visible()
    await log(page).evaluate("(log) => log.scrollTo(0, 0)")
    for kind in ("message", "thought", "call", "notice", "compaction", "end"):
        await expect(entries.locator(f"[data-entry={kind}]").first).to_be_attached()
    await expect(entries.get_by_role("heading", name="You").first).to_be_attached()
    await expect(entries.locator("img[alt='Image in the message']")).to_have_count(1)
    await expect(entries.locator("audio")).to_have_count(1)
    await expect(entries.get_by_text("README.md").first).to_be_attached()
    await expect(entries.get_by_text("Call and response.").first).to_be_attached()
    for status in ("completed", "failed"):
        await expect(entries.locator(f"[data-status={status}]").first).to_be_attached()
    await expect(card(page, "antiphon-demo.txt").first).to_be_attached()
    await expect(entries.get_by_text("The context was shortened")).to_be_attached()
    await expect(entries.get_by_text("The context could not be shortened")).to_be_attached()
    severities = entries.locator("[data-entry=notice] [data-severity]")
    await expect(severities).to_have_count(3)
    failed = entries.locator("[data-tone=bad]")
    await expect(failed).to_contain_text("Failed")
    await expect(failed).to_contain_text("-32001")
    await expect(entries.locator("[data-tone=ok]")).to_contain_text("Done")


async def test_a_notice_shows_a_command_as_code(new_device: NewDevice, stage: Stage) -> None:
    notice = {
        "sessionUpdate": "notice",
        "severity": "warning",
        "title": "None",
        "description": "`antiphon doctor` helps",
    }
    page = (await new_device(to=stage.play([notice]))).page
    await expect(log(page).locator("[data-entry=notice] code")).to_have_text("antiphon doctor")
    await expect(log(page).locator("[data-entry=notice]")).not_to_contain_text("`")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("phone", [False, True], ids=["desktop", "phone"])
async def test_the_transcript_is_accessible_to_every_reader(
    new_device: NewDevice, gateway: Gateway, scheme: str, phone: bool
) -> None:
    address = play_everything(gateway)
    page = (await new_device(to=address, phone=phone, color_scheme=scheme)).page
    await expect(log(page).get_by_text("the answer reached the model's limit of tokens")).to_be_visible()
    assert await serious_findings(page) == []
    await log(page).evaluate("(log) => log.scrollTo(0, 0)")
    await expect(log(page).get_by_text("Thought").first).to_be_visible()
    await toggle(log(page).locator("[data-entry=thought]").first).click()
    assert await serious_findings(page) == []


# Markdown.

MARKDOWN = """# Title

Some **bold** and *soft* words, `code`, ~~gone~~ and a [page](https://example.org/a?b=1&c=2 "title").

1. one
   - nested
2. two

- [x] done
- [ ] open

| left | right |
|:--|--:|
| a | **b** |

> quoted

```python
def sing(voice: str) -> None:
    return None  # a comment
```

<b>no element</b> &amp; an entity
"""


async def test_markdown_is_shown_as_elements(new_device: NewDevice, stage: Stage) -> None:
    page = (await new_device(to=stage.play([agent_text(MARKDOWN)]))).page
    message = log(page).locator("[data-entry=message]").last
    await expect(message.get_by_role("heading", name="Title")).to_be_visible()
    await expect(message.locator("strong", has_text="bold")).to_be_visible()
    await expect(message.locator("ol > li > ul > li", has_text="nested")).to_be_visible()
    await expect(message.locator("input[type=checkbox]:checked")).to_have_count(1)
    await expect(message.get_by_role("columnheader", name="right")).to_be_visible()
    await expect(message.locator("blockquote")).to_have_text("quoted")
    await expect(message.get_by_text("<b>no element</b> & an entity")).to_be_visible()
    await expect(message.locator("pre .hl-keyword", has_text="def")).to_be_visible()
    await expect(message.locator("figcaption", has_text="python")).to_be_visible()
    link = message.get_by_role("link", name="page")
    assert await link.get_attribute("href") == "https://example.org/a?b=1&c=2"
    assert await link.get_attribute("target") == "_blank"
    assert "noopener" in str(await link.get_attribute("rel"))


async def test_code_is_copied_as_it_was_written(new_device: NewDevice, stage: Stage) -> None:
    device = await new_device(to=stage.play([agent_text(MARKDOWN)]), permissions=["clipboard-read", "clipboard-write"])
    await log(device.page).get_by_role("button", name="Copy code").click()
    await expect(log(device.page).get_by_role("button", name="Copied")).to_be_visible()
    copied = await device.page.evaluate("navigator.clipboard.readText()")
    assert copied == "def sing(voice: str) -> None:\n    return None  # a comment"


async def test_a_message_that_comes_in_pieces_is_the_one_that_comes_whole(new_device: NewDevice, stage: Stage) -> None:
    pieces = [agent_text(MARKDOWN[place : place + 3]) for place in range(0, len(MARKDOWN), 3)]
    address = stage.play(pieces, [agent_text(MARKDOWN)])
    page = (await new_device(to=address)).page
    messages = log(page).locator(".md")
    await expect(messages).to_have_count(2)
    await expect(messages.locator("pre .hl-keyword")).to_have_count(4)
    first, second = [await messages.nth(place).inner_text() for place in range(2)]
    assert first == second


async def test_finished_blocks_stay_as_they_are_while_the_message_grows(new_device: NewDevice, stage: Stage) -> None:
    gates = [stage.gate(name) for name in ("first", "second")]
    scene = [agent_text("First paragraph.\n\nSecond"), gates[0].step, agent_text(" goes on.\n\nThird."), gates[1].step]
    page = (await new_device(to=stage.play(scene, wait=False))).page
    entries = log(page)
    await expect(entries.get_by_text("Second")).to_be_visible()
    await expect(entries).to_have_attribute("aria-busy", "true")
    await entries.get_by_text("First paragraph.").evaluate("(element) => { element.seen = true; }")
    gates[0].open()
    await expect(entries.get_by_text("Second goes on.")).to_be_visible()
    await expect(entries.get_by_text("Third.")).to_be_visible()
    assert await entries.get_by_text("First paragraph.").evaluate("(element) => element.seen")
    gates[1].open()
    await expect(entries.locator("[data-entry=end]")).to_contain_text("Done")
    await expect(entries).to_have_attribute("aria-busy", "false")


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_code_changes_and_output_can_be_read_by_everybody(
    new_device: NewDevice, stage: Stage, scheme: str
) -> None:
    colours = "".join(
        f"\u001b[{code}mcolour {code}\u001b[0m\n" for code in (*range(31, 38), *range(90, 98), *range(41, 48))
    )
    scene = [
        agent_text(MARKDOWN),
        *whole_call("a", "Edit song.py", "edit", content=[CHANGE]),
        *whole_call("b", "Print colours", "execute", status="failed", content=shown(colours)),
    ]
    page = (await new_device(to=stage.play(scene), color_scheme=scheme, viewport={"width": 1280, "height": 2400})).page
    await expect(log(page).locator("pre .hl-keyword").first).to_be_visible()
    await expect(card(page, "Edit song.py").get_by_role("table")).to_be_visible()
    assert await serious_findings(page) == []


# Folding.


async def test_a_thought_is_folded_to_its_first_line(new_device: NewDevice, stage: Stage) -> None:
    page = (await new_device(to=stage.play([thought("**A plan**\n\nwith a second line"), agent_text("x")]))).page
    entry = log(page).locator("[data-entry=thought]")
    await expect(entry).to_contain_text("A plan")
    await expect(entry.get_by_text("with a second line")).to_have_count(0)
    await toggle(entry).press("Enter")
    await expect(entry.get_by_text("with a second line")).to_be_visible()
    await expect(toggle(entry)).to_have_attribute("aria-expanded", "true")


async def test_a_call_is_unfolded_while_it_runs_and_folded_when_it_is_done_and_long(
    new_device: NewDevice, stage: Stage
) -> None:
    gate = stage.gate()
    scene = [start_call("a", "Run the tests", "execute", content=shown("one\n" * 40)), gate.step, end_call("a")]
    page = (await new_device(to=stage.play(scene, wait=False))).page
    found = card(page, "Run the tests")
    await expect(toggle(found)).to_have_attribute("aria-expanded", "true")
    await expect(found.locator("[data-state=running]")).to_be_visible()
    gate.open()
    await expect(found.locator("[data-state=done]")).to_be_visible()
    await expect(toggle(found)).to_have_attribute("aria-expanded", "false")
    await toggle(found).click()
    await expect(found.get_by_text("one").first).to_be_visible()


async def test_a_failed_call_is_unfolded_and_a_denied_one_says_so(new_device: NewDevice, stage: Stage) -> None:
    denied = {"_meta": {"antiphon": {"denied": True}}}
    scene = [
        *whole_call("a", "Build", "execute", status="failed", content=shown("no such file")),
        *whole_call("b", "Remove", "delete", status="failed", content=shown("not allowed"), **denied),
        start_call("c", "Never ends", "execute"),
    ]
    page = (await new_device(to=stage.play(scene))).page
    await expect(card(page, "Build").get_by_text("no such file")).to_be_visible()
    await expect(card(page, "Build").locator("[data-state=failed]")).to_contain_text("failed")
    await expect(card(page, "Remove").locator("[data-state=denied]")).to_contain_text("denied")
    await expect(card(page, "Never ends").locator("[data-state=stopped]")).to_contain_text("not finished")


async def test_input_and_output_of_a_call_are_behind_details(new_device: NewDevice, stage: Stage) -> None:
    scene = whole_call("a", "Ask the server", "other", rawInput={"team": "gateway"}, rawOutput={"found": 3})
    page = (await new_device(to=stage.play(scene))).page
    found = card(page, "Ask the server")
    await toggle(found).click()
    await found.get_by_text("Input").click()
    await expect(found.get_by_text('"team": "gateway"')).to_be_visible()


async def test_long_output_is_shown_from_its_end_and_whole_on_request(new_device: NewDevice, stage: Stage) -> None:
    output = "".join(f"\u001b[32mline\u001b[0m number {number}\n" for number in range(300))
    page = (await new_device(to=stage.play(whole_call("a", "Count", "execute", content=shown(output))))).page
    found = card(page, "Count")
    await toggle(found).click()
    await expect(found.get_by_text("number 299")).to_be_visible()
    await expect(found.get_by_text("number 3", exact=True)).to_have_count(0)
    await expect(found.locator(".term-f2").first).to_have_text("line")
    await found.get_by_role("button", name="Show all lines").click()
    await expect(found.locator(".term-line")).to_have_count(300)
    await found.get_by_role("button", name="Full screen").click()
    await expect(page.get_by_role("dialog").get_by_text("number 0", exact=False).first).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)


# Diffs.


async def test_a_change_is_shown_in_one_column_or_side_by_side(new_device: NewDevice, stage: Stage) -> None:
    page = (await new_device(to=stage.play(whole_call("a", "Edit song.py", "edit", content=[CHANGE])))).page
    table = card(page, "Edit song.py").get_by_role("table")
    await expect(table).to_have_accessible_name("Changes of /w/song.py: 1 line added, 1 removed")
    removed, added = table.locator("tr.diff-del"), table.locator("tr.diff-add")
    await expect(removed.locator(".diff-sign")).to_have_text("\u2212")
    await expect(added.locator(".diff-sign")).to_have_text("+")
    await expect(added.locator(".diff-mark")).to_contain_text("tempo")
    await expect(removed.locator(".diff-no").first).to_have_text("20")
    await table.get_by_role("button", name="Show 16 lines").click()
    await expect(table.get_by_text("line 1", exact=True)).to_be_visible()
    await card(page, "Edit song.py").get_by_role("button", name="Show side by side").click()
    row = table.locator("tr", has_text="tempo")
    await expect(row).to_contain_text("def sing(voice):")
    await page.reload()
    await expect(table.locator("tr", has_text="tempo")).to_contain_text("def sing(voice):")


async def test_a_long_change_is_cut_until_more_is_wanted(new_device: NewDevice, stage: Stage) -> None:
    change = {"type": "diff", "path": "/w/long.txt", "newText": "".join(f"row {number}\n" for number in range(900))}
    page = (await new_device(to=stage.play(whole_call("a", "Write long.txt", "edit", content=[change])))).page
    found = card(page, "Write long.txt")
    await toggle(found).click()
    await expect(found.locator("tr.diff-add")).to_have_count(80)
    await found.get_by_role("button", name="Show 820 more of 900 lines").click()
    await expect(found.locator("tr.diff-add")).to_have_count(900)


# The place of the reader.


def long_session(stage: Stage) -> str:
    """Play a session of 1,000 events in 20 turns, and return its address. It is loaded in pages of some hundred events."""
    more = "Some more words. " * 30
    return stage.play(
        *(
            [
                update
                for step in range(turn * 16, turn * 16 + 16)
                for update in (agent_text(f"Answer {step}.\n\n{more}"), *whole_call(f"call {step}", f"Step {step}."))
            ]
            for turn in range(20)
        )
    )


async def test_a_link_to_a_call_in_an_older_page_leads_to_it(new_device: NewDevice, stage: Stage) -> None:
    page = (await new_device(to=f"{long_session(stage)}/call/call%203")).page
    found = log(page).locator("[data-target]")
    await expect(found).to_be_in_viewport()
    await expect(found).to_contain_text("Step 3.")


async def test_earlier_messages_are_loaded_without_a_jump(new_device: NewDevice, stage: Stage) -> None:
    page = (await new_device(to=long_session(stage))).page
    entries = log(page)
    await expect(entries.get_by_text("Answer 319.")).to_be_in_viewport()
    for _ in range(400):
        if await entries.get_by_text("Answer 0.", exact=True).count():
            break
        top = await entries.evaluate(MOVE_UP)
        assert top["moved"] <= 2, top
    await expect(entries.get_by_text("Answer 0.", exact=True)).to_be_attached()
    await page.get_by_role("button", name="To the end").click()
    await expect(entries.get_by_text("Answer 319.")).to_be_in_viewport()


MOVE_UP = """async (log) => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  log.scrollTop -= 500;
  await frame();
  const top = log.getBoundingClientRect().top;
  const seen = [...log.querySelectorAll("[data-entry]")].find((each) => each.getBoundingClientRect().top > top + 40);
  const before = seen.getBoundingClientRect().top;
  await frame(); await frame(); await frame();
  return { moved: Math.abs(seen.getBoundingClientRect().top - before), text: seen.textContent.slice(0, 40) };
}"""
"""Scroll up, and measure how far an entry on the screen moves by itself in the next frames."""


async def test_the_end_is_followed_only_while_it_is_on_the_screen(new_device: NewDevice, stage: Stage) -> None:
    gates = [stage.gate(name) for name in ("first", "second", "third")]
    much = "A paragraph of the answer.\n\n" * 60
    scene = [
        agent_text(much),
        gates[0].step,
        agent_text(f"{much}Second part."),
        gates[1].step,
        agent_text(f"\n\n{much}Last part."),
        gates[2].step,
    ]
    page = (await new_device(to=stage.play(scene, wait=False))).page
    entries = log(page)
    await expect(entries.get_by_text("A paragraph of the answer.").last).to_be_in_viewport()
    gates[0].open()
    await expect(entries.get_by_text("Second part.")).to_be_in_viewport()
    await entries.evaluate("(log) => { log.scrollTop = 100; }")
    await expect(page.get_by_role("button", name="To the end")).to_be_visible()
    gates[1].open()
    await page.get_by_role("button", name="New below").wait_for()
    assert await entries.evaluate("(log) => log.scrollTop") == 100
    await page.get_by_role("button", name="New below").click()
    await expect(entries.get_by_text("Last part.")).to_be_in_viewport()
    gates[2].open()
    await expect(entries.locator("[data-entry=end]")).to_be_in_viewport()


FROM_THE_END = """async (log) => {
  for (let frames = 0; frames < 20; frames += 1) await new Promise((resolve) => requestAnimationFrame(resolve));
  return Math.round(log.scrollHeight - log.scrollTop - log.clientHeight);
}"""
"""Measure the pixels between what is on the screen and the end, when everything has its height."""


@pytest.mark.parametrize("who", ["owner", "guest", "phone"])
async def test_a_session_that_ends_with_a_change_opens_at_its_end_and_is_followed(
    new_device: NewDevice, stage: Stage, who: str
) -> None:
    words = "Some more words. " * 30
    before = [agent_text("\n\n".join([f"Answer {number}. {words}"] * 2)) for number in range(3)]
    edits = [
        update
        for number in range(3)
        for update in (
            agent_text(f"Edit {number}.", messageId=f"m{number}"),
            *whole_call(
                f"edit {number}", f"Edit song.py {number}", "edit", content=[CHANGE], rawInput={"edit": number}
            ),
        )
    ]
    to = stage.play(before, edits)
    if who == "guest":
        with stage.gateway.open_socket() as opened:
            call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
            link = call(opened, 1, "_antiphon/session/share", sessionId=to.rpartition("/")[2])["result"]["url"]
        page = (await new_device(signed_in=False)).page
        await page.goto(link)
    else:
        page = (await new_device(to=to, phone=who == "phone")).page
    await expect(log(page).locator("[data-entry=end]").last).to_be_in_viewport()
    assert await log(page).evaluate(FROM_THE_END) <= 1
    with stage.gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        id = to.rpartition("/")[2]
        call(opened, 1, "_antiphon/session/attach", sessionId=id)
        call(opened, 2, "session/prompt", sessionId=id, prompt=[{"type": "text", "text": "scene 2"}])
    await expect(log(page).locator("[data-entry=end]")).to_have_count(3)
    assert await log(page).evaluate(FROM_THE_END) <= 1
    await expect(page.get_by_role("button", name="To the end")).to_have_count(0)


async def test_engines_are_named_where_they_begin_to_answer(new_device: NewDevice, stage: Stage) -> None:
    def of(engine: str) -> dict[str, Any]:
        return {"_meta": {"antiphon": {"engine": engine}}}

    scene = [
        agent_text("one", **of("claude")),
        *whole_call("a", "Step"),
        agent_text("two", **of("claude")),
        agent_text("three", **of("codex")),
    ]
    page = (await new_device(to=stage.play(scene))).page
    await expect(log(page).get_by_text("three")).to_be_visible()
    await expect(log(page).get_by_role("heading", level=3)).to_have_text(["Claude", "Codex"])
