"""A tour: a short session with the demo agent, in a temporary directory. `python examples/tour.py [--serve] [prompt …]`

With `--serve` the agent is behind a gateway that is started for it, at the other end of a WebSocket.

Permission requests are allowed without a question: what the agent does happens in that directory, which is gone afterwards.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from antiphon import AcpError, ResponseError, connect, v1
from antiphon.client import ClientSession, Files, Terminals
from antiphon.transcript.entries import CallEntry, Entry, Message, NoticeEntry, Thought

TOUR = ("Where are we?", "/plan", "/edit notes.txt Sing the second voice", "/read notes.txt", "/run ls -l", "/usage")
MARKS = {v1.PlanStatus.COMPLETED: "✓", v1.PlanStatus.IN_PROGRESS: "▸", v1.PlanStatus.PENDING: "·"}


def line(author: str, text: str) -> None:
    """Print lines of the session, with their author in front."""
    for number, part in enumerate(text.rstrip().splitlines()):
        print(f"{author if number == 0 else '':>9}  {part}", flush=True)


def permission(request: v1.RequestPermission) -> bool:
    """Allow this call, once."""
    line("asks", f"{request.tool_call.title}".rstrip("?") + "?")
    line("you", "Allow")
    return True


def show(entry: Entry, directory: Path) -> None:
    """Print an entry of the transcript, at the end of its turn."""
    match entry:
        case Message(speaker="agent", text=text):
            line("agent", text)
        case Thought(text=text):
            line("thinks", text)
        case NoticeEntry(title=title, description=description):
            line("notice", f"{title}: {description}")
        case CallEntry(label=label, status=status, content=content):
            line("tool", f"{label} ({status})")
            for item in content:
                show_content(entry, item, directory)
        case _:
            pass


def show_content(call: CallEntry, item: v1.ToolContent, directory: Path) -> None:
    """Print the content of a tool call."""
    match item:
        case v1.Diff(path=path, new_text=new, old_text=old):
            old_lines = (old or "").splitlines()
            line("diff", f"{Path(path).relative_to(directory)}")
            line("", "\n".join(f"+ {added}" for added in new.splitlines()[len(old_lines) :]))
        case v1.ContentItem(content=v1.TextBlock(text=text)):
            line("", text)
        case v1.TerminalItem():
            line("", str(call.raw_output["output"]))
        case _:
            pass


async def run_turn(session: ClientSession, prompt: str) -> None:
    """Run one turn: print messages and calls, then the plan and the usage if they changed."""
    line("you", prompt)
    transcript, begin = session.transcript, len(session.transcript.entries)
    plan, usage = transcript.plan, transcript.usage
    try:
        stopped = str((await session.prompt(prompt)).stop_reason)
    except ResponseError as error:
        stopped = f"{error}"
    for entry in transcript.entries[begin:]:
        show(entry, Path(session.cwd))
    if transcript.plan != plan:
        line("plan", "   ".join(f"{MARKS[step.status.meaning]} {step.content}" for step in transcript.plan))
    if transcript.usage is not None and transcript.usage != usage:
        line("usage", f"{transcript.usage.used} of {transcript.usage.size} tokens")
    if stopped != "end_turn":
        line("stopped", stopped)
    print()


@asynccontextmanager
async def gateway(directory: str, env: dict[str, str]) -> AsyncIterator[tuple[str, str]]:
    """Start `antiphon serve`, and give the address of its demo agent and the token for it."""
    options = ("--json", "--port", "0", "--data", f"{directory}/.gateway", "--root", directory)
    serve = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "antiphon", "serve", *options, env=env, stdout=asyncio.subprocess.PIPE
    )
    assert serve.stdout is not None
    try:
        first = await serve.stdout.readline()
        if not first:  # it has written why
            sys.exit(await serve.wait())
        found = json.loads(first)
        address = f"{found['url'].replace('http', 'ws', 1)}/agents/demo/acp"
        line("gateway", f"{address}\nagents: {', '.join(found['agents'])}\n")
        print()
        yield address, await asyncio.to_thread(Path(found["token_file"]).read_text, encoding="utf-8")
    finally:
        if serve.returncode is None:
            serve.terminate()
        ended = await serve.wait()
    line("gateway", "ended" if ended == 0 else f"failed with status {ended}")
    if ended:
        sys.exit(1)


async def main(prompts: list[str], *, serve: bool = False) -> None:
    """Start the demo agent, or a gateway with it, and send it prompts."""
    with tempfile.TemporaryDirectory(prefix="antiphon-tour-") as directory:
        (Path(directory) / "README.md").write_text("# A place to sing\n", encoding="utf-8")
        env = {**os.environ, "ANTIPHON_STATE_DIR": f"{directory}/.state"}
        files, terminals = Files(write=True), Terminals()
        async with AsyncExitStack() as stack:
            if serve:
                address, token = await stack.enter_async_context(gateway(directory, env))
                connecting = connect(address, token=token.strip(), permission=permission)
            else:
                connecting = connect("demo", env=env, permission=permission, files=files, terminals=terminals)
            agent = await stack.enter_async_context(connecting)
            session = await agent.new_session(directory)
            for prompt in prompts or TOUR:
                await run_turn(session, prompt)


if __name__ == "__main__":
    try:
        words = [word for word in sys.argv[1:] if word != "--serve"]
        asyncio.run(main(words, serve="--serve" in sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except AcpError as error:
        sys.exit(f"error: {error}")
