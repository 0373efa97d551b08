"""The page in a real browser, against the gateway that people start: `python -m benchmarks.page`.

    python -m benchmarks.page                 # all of it, about five minutes
    python -m benchmarks.page --only load     # what the browser fetches before the list of sessions is shown

Lines and their targets:

    load      kB that are fetched, gzipped                                  at most 120
    open      a session of 20,000 events is opened, and scrolled to its beginning and back: the longest task of the
              browser's main thread                                       at most 200 ms
    stream    1,000 updates a second: how far the screen is behind when the agent has sent its last one
    memory    72,000 updates in three minutes: the heap after a collection, at a quarter and at the end

The browser is Debian's Chromium, without a screen; CHROMIUM names another one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.network import INITIALIZE, LIMIT, NEW, prompt, started

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, Page

AGENT: Final = [sys.executable, "-m", "benchmarks.contestants.page_agent"]
CHROMIUM: Final = os.environ.get("CHROMIUM", "/usr/bin/chromium")
FLAGS: Final = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--js-flags=--expose-gc",
]  # fmt: skip
EVENTS: Final = 20_000
TURNS: Final = 20
_OBSERVE: Final = """
    window.longest = 0;
    new PerformanceObserver(list => {
        for (const entry of list.getEntries()) window.longest = Math.max(window.longest, entry.duration);
    }).observe({type: "longtask", buffered: false});
"""


@contextmanager
def gateway() -> Iterator[tuple[int, str]]:
    """Start a gateway with data of its own, and return its port and the name of its agent."""
    with tempfile.TemporaryDirectory(prefix="antiphon-bench-") as directory:
        words = ["serve", "--json", "--no-auth", "--port", "0", "--data", directory, "--root", "/"]
        limit = ["--limit", "prompts-per-minute=1000000"]
        env = {**os.environ, "ANTIPHON_STATE_DIR": directory}
        command = [sys.executable, "-m", "antiphon", *words, *limit, "--", *AGENT]
        with started(command, stdout=subprocess.PIPE, env=env) as process:
            assert process.stdout is not None
            place = json.loads(process.stdout.readline())
            yield int(place["url"].rpartition(":")[2]), place["default"]


@contextmanager
def browser() -> "Iterator[tuple[Page, CDPSession]]":
    """Start a browser, and return an empty page of it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            page = chromium.new_context(viewport={"width": 1280, "height": 900}).new_page()
            page.set_default_timeout(LIMIT * 1000)
            yield page, page.context.new_cdp_session(page)
        finally:
            chromium.close()


class Driver:
    """A client that opens a session and sends prompts, beside the page."""

    def __init__(self, port: int) -> None:
        from websockets.sync.client import connect

        url = f"ws://127.0.0.1:{port}/acp"
        opened = connect(url, proxy=None, compression=None, max_size=None, open_timeout=LIMIT)
        self._socket = ExitStack().enter_context(opened)  # it ends with the process
        self._ask(INITIALIZE)
        self.session = str(json.loads(self._ask(NEW))["result"]["sessionId"])

    def _ask(self, request: dict[str, object]) -> str:
        self._socket.send(json.dumps(request))
        end = f'"id":{request["id"]},"result"'
        while end not in (message := str(self._socket.recv(LIMIT))):
            pass
        return message

    def prompt(self, words: str) -> None:
        """Send a prompt and wait for the end of its turn."""
        message = prompt(self.session)
        params = message["params"]
        assert isinstance(params, dict)
        params["prompt"] = [{"type": "text", "text": words}]
        self._ask(message)


def show(page: "Page", port: int, agent: str, session: str) -> None:
    """Open a session in the page, and wait until something of it is shown."""
    page.goto(f"http://127.0.0.1:{port}/#/session/{agent}/{session}")
    page.wait_for_selector("[role=log] [data-entry]")


def load() -> dict[str, float]:
    """Count what the browser fetches before the list is shown."""
    with gateway() as (port, _), browser() as (page, devtools):
        sizes: list[float] = []
        devtools.on("Network.loadingFinished", lambda event: sizes.append(event["encodedDataLength"]))
        devtools.send("Network.enable")
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector("html[data-connection=open]")
        page.wait_for_load_state("networkidle")
    return {"first load, kB": sum(sizes) / 1000, "first load, requests": float(len(sizes))}


