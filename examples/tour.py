"""A tour: a short conversation with the demo agent, in a directory made for it. `python examples/tour.py [prompt …]`

With prompts it plays those; on a terminal it then lets you go on by yourself, and asks you when the agent asks.
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from antiphon import AcpError, RequestError, connect, v1
from antiphon.client import Files, Session, Terminals
from antiphon.client.transcript_entries import CallEntry, Entry, Message, Notice, Thought

TOUR = ("Where are we?", "/plan", "/edit notes.txt Sing the second voice", "/read notes.txt", "/run ls -l", "/usage")
MARKS = {v1.PlanStatus.COMPLETED: "✓", v1.PlanStatus.IN_PROGRESS: "▸", v1.PlanStatus.PENDING: "·"}


def line(who: str, what: str) -> None:
    """One or more lines of the conversation, with who says it in front."""
    for number, part in enumerate(what.rstrip().splitlines()):
        print(f"{who if number == 0 else '':>9}  {part}", flush=True)


async def typed(prompt: str) -> str:
    """A line from the terminal. Not `input` in a thread, which Ctrl-C would have to wait for."""
    print(prompt, end="", flush=True)
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(sys.stdin, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin)
    if not (text := sys.stdin.readline()):
        raise EOFError
    return text.strip()


async def permission(asked: v1.RequestPermission) -> str | bool:
    """Ask the user, or allow once where there is none. Everything happens in a directory made for it."""
    line("asks", f"{asked.tool_call.title}".rstrip("?") + "?")
    if not sys.stdin.isatty():
        line("you", "Allow (nobody is there to ask, and this is a playground)")
        return v1.PermissionOptionKind.ALLOW_ONCE
    choices = {str(number): option for number, option in enumerate(asked.options, 1)}
    offered = "  ".join(f"{number} {option.name}" for number, option in choices.items())
    chosen = choices.get(await typed(f"{'you':>9}  {offered}: "))
    return chosen.option_id if chosen is not None else False


def show(entry: Entry, written: Path) -> None:
    """An entry of the transcript, as it stands at the end of its turn."""
    match entry:
        case Message(speaker="agent", text=text):
            line("agent", text)
        case Thought(text=text):
            line("thinks", text)
        case Notice(title=title, description=description):
            line("notice", f"{title}: {description}")
        case CallEntry(label=label, status=status, content=content):
            line("tool", f"{label} ({status})")
            for item in content:
                match item:
                    case v1.Diff(path=path, new_text=new, old_text=old):
                        line(
                            "diff",
                            f"{Path(path).relative_to(written)}: {len((old or '').splitlines())} → {len(new.splitlines())} lines",
                        )
                    case v1.ContentItem(content=v1.TextBlock(text=text)):
                        line("", text)
                    case v1.TerminalItem():
                        line("", str(entry.raw_output["output"]))
                    case _:
                        pass
        case _:
            pass


async def play(session: Session, prompt: str, *, said: bool = False) -> None:
    """One turn: what was said and done, then the plan and the usage if they changed."""
    if not said:
        line("you", prompt)
    transcript, begin = session.transcript, len(session.transcript.entries)
    plan, usage = transcript.plan, transcript.usage
    try:
        stopped = (await session.prompt(prompt)).stop_reason
    except RequestError as error:
        stopped = None
        line("error", str(error))
    for entry in transcript.entries[begin:]:
        show(entry, Path(session.cwd))
    if transcript.plan != plan:
        line("plan", "   ".join(f"{MARKS[step.status.meaning]} {step.content}" for step in transcript.plan))
    if transcript.usage is not None and transcript.usage != usage:
        line("usage", f"{transcript.usage.used} of {transcript.usage.size} tokens")
    if stopped not in (None, v1.StopReason.END_TURN):
        line("stopped", str(stopped))
    print()


async def main(prompts: list[str]) -> None:
    """Start the demo agent and talk to it."""
    with tempfile.TemporaryDirectory(prefix="antiphon-tour-") as place:
        (Path(place) / "README.md").write_text("# A place to sing\n", encoding="utf-8")
        env = {**os.environ, "ANTIPHON_STATE_DIR": f"{place}/.state"}
        async with connect(
            "demo", env=env, permission=permission, files=Files(write=True), terminals=Terminals()
        ) as agent:
            session = await agent.new_session(place)
            for prompt in prompts or TOUR:
                await play(session, prompt)
            if not prompts and sys.stdin.isatty():
                print("Go on if you like: /help lists what the demo knows, an empty line ends.\n")
                while prompt := await typed(f"{'you':>9}  "):
                    await play(session, prompt, said=True)


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1:]))
    except (KeyboardInterrupt, EOFError):
        print()
    except AcpError as error:
        sys.exit(f"error: {error}")
