"""Make docs/pictures/editor.webp: JupyterLab with a chat, in which Antiphon asks whether it may edit a file.

`python tools/editor_picture.py` installs JupyterLab and its ACP client into a temporary environment, which takes some minutes, or uses the
environment of `--lab DIRECTORY`. The persona is the one of docs/editors.md, and the agent is `antiphon agent`, which uses the demo where it finds no CLI.
"""

import argparse
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, sync_playwright

ROOT: Final = Path(__file__).resolve().parents[1]
PICTURE: Final = ROOT / "docs" / "pictures" / "editor.webp"
PACKAGES: Final = (
    "jupyterlab==4.6.6",
    "jupyter-ai-acp-client==0.3.3",
    "jupyterlab-chat==0.25.3",
    "jupyter-ai-persona-manager==0.3.0",
)
PERSONA: Final = re.compile(r'^```python title="(\S+persona\.py)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
SIZE: Final = (1100, 640)
HOME: Final = Path(tempfile.gettempdir()).resolve() / "ada"
"""The home of JupyterLab and the agent. Options of the permission request show it, so it is short, and the same on every machine."""
NEWS: Final = "@jupyterlab/apputils-extension/notification.jupyterlab-settings"
FLAGS: Final = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
SONG: Final = """\
voices = ["first", "second"]

for voice in voices:
    print(voice, "voice")
"""
PROMPTS: Final = {"What is here?": "lists what I can show", '/edit song.py print("both voices")': "Allow?"}
"""What is sent, and what the chat shows then. The client adds a note to the first prompt, so that one cannot be a command."""
OPEN: Final = """async () => {
    const {commands, shell} = window.jupyterapp;
    await commands.execute("application:toggle-left-area");
    await commands.execute("docmanager:open", {path: "song.py"});
    shell.widgets("main").next().value.dispose();
    await commands.execute("docmanager:open", {path: "song.chat", options: {mode: "split-right"}});
}"""


def install(folder: Path) -> Path:
    """Make an environment with JupyterLab and its ACP client."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "-q", *PACKAGES], check=True)
    return folder


@contextmanager
def short_home() -> Iterator[Path]:
    """Make the home, and remove it in the end."""
    HOME.mkdir()  # an error if another recording runs: two cannot share it
    try:
        yield HOME
    finally:
        shutil.rmtree(HOME)


def write_workspace(folder: Path) -> Path:
    """Write the directory that JupyterLab shows, with the persona of the documentation."""
    found = PERSONA.search((ROOT / "docs" / "editors.md").read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit("error: docs/editors.md has no persona for JupyterLab")
    workspace = folder / "song"
    persona = workspace / found[1]
    persona.parent.mkdir(parents=True)
    persona.write_text(found[2], encoding="utf-8")
    shutil.copy(ROOT / "docs" / "assets" / "icon.svg", persona.with_name("antiphon.svg"))
    (workspace / "song.py").write_text(SONG, encoding="utf-8")
    (workspace / "song.chat").touch()
    news = folder / "settings" / NEWS
    news.parent.mkdir(parents=True)
    news.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}), encoding="utf-8")
    return workspace


@contextmanager
def jupyter_lab(lab: Path, folder: Path) -> Iterator[str]:
    """Start JupyterLab in a home of its own, and give its address."""
    workspace = write_workspace(folder)
    env = {
        "HOME": str(folder), "LANG": "C.UTF-8", "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "PATH": os.pathsep.join([str(lab / "bin"), os.path.dirname(sys.executable), os.environ["PATH"]]),
        "CLAUDE_CODE_EXECUTABLE": "/not/here/claude", "CODEX_EXECUTABLE": "/not/here/codex",
    }  # fmt: skip
    command = [str(lab / "bin" / "jupyter"), "lab", "--no-browser", "--allow-root", "--expose-app-in-browser", "--ServerApp.port=0"]  # fmt: skip
    written = folder / "lab.log"
    with written.open("w") as log:
        server = subprocess.Popen(command, cwd=workspace, env=env, stderr=log)
    try:
        yield wait_for_address(written)
    finally:
        server.terminate()
        server.wait()


def wait_for_address(log: Path) -> str:
    """Return the address that JupyterLab writes into its log when it listens."""
    for _ in range(600):
        if address := re.search(r"http://localhost:\d+/lab\S*", log.read_text(encoding="utf-8")):
            return address[0]
        time.sleep(0.1)
    raise SystemExit(f"error: JupyterLab did not start\n{log.read_text(encoding='utf-8')}")


def ask_for_an_edit(page: Page, address: str) -> None:
    """Open a file and a chat side by side, and send a prompt that asks for permission."""
    page.goto(address)
    page.wait_for_selector(".jp-Launcher", timeout=60_000)
    page.evaluate(OPEN)
    page.locator(".jp-FileEditor .cm-content").wait_for()
    page.get_by_text("No engine is installed").wait_for(timeout=30_000)
    field = page.get_by_placeholder("Type a chat message")
    for prompt, shown in PROMPTS.items():
        field.press_sequentially(prompt, delay=20)
        field.press("Escape")  # closes the list of commands
        field.press("Enter")
        page.get_by_text(shown).wait_for(timeout=30_000)


def photograph(page: Page) -> bytes:
    """Return what the page shows as WebP."""
    page.wait_for_timeout(1_000)  # the chat is still laid out
    page.get_by_text("Allow?").scroll_into_view_if_needed()
    page.mouse.move(0, 0)
    page.wait_for_timeout(1_000)
    shot = page.context.new_cdp_session(page).send("Page.captureScreenshot", {"format": "webp", "quality": 80})
    return base64.b64decode(shot["data"])


def main() -> None:
    """Make the picture."""
    words = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    words.add_argument("--lab", type=Path, help="an environment that has JupyterLab and its ACP client")
    options = words.parse_args()
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        raise SystemExit("error: there is no Chromium here\nhint: Debian: apt-get install chromium")
    with tempfile.TemporaryDirectory() as name, short_home() as home, sync_playwright() as playwright:
        lab = (options.lab or install(Path(name) / "environment")).resolve()
        with jupyter_lab(lab, home) as address:
            browser = playwright.chromium.launch(executable_path=browser_path, args=[*FLAGS])
            page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
            ask_for_an_edit(page, address)
            PICTURE.write_bytes(photograph(page))
            browser.close()
    print(f"{PICTURE}: {PICTURE.stat().st_size} bytes")


if __name__ == "__main__":
    main()
