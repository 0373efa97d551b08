"""Agents that others sell, driven by `antiphon.connect`, with a scripted model."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

import antiphon
from antiphon import v1
from antiphon.client.agent import ConnectedAgent
from antiphon.client.session import ClientSession
from tests.interop.our_client import OurFiles, OurTerminals, RequestLog
from tests.thirdparty import table
from tests.thirdparty.model import script
from tests.thirdparty.place import Place, Step, place

TIMEOUT = 30.0
"""Seconds for one step."""

LEFT: Final = "peer's fault: it neither kills nor releases the terminal; it ends with the connection"


class Play:
    """A connection, a session in it, and a note of all that was asked of us."""

    def __init__(self, where: Place) -> None:
        self.where = where
        self.book = RequestLog()
        self.terminals = OurTerminals(self.book)
        self.agent: ConnectedAgent
        self.session: ClientSession

    async def turn(self, *steps: Step, answer: str = "allow_once") -> list[v1.Update]:
        """One turn to its end; what was received."""
        self.book.forget(answer)
        turn = self.session.prompt(script(*steps))
        updates = [update async for update in turn]
        assert turn.result.stop_reason is v1.StopReason.END_TURN
        return updates

    def tool_result(self) -> str:
        """What the model received from its last tool."""
        return self.where.model.answers_of_tools()[-1]


def pieces_of(updates: list[v1.Update]) -> list[str]:
    """The pieces of the message; some agents end it with an empty one."""
    chunks = [each.content for each in updates if isinstance(each, v1.AgentMessageChunk)]
    return [block.text for block in chunks if isinstance(block, v1.TextBlock) and block.text]


def calls(updates: list[v1.Update]) -> list[object]:
    return [each.status for each in updates if isinstance(each, v1.ToolCallUpdate)]


async def introduced(play: Play) -> None:
    assert play.agent.info is not None and play.agent.info.version == play.where.agent.version


async def opened(play: Play) -> None:
    play.session = await play.agent.new_session(play.where.folder)
    assert play.session.modes is not None


async def streamed(play: Play) -> None:
    pieces = pieces_of(await play.turn(["say", "Sung by two halves of a choir."]))
    assert len(pieces) > 1 and "".join(pieces) == "Sung by two halves of a choir."


async def file_read(play: Play) -> None:
    updates = await play.turn(play.where.read("notes.txt"), ["say", "done"])
    assert "read" in play.book.calls and "second line" in play.tool_result()
    assert v1.ToolStatus.COMPLETED in calls(updates) and pieces_of(updates) == ["done"]


async def file_outside(play: Play) -> None:
    (play.where.on.home / "diary.txt").write_text("not for singing\n", encoding="utf-8")
    await play.turn(play.where.read("../home/diary.txt"), ["say", "done"])
    assert "read" in play.book.calls and "not for singing" not in play.tool_result()


async def file_written(play: Play) -> None:
    await play.turn(play.where.write("poem.txt", "Sung by one.\n"), ["say", "done"])
    assert {"allow_once", "reject_once"} <= set(play.book.options) and "write" in play.book.calls
    assert (play.where.folder / "poem.txt").read_text(encoding="utf-8") == "Sung by one.\n"


async def file_refused(play: Play) -> None:
    updates = await play.turn(
        play.where.write("other.txt", "Sung by nobody.\n"), ["say", "so be it"], answer="reject_once"
    )
    assert play.book.options and "write" not in play.book.calls
    assert not (play.where.folder / "other.txt").exists()
    assert v1.ToolStatus.FAILED in calls(updates) and "".join(pieces_of(updates)) == "so be it"


async def command_run(play: Play) -> None:
    await play.turn(play.where.run("echo sung aloud && pwd"), ["say", "done"])
    assert {"create", "output", "release"} <= set(play.book.calls)
    assert f"sung aloud\n{play.where.folder}\n" in play.tool_result()
    assert len(play.terminals) == 0


async def command_cancelled(play: Play) -> str | None:
    play.book.forget()
    turn = asyncio.ensure_future(play.session.prompt(script(play.where.run("sleep 600"), ["say", "never said"])))
    await play.book.waiting.wait()
    await play.session.cancel()
    assert (await turn).stop_reason is v1.StopReason.CANCELLED
    return LEFT if len(play.terminals) else None


async def speech_cancelled(play: Play) -> None:
    turn = play.session.prompt(script(["hold", "This goes on and on."]))
    async for update in turn:
        if isinstance(update, v1.AgentMessageChunk):
            break
    assert (await turn.cancel()).stop_reason is v1.StopReason.CANCELLED
    assert await asyncio.to_thread(play.where.model.hung_up.wait, TIMEOUT), "it hangs up on its model"


async def went_on(play: Play) -> None:
    assert pieces_of(await play.turn(["say", "again"])) == ["again"]


async def listed(play: Play) -> None:
    assert play.session.id in [each.session_id async for each in play.agent.list_sessions(play.where.folder)]


async def loaded(play: Play) -> None:
    """By another process of the same agent: with the whole session."""
    play.session = await play.agent.load_session(play.session.id, play.where.folder)
    shown = play.session.transcript.plain()
    assert "\nSung by two halves of a choir." in shown and "\nso be it" in shown


async def resumed(play: Play) -> None:
    play.session = await play.agent.resume_session(play.session.id, play.where.folder)
    await went_on(play)


FIRST: Final[dict[str, Callable[[Play], Awaitable[str | None]]]] = {
    "initialize": introduced,
    "new session": opened,
    "an answer that is streamed": streamed,
    "file read through us": file_read,
    "file outside the session's folders refused, and the turn goes on": file_outside,
    "permission given, file written through us": file_written,
    "permission refused, file untouched, and the turn goes on": file_refused,
    "command run in a terminal of ours": command_run,
    "cancel while a command runs: it is ended": command_cancelled,
    "cancel while it speaks": speech_cancelled,
    "a prompt after that": went_on,
    "list sessions": listed,
}
THEN: Final[dict[str, Callable[[Play], Awaitable[str | None]]]] = {
    "load the session in another process, with replay": loaded,
    "resume it, and go on": resumed,
}


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", ["kimi-code", "fast-agent"])
async def test_our_client_drives_a_real_agent(name: str, tmp_path: Path) -> None:
    with place(name, tmp_path) as where:
        play = Play(where)
        for steps in (FIRST, THEN):
            async with antiphon.connect(
                where.agent.command, cwd=where.folder, env=where.environment, permission=play.book.permission,
                files=OurFiles(play.book), terminals=play.terminals,
            ) as play.agent:  # fmt: skip
                for title, step in steps.items():
                    async with asyncio.timeout(TIMEOUT):
                        table.note(name, title, await step(play) or table.OK)
            assert len(play.terminals) == 0
    table.note(name, table.LAST)