def opened() -> dict[str, float]:
    """Open a long session, scroll to its beginning and back."""
    with gateway() as (port, agent), browser() as (page, _):
        driver = Driver(port)
        for _ in range(TURNS):
            driver.prompt(f"work {EVENTS // TURNS - 3}")
        page.add_init_script(_OBSERVE)
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector("html[data-connection=open]")
        began = time.monotonic()
        show(page, port, agent, driver.session)
        page.get_by_text(f"all {EVENTS // TURNS - 3}").last.wait_for()
        seconds = time.monotonic() - began
        first = page.evaluate("window.longest")
        entries = scroll(page)
        return {
            "open 20,000 events, seconds until its end is shown": seconds,
            "open 20,000 events, longest task in ms": first,
            "scroll to the beginning and back, longest task in ms": page.evaluate("window.longest"),
            "scroll to the beginning, entries that were shown": float(entries),
        }


_LOOK: Final = """() => {
    window.keys ??= new Set();
    document.querySelectorAll("[role=log] [data-entry]").forEach(each => window.keys.add(each.dataset.key));
    let log = document.querySelector("[role=log]");
    while (log.parentElement && log.scrollHeight <= log.clientHeight + 1) log = log.parentElement;
    const isFirst = !document.querySelector(".older") && log.scrollTop === 0;
    return [isFirst, log.scrollTop + log.clientHeight >= log.scrollHeight - 2, window.keys.size];
}"""


def scroll(page: "Page") -> int:
    """Turn the wheel until the beginning is reached, and back to the end; return how many entries came by."""
    page.mouse.move(800, 400)
    until = time.monotonic() + LIMIT
    for side, step in ((0, -1500), (1, 4000)):
        while not page.evaluate(_LOOK)[side]:
            if time.monotonic() > until:
                raise TimeoutError(f"the {('beginning', 'end')[side]} was not reached: {page.evaluate(_LOOK)}")
            page.mouse.wheel(0, step)
    return int(page.evaluate(_LOOK)[2])


def stream(seconds: int = 20, rate: int = 1000) -> dict[str, float]:
    """Follow a session in which updates come fast."""
    with gateway() as (port, agent), browser() as (page, _):
        driver = Driver(port)
        driver.prompt("work 10")
        page.add_init_script(_OBSERVE)
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector("html[data-connection=open]")
        show(page, port, agent, driver.session)
        count = seconds * rate
        began = time.monotonic()
        driver.prompt(f"paced {count} {rate}")
        sent = time.monotonic()
        page.get_by_text(f"all {count}").last.wait_for()
        return {
            f"{rate:,} updates/s for {seconds} s: sent in, s": sent - began,
            f"{rate:,} updates/s: shown after the last, s": time.monotonic() - sent,
            f"{rate:,} updates/s: longest task in ms": page.evaluate("window.longest"),
        }


def memory(count: int = 72_000, seconds: int = 180, parts: int = 8) -> dict[str, float]:
    """Follow a session for long, and look at the heap of the page."""
    with gateway() as (port, agent), browser() as (page, devtools):
        driver = Driver(port)
        driver.prompt("work 10")
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector("html[data-connection=open]")
        show(page, port, agent, driver.session)
        heaps, nodes = [], []
        for _ in range(parts):
            driver.prompt(f"paced {count // parts} {count / seconds}")
            page.get_by_text(f"all {count // parts}").last.wait_for()
            devtools.send("HeapProfiler.collectGarbage")
            heaps.append(page.evaluate("performance.memory.usedJSHeapSize") / 1e6)
            nodes.append(page.evaluate("document.getElementsByTagName('*').length"))
        return {
            "72,000 updates: heap at a quarter, MB": heaps[parts // 4 - 1],
            "72,000 updates: heap at half, MB": heaps[parts // 2 - 1],
            "72,000 updates: heap at the end, MB": heaps[-1],
            "72,000 updates: elements at half": float(nodes[parts // 2 - 1]),
            "72,000 updates: elements at the end": float(nodes[-1]),
        }


def main() -> int:
    """Measure and print."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--only", action="append", choices=("load", "open", "stream", "memory"))
    words.add_argument("--json", type=Path, help="write all numbers to this file")
    options = words.parse_args()
    measures: dict[str, Callable[[], dict[str, float]]] = {
        "load": load,
        "open": opened,
        "stream": stream,
        "memory": memory,
    }
    lines: dict[str, float] = {}
    for part in options.only or measures:
        found = measures[part]()
        lines |= found
        for name, value in found.items():
            print(f"{name:62} {value:14,.2f}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
