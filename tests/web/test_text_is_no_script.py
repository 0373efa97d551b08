"""Text of agents stays text: nothing that they send runs as a script, becomes an element, or makes the page fetch something."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.gateway.processes import Gateway
from tests.web.browser import IN_BROWSER, Device, expect
from tests.web.scenes import Stage, agent_text, end_call, playing, shown, start_call, thought, whole_call

pytestmark = [pytest.mark.slow, pytest.mark.prove, IN_BROWSER]

NewDevice = Callable[..., Awaitable[Device]]

RUN: Final = "window.caught=1"
HTML: Final = (
    f"<script>{RUN}</script>",
    f"<img src=x onerror={RUN}>",
    f"<svg onload={RUN}><animate onbegin={RUN} attributeName=x dur=1s></svg>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<details open ontoggle={RUN}>x</details>",
    f"<a href='javascript:{RUN}'>y</a>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={RUN}>",
    "<style>* { display: none }</style>",
    "<base href='https://evil.example/'>",
    "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "<form action='https://evil.example/'><button>send</button></form>",
    f"--><script>{RUN}</script>",
    f"\"'><script>{RUN}</script>",
    f"</textarea></title></noscript><script>{RUN}</script>",
    f"<object data='javascript:{RUN}'></object><embed src='javascript:{RUN}'>",
)
"""Elements that would run a script or change the page."""

MARKDOWN: Final = (
    f"[a](javascript:{RUN})",
    f"[a](JaVaScRiPt:{RUN})",
    f"[a](  javascript:{RUN})",
    f"[a](&#106;avascript:{RUN})",
    f"[a](javascript&colon;{RUN})",
    f"[a](\u0001javascript:{RUN})",
    f"[a](vbscript:{RUN})",
    f"[a](data:text/html,<script>{RUN}</script>)",
    "[a](data:text/html;base64,PHNjcmlwdD53aW5kb3cuY2F1Z2h0PTE8L3NjcmlwdD4=)",
    "[a](blob:https://evil.example/x)",
    "[a](file:///etc/passwd)",
    "[a](//evil.example/x)",
    "[a](#/settings)",
    f"<javascript:{RUN}>",
    f"[b]\n\n[b]: javascript:{RUN}",
    f"![a](javascript:{RUN})",
    "![a](https://evil.example/pixel.png)",
    "![a](data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9IndpbmRvdy5jYXVnaHQ9MSIvPg==)",
    f"[![a](https://evil.example/pixel.png)](javascript:{RUN})",
    f'[a](https://example.org/ "\'onmouseover={RUN}")',
    f'https://example.org/"onmouseover={RUN}//',
    f"```html\n<script>{RUN}</script>\n```",
    f'```"><script>{RUN}</script>\nx\n```',
    f"`<img src=x onerror={RUN}>`",
    f"| <img src=x onerror={RUN}> |\n|--|\n| <script>{RUN}</script> |",
    f"- [ ] <img src=x onerror={RUN}>",
    f"# <svg/onload={RUN}>",
    f"> <script>{RUN}</script>",
    f"**<b onclick={RUN}>bold</b>**",
    f"<div>\n\n[a](javascript:{RUN})\n\n</div>",
)
"""Links, images and blocks that would do so after they were read as Markdown."""

TERMINAL: Final = (
    f"\u001b]8;;javascript:{RUN}\u0007link\u001b]8;;\u0007",
    "\u001b]8;;https://evil.example/\u001b\\link\u001b]8;;\u001b\\",
    "\u001b]52;c;ZXZpbA==\u0007",
    "\u001b]0;title\u0007",
    "\u001b[38;2;1;2;3;url(https://evil.example/x)mred\u001b[0m",
    f"\u001b[31m<script>{RUN}</script>\u001b[0m",
    "\u001bP1$r0m\u001b\\\u001b[6n\u001b[c",
)
"""Output of commands that a terminal would obey."""

EVERYTHING: Final = (*HTML, *MARKDOWN, *TERMINAL, "user\u202etxt.exe", "a\u2066b\u2069c")

ALLOWED: Final = {
    "A", "ARTICLE", "ASIDE", "AUDIO", "BDI", "BLOCKQUOTE", "BR", "BUTTON", "CAPTION", "CODE", "COL", "COLGROUP", "DEL", "DETAILS", "DIV", "EM",
    "FIGCAPTION", "FIGURE", "FOOTER", "H2", "H3", "H4", "H5", "H6", "HEADER", "HR", "I", "IMG", "INPUT", "LI", "OL", "P", "PRE", "SECTION", "SPAN",
    "STRONG", "SUMMARY", "TABLE", "TBODY", "TD", "TH", "THEAD", "TIME", "TR", "UL", "path", "svg",
}  # fmt: skip
"""Elements that the views of the transcript make."""

ELEMENTS: Final = """(log) => [...log.querySelectorAll("*")].map((element) => ({
  name: element.tagName,
  attributes: [...element.attributes].map(({ name, value }) => [name, value]),
}))"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A gateway whose agent plays scenes."""
    with playing(tmp_path) as stage:
        yield stage


