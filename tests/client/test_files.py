"""Files for the agent: the editor's view first, then the disk, and a clear no for everything else."""

import os
import threading
from pathlib import Path

import pytest

from antiphon.client import files as client_files
from antiphon.client.files import Files
from antiphon.errors import Code, RequestError
from antiphon.local.files import Roots
from antiphon.protocol import v1
from tests.local.places import SECRET, as_unknown_user, trapped


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return trapped(tmp_path)


async def read(files: Files, root: Path, path: Path | str, line: int | None = None, limit: int | None = None) -> str:
    return (await files.read(Roots([root]), v1.ReadTextFile("s", str(path), line, limit))).content


async def write(files: Files, root: Path, path: Path | str, text: str) -> None:
    assert await files.write(Roots([root]), v1.WriteTextFile("s", str(path), text)) == v1.WriteTextFileResult()


async def refused_read(root: Path, path: Path | str) -> RequestError:
    with pytest.raises(RequestError) as caught:
        await read(Files(), root, path)
    return caught.value


async def test_a_file_is_read_whole_or_in_part(root: Path) -> None:
    (root / "f").write_text("1\n2\n3\n", encoding="utf-8")
    assert await read(Files(), root, root / "f") == "1\n2\n3\n"
    assert await read(Files(), root, root / "f", 2, 1) == "2\n"
    assert await read(Files(), root, root / "f", 0, 1) == "1\n"


async def test_roots_may_be_given_as_plain_paths(root: Path) -> None:
    answer = await Files().read((str(root),), v1.ReadTextFile("s", str(root / "a.txt")))
    assert answer.content == "a\n"


async def test_a_missing_file_is_resource_not_found_with_its_name(root: Path) -> None:
    error = await refused_read(root, root / "AGENTS.md")
    assert error.code == Code.RESOURCE_NOT_FOUND and error.hint
    assert error.data == {"uri": str(root / "AGENTS.md"), "hint": error.hint}
    assert error.message.startswith("Resource not found: ") and str(root / "AGENTS.md") in error.message


@pytest.mark.parametrize("path", ["../secret", "out_file", "sideways/secret", "../no_such_thing", "slash/etc/passwd"])
async def test_outside_the_roots_is_refused_alike_whether_there_is_a_file_or_not(root: Path, path: str) -> None:
    error = await refused_read(root, f"{root}/{path}")
    assert error.code == Code.INVALID_PARAMS
    assert "outside the directories" in error.message and f"`{root}`" in error.message and SECRET not in error.message


@pytest.mark.parametrize(
    ("path", "words"), [("sub", "directory"), ("pipe", "pipe"), ("binary", "binary"), ("loop", "loop of links")]
)
async def test_what_is_not_a_text_file_is_refused_with_a_reason(root: Path, path: str, words: str) -> None:
    os.mkfifo(root / "pipe")
    (root / "binary").write_bytes(b"\0\1\2")
    error = await refused_read(root, root / path)
    assert error.code == Code.INVALID_PARAMS and words in error.message


async def test_a_relative_path_is_refused(root: Path) -> None:
    error = await refused_read(root, "a.txt")
    assert error.code == Code.INVALID_PARAMS and "relative" in error.message


async def test_what_the_system_forbids_is_refused() -> None:
    with as_unknown_user() as folder:
        (folder / "f").touch(0)
        error = await refused_read(folder, folder / "f")
    assert error.code == Code.INVALID_PARAMS and "permission denied" in error.message


async def test_a_file_too_large_for_one_answer_is_refused_with_a_hint(root: Path) -> None:
    with (root / "big").open("wb") as file:
        file.truncate(1 << 30)
    error = await refused_read(root, root / "big")
    assert error.code == Code.INVALID_PARAMS and "`limit`" in error.hint


async def test_a_long_file_is_read_in_a_thread_and_a_short_one_is_not_worth_waking_one(root: Path) -> None:
    (root / "long").write_text("x\n" * client_files.SMALL, encoding="utf-8")
    before = threading.active_count()
    assert await read(Files(), root, root / "a.txt") == "a\n"
    assert threading.active_count() == before
    assert await read(Files(), root, root / "long", client_files.SMALL, 1) == "x\n"
    assert threading.active_count() == before + 1


