"""Hostile agents, projects and links against the page: what a person decides by is true, and nothing takes the page away.

The agent sends whatever the test says. It waits for an answer in the end, so its gateway is killed and not stopped.
"""

import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.gateway.processes import HOSTILE, Gateway, call, running
from tests.web.browser import IN_BROWSER, Device, Problems, address, expect
from tests.web.steps import composer, dialog, log, new_session

pytestmark = [pytest.mark.slow, pytest.mark.prove, IN_BROWSER]

NewDevice = Callable[..., Awaitable[Device]]

OPTIONS: Final = [
    {"optionId": "a", "name": "Allow", "kind": "allow_once"},
    {"optionId": "r", "name": "Reject", "kind": "reject_once"},
]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway whose agent does what its prompt says."""
    home = {name: str(tmp_path / "home") for name in ("HOME", "XDG_CONFIG_HOME")}
    with running(tmp_path, env=home, agent=HOSTILE) as gateway:
        yield gateway
        gateway.kill()


def begin(gateway: Gateway, *steps: dict[str, Any]) -> str:
    """Let the agent send messages in a new session, and return its address in the page."""
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        made = call(opened, 1, "session/new", cwd=str(gateway.directory / "root"), mcpServers=[])
        id = made["result"]["sessionId"]
        params = {"sessionId": id, "prompt": [{"type": "text", "text": json.dumps(steps)}]}
        opened.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": params}))
        rows = call(opened, 3, "_antiphon/sessions/list")["result"]["sessions"]
    return f"/session/{rows[0]['agent']}/{id}"


def update(**fields: Any) -> dict[str, Any]:
    """Return the step that sends an update as it is."""
    params = {"sessionId": "s1", "update": fields}
    return {"line": json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params})}


def permission(options: Any = OPTIONS, **fields: Any) -> dict[str, Any]:
    """Return the step that asks to run a command that deletes everything."""
    tool = {"toolCallId": "c", "title": "t", "kind": "execute", "rawInput": {"command": "rm -rf ~"}, **fields}
    return {"method": "session/request_permission", "params": {"toolCall": tool, "options": options}}


def form(**properties: Any) -> dict[str, Any]:
    """Return the step that asks a question with fields."""
    schema = {"type": "object", "properties": properties}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": "m", "requestedSchema": schema}}


async def test_a_diff_of_the_agent_does_not_take_the_place_of_the_command(
    new_device: NewDevice, gateway: Gateway
) -> None:
    diff = {"type": "diff", "path": "README.md", "oldText": "a", "newText": "b"}
    page = (await new_device(to=begin(gateway, permission(content=[diff])))).page
    await expect(dialog(page).locator(".subject")).to_have_text("rm -rf ~")
    await expect(dialog(page).locator(".permission-diffs")).to_be_visible()


async def test_an_option_is_called_what_it_does_whatever_the_agent_calls_it(
    new_device: NewDevice, gateway: Gateway
) -> None:
    options = [
        {"optionId": "1", "name": "Reject", "kind": "allow_always"},
        {"optionId": "2", "name": "Allow \u202eonce", "kind": "reject_once"},
        {"optionId": "3", "name": "Allow", "kind": "allow_always"},
        {"optionId": "4", "name": "Yes, and don't ask again", "kind": "allow_always"},
        {"optionId": "5", "name": "No", "kind": "constructor"},
    ]
    page = (await new_device(to=begin(gateway, permission(options)))).page
    shown = dialog(page).locator(".option > span:not(.option-keys)")
    await expect(shown).to_have_text(
        [
            "Reject: “Allow <U+202E>once”",
            "Always allow: “Reject”",
            "Always allow: “Allow”",
            "Yes, and don't ask again",
            "Unknown option: “No”",
        ]
    )


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(permission(kind="constructor"), id="kind of a prototype"),
        pytest.param(permission([{"optionId": "a", "name": 5, "kind": 6}, None, {}]), id="options of other types"),
        pytest.param(permission([{"optionId": "__proto__", "name": "__proto__", "kind": "__proto__"}] * 2), id="__proto__"),
        pytest.param(permission(content=[{"type": "diff", "path": 5, "oldText": 7, "newText": {}}], title={}), id="diff"),
        pytest.param(form(a={"type": "string", "oneOf": [None, 5]}, b=None), id="choices of other types"),
        pytest.param(
            form(constructor={"type": "string", "format": "constructor"}, __proto__={"type": "string", "title": {}}),
            id="fields of a prototype",
        ),
    ],
)  # fmt: skip
async def test_a_request_with_wrong_types_takes_nothing_else_away(
    new_device: NewDevice, gateway: Gateway, problems: Problems, request_: dict[str, Any]
) -> None:
    problems.expect("could not be drawn")
    before = update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": "Still here.\n\n"})
    page = (await new_device(to=begin(gateway, before, request_))).page
    await expect(log(page).get_by_text("Still here.", exact=True)).to_be_visible()
    await page.wait_for_function("document.querySelector('dialog, [data-entry=end]')")
    await expect(page.get_by_text("The page made a mistake")).to_have_count(0)
    if await dialog(page).count():
        await page.keyboard.press("Escape")
        await expect(dialog(page)).to_have_count(0)
    await expect(composer(page)).to_be_visible()


async def test_an_enter_that_was_meant_for_the_composer_answers_no_question(
    new_device: NewDevice, gateway: Gateway
) -> None:
    page = (await new_device()).page
    await new_session(page, gateway.directory / "root")
    # The clock of the page stands still, so what is pressed now is pressed before the dialog takes an answer.
    await page.clock.install()
    await page.clock.pause_at(await page.evaluate("Date.now() + 1000"))
    await composer(page).fill(json.dumps([form(delete={"type": "boolean", "title": "Delete all", "default": True})]))
    await page.clock.run_for(200)
    await page.get_by_role("button", name="Send").click()
    while not await dialog(page).count():
        await page.clock.run_for(20)  # the page draws by its clock
    await page.keyboard.press("Enter")
    await page.clock.run_for(100)
    await expect(dialog(page)).to_be_visible()
    await page.clock.run_for(600)
    await page.keyboard.press("Enter")
    await page.clock.resume()
    await expect(dialog(page)).to_have_count(0)


async def test_emphasis_without_end_does_not_stop_the_page(new_device: NewDevice, gateway: Gateway) -> None:
    text = "\n\n".join(["_a_ __b " * 2900] * 6) + "\n\nThis is the end.\n\n"
    path = begin(gateway, update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": text}))
    page = (await new_device(to=path)).page
    await expect(log(page).get_by_text("This is the end.", exact=True)).to_be_visible()


async def test_an_address_does_not_replace_a_sign_in_unasked(new_device: NewDevice, gateway: Gateway) -> None:
    page = (await new_device()).page
    path = begin(gateway)
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        shared = call(opened, 1, "_antiphon/session/share", sessionId=path.split("/")[-1], role="watch")
    link = f"http://127.0.0.1:{gateway.port}/#{shared['result']['url'].partition('#')[2]}"
    role = "fetch('/api/login').then((response) => response.json()).then(({ role }) => role)"
    await page.goto(link)
    asked = page.get_by_role("alertdialog", name="Sign in with this address?")
    await expect(asked).to_be_visible()
    assert await page.evaluate(role) == "admin"
    await asked.get_by_role("button", name="Cancel").click()
    await page.wait_for_selector("html[data-connection=open]")
    assert await page.evaluate(role) == "admin"
    await page.goto(address(gateway))
    await asked.get_by_role("button", name="Sign in with the address").click()
    await expect(asked).to_have_count(0)
    await page.wait_for_selector("html[data-connection=open]")


WRONG: Final[tuple[Any, ...]] = (None, 7, "text", [], {}, [None], [7], ["x"], [{}], {"a": None}, True)
FIELDS: Final = {
    "plan": ("entries",),
    "usage_update": ("used", "size", "cost"),
    "available_commands_update": ("availableCommands",),
    "current_mode_update": ("currentModeId",),
    "current_model_update": ("currentModelId",),
    "config_option_update": ("configOptions",),
    "session_info_update": ("title",),
    "tool_call": ("title", "kind", "status", "content", "locations", "rawInput", "toolCallId"),
    "tool_call_update": ("title", "content", "locations", "toolCallId"),
    "agent_message_chunk": ("content", "messageId", "_meta"),
    "agent_thought_chunk": ("content",),
    "notice": ("title", "description", "severity"),
}


async def test_updates_with_wrong_types_leave_the_page_and_what_comes_after_them(
    new_device: NewDevice, gateway: Gateway, problems: Problems
) -> None:
    steps = [
        update(sessionUpdate=kind, **{name: wrong})
        for kind, names in FIELDS.items()
        for name in names
        for wrong in WRONG
    ]
    last = update(
        sessionUpdate="agent_message_chunk", messageId="last", content={"type": "text", "text": "This is the end."}
    )
    page = (await new_device(to=begin(gateway, *steps, last))).page
    await expect(log(page)).to_contain_text("This is the end.")
    await expect(composer(page)).to_be_visible()
    await expect(page.locator(".session-head h1")).to_be_visible()
