"""Count the functions and files that a prompt passes on its way in, and a token on its way out: traced, and as they are written down.

    python tools/walk_counts.py            # the two numbers of each way, by package
    python tools/walk_counts.py --list     # and every function, in the order in which it was first called

The joint agent runs in this process over the Claude engine; in the place of Claude Code stands a script that answers with one token
at a time. Every call of a function of the package is seen, on the thread of the store too. A session that has a title and one turn
behind it is measured: what happens only once in a session is not part of the walk.

`docs/architecture.md` has the same two ways as a reader follows them. Ends with 1 if it names a function that was not called.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Final

PAGE: Final = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"
SOURCE: Final = Path(__file__).resolve().parents[1] / "src" / "antiphon"

PAUSE: Final = 0.3
"""Seconds between two tokens: long enough for each to be on the disk and at the client before the next one."""

TOKENS: Final = 4
MEASURED: Final = 3
"""The token that is measured: the first ones begin the message."""

CLI: Final = """
import json, sys, time
from pathlib import Path
def say(**line):
    sys.stdout.write(json.dumps(line) + "\\n"); sys.stdout.flush()
if "--version" in sys.argv:
    print("2.1.325 (Claude Code)"); sys.exit()
session = sys.argv[sys.argv.index("--session-id") + 1] if "--session-id" in sys.argv else "s"
turn = 0
for line in sys.stdin:
    heard = json.loads(line)
    if heard["type"] == "control_request":
        answer = {"commands": [], "models": [], "account": {"apiKeySource": "ANTHROPIC_API_KEY"}, "mode": "default"}
        response = {"subtype": "success", "request_id": heard["request_id"], "response": answer}
        say(type="control_response", response=response)
    elif heard["type"] == "user":
        turn += 1
        common = {"session_id": session, "parent_tool_use_id": None, "uuid": f"u{turn}"}
        Path("prompt-%d" % turn).touch()
        time.sleep(PAUSE * 2)
        message = {"id": f"m{turn}", "type": "message", "role": "assistant", "model": "x", "content": [], "usage": {}}
        say(type="stream_event", event={"type": "message_start", "message": message}, **common)
        block = {"type": "text", "text": ""}
        say(type="stream_event", event={"type": "content_block_start", "index": 0, "content_block": block}, **common)
        for number in range(TOKENS):
            Path("token-%d-%d" % (turn, number + 1)).touch()
            time.sleep(PAUSE)
            delta = {"type": "text_delta", "text": "word "}
            say(type="stream_event", event={"type": "content_block_delta", "index": 0, "delta": delta}, **common)
            time.sleep(PAUSE)
        Path("token-%d-%d" % (turn, TOKENS + 1)).touch()
        text = {"type": "text", "text": "word " * TOKENS}
        say(type="assistant", message=message | {"content": [text]}, **common)
        say(type="result", subtype="success", is_error=False, result="", stop_reason="end_turn", num_turns=1,
            duration_ms=1, duration_api_ms=1, total_cost_usd=0, usage={}, **common)