# --- what the editor has not saved yet ---


async def test_an_unsaved_buffer_wins_over_the_disk(root: Path) -> None:
    files = Files(unsaved={root / "a.txt": "1\nedited\n3\n", root / "new": "not on disk"}.get)
    assert await read(files, root, root / "a.txt") == "1\nedited\n3\n"
    assert await read(files, root, root / "a.txt", 2, 1) == "edited\n"
    assert await read(files, root, root / "new") == "not on disk"
    assert await read(files, root, root / "sub" / "b.txt") == "b\n"


async def test_an_empty_buffer_is_a_buffer(root: Path) -> None:
    assert await read(Files(unsaved=lambda _: ""), root, root / "a.txt") == ""


async def test_a_buffer_may_be_asked_for_by_a_coroutine(root: Path) -> None:
    async def unsaved(path: Path) -> str | None:
        return f"buffer of {path.name}"

    assert await read(Files(unsaved=unsaved), root, root / "a.txt") == "buffer of a.txt"


async def test_a_buffer_is_found_by_the_name_the_agent_uses_and_by_the_real_one(root: Path) -> None:
    for name in (root / "in" / "b.txt", root / "sub" / "b.txt"):
        assert await read(Files(unsaved={name: "edited"}.get), root, root / "in" / "b.txt") == "edited"


async def test_the_editor_is_not_asked_about_what_is_outside(root: Path) -> None:
    asked: list[Path] = []
    with pytest.raises(RequestError):
        await read(Files(unsaved=asked.append), root, root / "out_file")
    assert not asked


# --- writing ---


async def test_writing_is_refused_unless_it_was_offered(root: Path) -> None:
    assert not Files().can_write
    with pytest.raises(RequestError) as caught:
        await write(Files(saved=lambda *_: True), root, root / "a.txt", "new")
    assert caught.value.code == Code.METHOD_NOT_FOUND and "did not offer to write" in caught.value.message
    assert (root / "a.txt").read_text(encoding="utf-8") == "a\n"


async def test_a_file_is_written_with_its_folders(root: Path) -> None:
    files = Files(write=True)
    assert files.can_write
    await write(files, root, root / "new" / "deep" / "f", "text\n")
    assert (root / "new" / "deep" / "f").read_text(encoding="utf-8") == "text\n"


async def test_the_editor_may_take_a_write(root: Path) -> None:
    taken: dict[Path, str] = {}

    def saved(path: Path, text: str) -> bool:
        taken[path] = text
        return path.name == "a.txt"

    files = Files(write=True, saved=saved)
    await write(files, root, root / "a.txt", "for the buffer")
    await write(files, root, root / "new", "for the disk")
    assert taken == {root / "a.txt": "for the buffer", root / "new": "for the disk"}
    assert (root / "a.txt").read_text(encoding="utf-8") == "a\n"
    assert (root / "new").read_text(encoding="utf-8") == "for the disk"


async def test_the_editor_may_take_a_write_in_a_coroutine(root: Path) -> None:
    async def saved(path: Path, text: str) -> bool:
        return True

    await write(Files(write=True, saved=saved), root, root / "a.txt", "taken")
    assert (root / "a.txt").read_text(encoding="utf-8") == "a\n"


@pytest.mark.parametrize("path", ["../new", "out/new", "dangling_out", "sideways/secret", "sub"])
async def test_a_write_to_where_it_may_not_go_is_refused(root: Path, path: str) -> None:
    asked: list[Path] = []

    def saved(path: Path, text: str) -> bool:
        asked.append(path)
        return False

    files = Files(write=True, saved=saved)
    with pytest.raises(RequestError) as caught:
        await write(files, root, f"{root}/{path}", "x")
    assert caught.value.code == Code.INVALID_PARAMS
    assert (root.parent / "root2" / "secret").read_text(encoding="utf-8") == SECRET
    assert path == "sub" or not asked


async def test_a_refusal_of_the_hook_reaches_the_agent_as_it_is(root: Path) -> None:
    def saved(path: Path, text: str) -> bool:
        raise RequestError(Code.INVALID_PARAMS, "the buffer is locked")

    with pytest.raises(RequestError, match="the buffer is locked"):
        await write(Files(write=True, saved=saved), root, root / "a.txt", "x")
