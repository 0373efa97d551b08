"""The page with the real Claude Code and the real Codex, each with a fake model: a permission request, a diff, a second prompt."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.duet.e2e.editors import Place, missing, place
from tests.engines.claude.model.steps import Call
from tests.engines.codex.model.steps import patch
from tests.engines.model.steps import Text
from tests.gateway.processes import running
from tests.web.browser import IN_BROWSER, Device, Problems, address, expect
from tests.web.steps import dialog, log, new_session, say, wait_until_idle

pytestmark = [pytest.mark.slow, pytest.mark.prove, IN_BROWSER]

NewDevice = Callable[..., Awaitable[Device]]


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Place]:
    """A directory and a home with both engines."""
    if words := missing():
        pytest.skip(f"not installed: {words}")
    directory = tmp_path / "engines"
    directory.mkdir()
    with place(directory) as made:
        yield made


@pytest.mark.parametrize("engine", ["claude", "codex"])
async def test_a_change_is_approved_and_seen(
    new_device: NewDevice, problems: Problems, at: Place, tmp_path: Path, engine: str
) -> None:
    problems.expect("WebSocket connection|ERR_CONNECTION_REFUSED")  # the gateway ends before the page
    target = at.folder / "notes.txt"
    at.environment["ANTIPHON_ROUTE"] = engine
    at.codex.settings(top='model_provider = "choir"\napproval_policy = "on-request"\nsandbox_mode = "read-only"')
    at.claude.model.answers(Call("Write", {"file_path": str(target), "content": "a line\n"}))
    at.codex.model.answers(patch("*** Add File: notes.txt", "+a line"))
    at.model(engine).answers(Text("It is **written**."))
    # The gateway gives an agent little of its own environment: what the engines need of this one stands in the command.
    agent = ("env", *(f"{name}={value}" for name, value in at.environment.items()), *at.agent)
    device = await new_device(signed_in=False, phone=True)
    page = device.page
    with running(tmp_path / "served", "--root", str(at.folder), agent=agent) as gateway:
        await page.goto(address(gateway))
        await page.wait_for_selector("html[data-connection=open]")
        await new_session(page, at.folder, "write a line into notes.txt")
        await expect(dialog(page)).to_be_visible()
        await expect(dialog(page)).to_contain_text("a line")
        await dialog(page).get_by_role("button", name="Allow").first.click()
        await wait_until_idle(page)
        await expect(log(page).locator("strong")).to_have_text("written")
        assert target.read_text(encoding="utf-8") == "a line\n"
        await say(page, "and again")
        await expect(log(page)).to_contain_text("echo: and again")