"""


class Calls:
    """The functions of the package that were called, in the order of their first call."""

    def __init__(self) -> None:
        self.seen: dict[CodeType, None] = {}
        self.every: set[CodeType] = set()
        """The functions of all that was taken."""
        self.recording = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if self.recording and event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            self.seen.setdefault(frame.f_code)

    def taken(self) -> list[tuple[str, str]]:
        """What was called so far, as file and function; functions that have no name of their own are a part of their caller."""
        found = [
            (str(Path(code.co_filename).relative_to(SOURCE)), code.co_qualname)
            for code in self.seen
            if not code.co_name.startswith("<")
        ]
        self.every.update(self.seen)
        self.seen = {}
        return found

    def is_passed(self, name: str) -> bool:
        """Whether a function was called, or a method of a class, by its dotted name."""
        file, function = located(name)
        return any(
            code.co_filename == str(SOURCE / file) and f"{code.co_qualname}.".startswith(f"{function}.")
            for code in self.every
        )


def located(name: str) -> tuple[str, str]:
    """The file of a dotted name, and the name in it."""
    parts = name.split(".")
    end = next(end for end in range(len(parts), 0, -1) if SOURCE.joinpath(*parts[:end]).with_suffix(".py").is_file())
    return "/".join(parts[:end]) + ".py", ".".join(parts[end:])


def written(way: str) -> list[str]:
    """The dotted names that the page about the architecture has for a way: `A prompt` or `A token`."""
    [section] = [each for each in PAGE.read_text(encoding="utf-8").split("\n## ") if each.startswith(f"{way},")]
    return list(dict.fromkeys(re.findall(r"`([a-z_]+(?:\.\w+)+)`", section)))


async def appears(path: Path) -> None:
    """Wait for a file."""
    async with asyncio.timeout(60):
        while not path.exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
            await asyncio.sleep(0.005)


async def walk(calls: Calls, work: Path) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The functions of a prompt on its way in, and those of one token on its way out."""
    from antiphon.duet.agent import joint_agent
    from antiphon.transports.pipes import PipeTransport

    loop = asyncio.get_running_loop()
    (agent_reads, client_writes), (client_reads, agent_writes) = os.pipe(), os.pipe()
    agent = asyncio.create_task(joint_agent(["claude"]).serve(PipeTransport(agent_reads, agent_writes)))
    answers: dict[int, asyncio.Future[dict[str, object]]] = {}

    def read_lines() -> None:
        """Be the client, without any code of the package."""
        with os.fdopen(client_reads) as lines:
            for line in lines:
                message = json.loads(line)
                if (number := message.get("id")) in answers and "method" not in message:
                    loop.call_soon_threadsafe(answers[number].set_result, message["result"])

    client = threading.Thread(target=read_lines)
    client.start()

    def send(method: str, params: dict[str, object]) -> "asyncio.Future[dict[str, object]]":
        number = len(answers) + 1
        answers[number] = loop.create_future()
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        os.write(client_writes, json.dumps(message).encode() + b"\n")
        return answers[number]

    await send(
        "initialize", {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    )
    session = (await send("session/new", {"cwd": str(work), "mcpServers": []}))["sessionId"]
    prompt: dict[str, object] = {"sessionId": session, "prompt": [{"type": "text", "text": "say it"}]}
    await send("session/prompt", prompt)
    await asyncio.sleep(PAUSE)
    calls.recording = True
    answer = send("session/prompt", prompt)
    await appears(work / "prompt-2")
    way_in = calls.taken()
    await appears(work / f"token-2-{MEASURED}")
    calls.taken()
    await appears(work / f"token-2-{MEASURED + 1}")
    way_out = calls.taken()
    await answer
    calls.recording = False
    calls.taken()
    os.close(client_writes)
    await agent
    client.join()
    return way_in, way_out


def report(title: str, found: list[tuple[str, str]], *, listed: bool) -> None:
    """Print the numbers of one walk."""
    files = dict.fromkeys(file for file, _ in found)
    print(f"{title}: {len(found)} functions in {len(files)} files")
    by_package = Counter(file.partition("/")[0] for file, _ in found)
    of_files = Counter(file.partition("/")[0] for file in files)
    for package, count in by_package.most_common():
        print(f"  {package:12} {count:3} functions, {of_files[package]:2} files")
    if listed:
        for file, name in found:
            print(f"    {file:40} {name}")


def main() -> None:
    """Measure both walks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name every function")
    listed = parser.parse_args().list
    sys.path.insert(0, str(SOURCE.parent))
    calls = Calls()
    with tempfile.TemporaryDirectory() as home:
        work = Path(home) / "work"
        work.mkdir()
        cli = Path(home) / "claude"
        cli.write_text(f"#!{sys.executable}\nPAUSE, TOKENS = {PAUSE}, {TOKENS}\n{CLI}", encoding="utf-8")
        cli.chmod(0o700)
        os.environ |= {
            "HOME": home, "ANTIPHON_STATE_DIR": f"{home}/state", "ANTIPHON_CONFIG_DIR": f"{home}/config",
            "CLAUDE_CODE_EXECUTABLE": str(cli), "CLAUDE_CONFIG_DIR": f"{home}/claude-config", "ANTHROPIC_API_KEY": "none",
        }  # fmt: skip
        threading.setprofile(calls)
        sys.setprofile(calls)
        way_in, way_out = asyncio.run(walk(calls, work))
    report("prompt in", way_in, listed=listed)
    report("token out", way_out, listed=listed)
    wrong = False
    for way in ("A prompt", "A token"):
        names = written(way)
        print(
            f"{way.lower()} as it is written down: {len(names)} functions in {len({located(name)[0] for name in names})} files"
        )
        for name in names:
            if not calls.is_passed(name):
                wrong = True
                print(f"  `{name}` was not called")
    sys.exit(wrong)


if __name__ == "__main__":
    main()
