"""Files of a turn: through the client where it can, else from this machine's disk, with the same errors."""

from pathlib import Path
from typing import Any

import pytest

from antiphon.agent.turn import AgentTurn
from antiphon.connection.router import Router
from antiphon.errors import Code, RequestError, RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, only_prompt, playing


class Buffers:
    """An editor's files, not saved yet."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.asked: list[Any] = []
        self.router = Router()
        self.router.on_request(m.READ_TEXT_FILE, self._read)
        self.router.on_request(m.WRITE_TEXT_FILE, self._write)

    def _read(self, asked: v1.ReadTextFile) -> v1.ReadTextFileResult:
        self.asked.append(asked)
        if asked.path not in self.files:
            raise RequestError(Code.RESOURCE_NOT_FOUND, "Resource not found", asked.path)
        return v1.ReadTextFileResult(self.files[asked.path])

    def _write(self, asked: v1.WriteTextFile) -> v1.WriteTextFileResult:
        self.asked.append(asked)
        self.files[asked.path] = asked.content
        return v1.WriteTextFileResult()


async def test_files_go_through_a_client_that_has_them() -> None:
    buffers = Buffers()

    async def prompt(turn: AgentTurn) -> None:
        await turn.write("a.txt", "new")
        assert await turn.read("a.txt", line=2, limit=3) == "new"
        await turn.write(Path("/abs/b.txt"), "")
        with pytest.raises(RequestRefused) as refusal:
            await turn.read("none")
        assert refusal.value.code == Code.RESOURCE_NOT_FOUND

    async with playing(only_prompt(prompt), FULL, buffers.router) as editor:
        session = await editor.open("/w/dir")
        await editor.prompt(session)
    assert buffers.files == {"/w/dir/a.txt": "new", "/abs/b.txt": ""}
    assert buffers.asked[1] == v1.ReadTextFile(session, "/w/dir/a.txt", 2, 3)


async def test_files_come_from_disk_for_a_client_that_has_none(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")

    async def prompt(turn: AgentTurn) -> None:
        assert await turn.read("a.txt", line=2, limit=1) == "two\r\n"
        await turn.write("a.txt", "four\n")
        await turn.write(tmp_path / "new" / "b.txt", "x")
        assert await turn.read("new/b.txt") == "x"

    async with playing(only_prompt(prompt)) as editor:
        await editor.turn(str(tmp_path))
        assert not [word for word in editor.order if word.startswith("ask:")]
    assert (tmp_path / "a.txt").read_bytes() == b"four\r\n"


async def test_a_client_may_have_only_one_of_the_two(tmp_path: Path) -> None:
    buffers = Buffers()
    buffers.files[str(tmp_path / "a")] = "unsaved"

    async def prompt(turn: AgentTurn) -> None:
        assert await turn.read("a") == "unsaved"
        await turn.write("a", "saved")

    reads = v1.ClientCapabilities(fs=v1.FileCapabilities(read_text_file=True))
    async with playing(only_prompt(prompt), reads, buffers.router) as editor:
        await editor.turn(str(tmp_path))
    assert (tmp_path / "a").read_text(encoding="utf-8") == "saved"
    assert buffers.files[str(tmp_path / "a")] == "unsaved"


async def test_what_the_disk_refuses_is_the_same_error_that_a_client_gives(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\0\1")
    (tmp_path.parent / "outside").write_text("not ours", encoding="utf-8")
    seen: list[tuple[int, object]] = []

    async def prompt(turn: AgentTurn) -> None:
        for path in ("none", "binary", ".", "nul\0"):
            with pytest.raises(RequestRefused) as refusal:
                await turn.read(path)
            seen.append((refusal.value.code, refusal.value.message))
        for path, text in ((".", "x"), ("surrogate", "\ud800")):
            with pytest.raises(RequestRefused) as refusal:
                await turn.write(path, text)
            seen.append((refusal.value.code, refusal.value.message))
        with pytest.raises(RequestRefused, match="outside the directories"):
            await turn.read("../outside")
        with pytest.raises(RequestRefused, match="outside the directories"):
            await turn.write("../outside", "x")

    async with playing(only_prompt(prompt)) as editor:
        await editor.turn(str(tmp_path))
    assert [code for code, _ in seen] == [Code.RESOURCE_NOT_FOUND, *[Code.INVALID_PARAMS] * 5]
    assert all("cannot" in str(why) or "not a path" in str(why) for _, why in seen)


async def test_a_refusal_that_the_agent_does_not_catch_is_sent_as_our_failure() -> None:
    async def prompt(turn: AgentTurn) -> None:
        await turn.read("none")

    async with playing(only_prompt(prompt), FULL, Buffers().router) as editor:
        with pytest.raises(RequestRefused, match="what it needed was refused") as refusal:
            await editor.turn()
        assert refusal.value.code == Code.INTERNAL_ERROR
