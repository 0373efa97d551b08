"""A tour: a short session with the demo agent, in a temporary directory. `python examples/tour.py [prompt …]`

Nobody is asked: what the agent wants to do happens in that directory, which is gone afterwards, and is allowed.
"""

import asyncio
import os
import sys
import tempfile
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


async def main(prompts: list[str]) -> None:
    """Start the demo agent and send it prompts."""
    with tempfile.TemporaryDirectory(prefix="antiphon-tour-") as directory:
        (Path(directory) / "README.md").write_text("# A place to sing\n", encoding="utf-8")
        env = {**os.environ, "ANTIPHON_STATE_DIR": f"{directory}/.state"}
        files, terminals = Files(write=True), Terminals()
        async with connect("demo", env=env, permission=permission, files=files, terminals=terminals) as agent:
            session = await agent.new_session(directory)
            for prompt in prompts or TOUR:
                await run_turn(session, prompt)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except AcpError as error:
        sys.exit(f"error: {error}")