@pytest.fixture
def gateway(stage: Stage) -> Gateway:
    """The gateway of the devices."""
    return stage.gateway


def updates(number: int, text: str) -> list[dict[str, Any]]:
    """Put a text into every field of every kind of update."""
    id = f"call {number}"
    diff = {"type": "diff", "path": f"/w/{text}", "oldText": f"{text}\nold", "newText": f"{text}\nnew"}
    content = [diff, *shown(text), *shown(f"```\n{text}\n```")]
    message = {"sessionUpdate": "agent_message_chunk"}
    return [
        thought(text),
        agent_text(text, _meta={"antiphon": {"engine": text[:40]}}),
        {**message, "content": {"type": "resource_link", "name": text, "uri": text, "title": text, "description": text}},
        {**message, "content": {"type": "resource", "resource": {"uri": text, "text": text, "mimeType": text}}},
        {**message, "content": {"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zy8+", "uri": text}},
        {**message, "content": {"type": "audio", "mimeType": text, "data": text}},
        start_call(id, text, "execute", locations=[{"path": text}], rawInput={"command": f"x {text}"}),
        end_call(id, "failed", content=content, rawOutput={text: text}),
        *whole_call(f"{id} read", text, "read", status="failed", content=shown(text), locations=[{"path": f"/w/{text}"}]),
        *whole_call(f"{id} think", text, "think", status="failed", content=shown(text)),
        {"sessionUpdate": "notice", "severity": "error", "title": text, "description": text},
        {"sessionUpdate": "compaction_update", "compactionId": id, "status": "failed", "error": text,
         "summary": [{"type": "text", "text": text}]},
        {"sessionUpdate": "plan", "entries": [{"content": text, "priority": "high", "status": "pending"}]},
        {"sessionUpdate": "session_info_update", "title": text},
        {"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": {"amount": 1.0, "currency": text}},
    ]  # fmt: skip


@pytest.mark.parametrize("group", [HTML, MARKDOWN, TERMINAL], ids=["html", "markdown", "terminal"])
async def test_no_text_of_an_agent_becomes_a_script_or_an_element(
    new_device: NewDevice, stage: Stage, group: tuple[str, ...]
) -> None:
    scene = [update for number, text in enumerate((*group, *EVERYTHING[-2:])) for update in updates(number, text)]
    device = await new_device(to=stage.play([*scene, agent_text("\n\nThis is the end.")]))
    page = device.page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: asked.append(dialog.message))
    entries = page.get_by_role("log")
    await expect(entries.get_by_text("This is the end.")).to_be_visible()
    folded = entries.locator(
        "[data-entry=thought] [aria-expanded=false], [data-entry=compaction] [aria-expanded=false]"
    )
    while await folded.count():
        await folded.first.click()
    for summary in await entries.locator(".t-json > summary").all():
        await summary.evaluate("(element) => element.click()")
    elements = await entries.evaluate(ELEMENTS)
    assert {each["name"] for each in elements} <= ALLOWED
    for each in elements:
        for name, value in each["attributes"]:
            assert not name.startswith("on") and name not in ("srcdoc", "action", "formaction", "ping"), each
            if name == "href":
                assert value.startswith(("https://example.org/", "https://evil.example/", "#/session/")), each
            if name == "src":
                assert value.startswith(
                    ("data:image/png;", "data:image/jpeg;", "data:image/gif;", "data:image/webp;")
                ), each
            if name == "style":
                assert "url" not in value, each
    assert await page.evaluate("window.caught") is None
    mine = f"http://127.0.0.1:{stage.gateway.port}/"
    assert [url for url in asked if not url.startswith((mine, mine.replace("http", "ws"), "data:", "blob:"))] == []
    assert await page.title(), "the page is still there"


async def test_what_is_sent_is_shown_as_it_is(new_device: NewDevice, stage: Stage) -> None:
    scene = [agent_text(f"<b>one</b> {HTML[0]} [words](javascript:{RUN}) a\u202eb")]
    page = (await new_device(to=stage.play(scene))).page
    message = page.get_by_role("log").locator("[data-entry=message]").last
    await expect(message).to_contain_text(f"<b>one</b> {HTML[0]} words (javascript:{RUN}) a<U+202E>b")
