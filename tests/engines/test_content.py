"""Prompts as engines take them: words in order, links read through a real client, and everything else at least named."""

import asyncio
import base64
from collections.abc import Sequence
from pathlib import Path

import pytest

from antiphon.agent.session import AgentSession
from antiphon.agent.turn import AgentTurn
from antiphon.client.files import Files
from antiphon.connection.router import Router
from antiphon.engines import content
from antiphon.engines.base import Engine, EngineSession, Host
from antiphon.engines.content import (
    ContextPiece,
    DocumentPiece,
    PicturePiece,
    Piece,
    TextPiece,
    begins_with_command,
    pieces_of,
    reader_of,
)
from antiphon.errors import RequestRefused
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, only_prompt, playing
from tests.rows import each_row

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n and more").decode()
PDF = base64.b64encode(b"%PDF-1.7 and more").decode()
PICTURES = ("image/png", "image/jpeg")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def link(uri: str, name: str = "a.py", mime: str | None = None, size: int | None = None) -> v1.ResourceLink:
    return v1.ResourceLink(name, uri, mime_type=mime, size=size)


async def read_without_files(*blocks: v1.ContentBlock) -> list[Piece]:
    """The pieces for a client that reads no files."""
    return await pieces_of(blocks, read=None, cwd="/w", pictures=PICTURES, documents=("application/pdf",))


async def read_by_client(
    workspace: Path, blocks: Sequence[v1.ContentBlock], unsaved: dict[str, str] | None = None
) -> tuple[list[Piece], list[v1.ReadTextFile]]:
    """The pieces for a client with files, some of them not saved, and what it was asked for."""
    pieces, asked = list[Piece](), list[v1.ReadTextFile]()
    files = Files(unsaved=lambda path: (unsaved or {}).get(path.name))

    async def prompt(turn: AgentTurn) -> None:
        pieces.extend(await pieces_of(blocks, read=reader_of(turn), cwd=turn.session.cwd, pictures=PICTURES))

    async def read(request: v1.ReadTextFile) -> v1.ReadTextFileResult:
        asked.append(request)
        return await files.read([str(workspace)], request)

    router = Router()
    router.on_request(m.READ_TEXT_FILE, read)
    async with playing(only_prompt(prompt), FULL, router) as editor:
        await editor.turn(str(workspace))
    return pieces, asked


# Words.


async def test_text_alone_is_text() -> None:
    assert await read_without_files(v1.TextBlock("hello")) == [TextPiece("hello")]


async def test_texts_stay_apart() -> None:
    assert await read_without_files(v1.TextBlock("one"), v1.TextBlock("two")) == [TextPiece("one\n\ntwo")]
    assert await read_without_files(v1.TextBlock("one\n"), v1.TextBlock("two")) == [TextPiece("one\ntwo")]


async def test_a_link_in_a_sentence_leaves_it_a_sentence() -> None:
    blocks = (v1.TextBlock("look at "), link("file:///w/a.py"), v1.TextBlock(", please"))
    assert await read_without_files(*blocks) == [TextPiece("look at [@a.py](file:///w/a.py), please")]


async def test_links_without_spaces_around_them_get_some() -> None:
    blocks = (v1.TextBlock("see"), link("file:///w/a.py"), link("file:///w/b.py"), v1.TextBlock("and"))
    assert await read_without_files(*blocks) == [TextPiece("see [@a.py](file:///w/a.py) [@b.py](file:///w/b.py) and")]


async def test_pictures_keep_their_place() -> None:
    blocks = (v1.TextBlock("this"), v1.ImageBlock(PNG, "image/png"), v1.TextBlock("or that"), v1.TextBlock("?"))
    assert await read_without_files(*blocks) == [
        TextPiece("this"),
        PicturePiece("image/png", PNG),
        TextPiece("or that\n\n?"),
    ]


async def test_blank_text_beside_a_picture_is_left_out() -> None:
    assert await read_without_files(v1.ImageBlock(PNG, "image/png"), v1.TextBlock(" \n")) == [
        PicturePiece("image/png", PNG)
    ]


async def test_a_command_comes_first_whatever_stood_before_it() -> None:
    blocks = (link("file:///w/a.py"), v1.ImageBlock(PNG, "image/png"), v1.TextBlock(" /review now"))
    assert await read_without_files(*blocks) == [
        TextPiece("/review now [@a.py](file:///w/a.py)"),
        PicturePiece("image/png", PNG),
    ]


@each_row(
    ("text", "is_one"),
    [("/review", True), (" /review a", True), ("/mcp__a__b c", True), ("/a:b (MCP)", True), ("/etc/hosts is", False), ("/ x", False), ("a /b", False), ("", False)],
)  # fmt: skip
def test_a_command_is_distinguished_from_a_path(text: str, is_one: bool) -> None:
    assert begins_with_command([v1.TextBlock(text)]) is is_one


# Links to files.


async def test_lines_of_a_link_are_read_through_the_client(workspace: Path) -> None:
    (workspace / "a.py").write_text("".join(f"line {n}\n" for n in range(1, 100)), encoding="utf-8")
    uri = f"file://{workspace}/a.py#L42:43"
    pieces, asked = await read_by_client(workspace, [v1.TextBlock("why"), link(uri)])
    assert pieces == [
        ContextPiece(f"{workspace}/a.py, lines 42-43:\n```py\nline 42\nline 43\n```"),
        TextPiece(f"why [@a.py lines 42-43]({uri})"),
    ]
    assert [(each.path, each.line, each.limit) for each in asked] == [(f"{workspace}/a.py", 42, 2)]


async def test_what_is_not_saved_yet_is_read(workspace: Path) -> None:
    (workspace / "a.md").write_text("old", encoding="utf-8")
    pieces, _ = await read_by_client(workspace, [link("a.md")], {"a.md": "new"})
    assert pieces[0] == ContextPiece(f"{workspace}/a.md:\n```md\nnew\n```")


async def test_a_long_file_is_cut_with_a_note(workspace: Path) -> None:
    (workspace / "a.txt").write_text("x\n" * 5000, encoding="utf-8")
    pieces, asked = await read_by_client(workspace, [link("a.txt")])
    assert isinstance(pieces[0], ContextPiece)
    assert "only up to line 2000" in pieces[0].text
    assert pieces[0].text.count("x\n") == 2000
    assert asked[0].limit == content.LINK_LINES + 1


async def test_a_file_that_is_just_short_enough_is_whole(workspace: Path) -> None:
    (workspace / "a.txt").write_text("x\n" * 2000, encoding="utf-8")
    pieces, _ = await read_by_client(workspace, [link("a.txt")])
    assert isinstance(pieces[0], ContextPiece)
    assert "only up to" not in pieces[0].text


async def test_long_lines_are_cut_at_a_lines_end(workspace: Path) -> None:
    (workspace / "a.txt").write_text(("x" * 60_000 + "\n") * 3, encoding="utf-8")
    pieces, _ = await read_by_client(workspace, [link("a.txt#L1-3")])
    assert isinstance(pieces[0], ContextPiece)
    assert "only up to line 1;" in pieces[0].text
    assert len(pieces[0].text) < content.LINK_CHARS


async def test_lines_after_the_end_are_mentioned(workspace: Path) -> None:
    (workspace / "a.txt").write_text("x\n", encoding="utf-8")
    pieces, _ = await read_by_client(workspace, [link("a.txt#L90")])
    assert pieces[0] == ContextPiece(f"{workspace}/a.txt, line 90: there is no text.")


async def test_what_cannot_be_read_stays_a_link(workspace: Path) -> None:
    (workspace / "binary").write_bytes(b"\x00\x01")
    for uri in ("none.txt#L3", "/etc/hosts", "binary"):
        pieces, asked = await read_by_client(workspace, [v1.TextBlock("see"), link(uri)])
        assert len(asked) == 1
        assert [type(piece) for piece in pieces] == [TextPiece]
        assert uri in str(pieces[0])


async def test_folders_pictures_and_large_files_are_not_even_asked_for(workspace: Path) -> None:
    blocks = [
        link("file:///w/src/", "src"),
        link("file:///w/src", "src", "inode/directory"),
        link("file:///w/a.png", "a.png", "image/png", 2048),
        link("file:///w/big.log", "big.log", "text/plain", content.LINK_BYTES + 1),
    ]
    pieces, asked = await read_by_client(workspace, blocks)
    assert not asked
    assert pieces == [
        TextPiece(
            "[@src/](file:///w/src/) [@src](file:///w/src) (inode/directory) [@a.png](file:///w/a.png) (image/png, 2 KiB) "
            "[@big.log](file:///w/big.log) (text/plain, 1 MiB)"
        )
    ]


async def test_a_client_that_never_answers_is_not_waited_for(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "READ_WAIT", 0.01)

    async def read(path: str, line: int | None, limit: int | None) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    pieces = await pieces_of([link("a.py"), link("b.py")], read=read, cwd="/w", pictures=())
    assert pieces == [TextPiece("[@a.py](a.py) [@b.py](b.py)")]


async def test_a_client_that_gives_the_whole_file_is_cut_to_the_lines() -> None:
    async def read(path: str, line: int | None, limit: int | None) -> str:
        return "".join(f"{n}\n" for n in range(1, 50))

    pieces = await pieces_of([link("a#L10:11")], read=read, cwd="/w", pictures=())
    assert pieces[0] == ContextPiece("/w/a, lines 10-11:\n```\n10\n11\n```")


async def test_context_has_an_end() -> None:
    async def read(path: str, line: int | None, limit: int | None) -> str:
        return "x" * 90_000

    pieces = await pieces_of([link(f"{n}.txt") for n in range(10)], read=read, cwd="/w", pictures=())
    assert len(pieces) == 5
    assert isinstance(pieces[-1], TextPiece)
    assert pieces[-1].text.count("[@") == 10


async def test_pages_elsewhere_are_named_by_their_titles() -> None:
    page = v1.ResourceLink("page", "https://example.com/a", title="A [good] page", description="how to sing")
    assert await read_without_files(page) == [TextPiece("[A \\[good\\] page](https://example.com/a) (how to sing)")]


async def test_addresses_with_spaces_stay_links() -> None:
    assert await read_without_files(link("/w/a (1).py")) == [TextPiece("[@a (1).py](</w/a (1).py>)")]


# What is sent along.


async def test_embedded_text_is_context_and_mentioned() -> None:
    resource = v1.EmbeddedResource(v1.TextResource("a = 1\n", "file:///w/a.py#L3:4", "text/x-python"))
    assert await read_without_files(v1.TextBlock("fix "), resource) == [
        ContextPiece("/w/a.py, lines 3-4:\n```py\na = 1\n```"),
        TextPiece("fix [@a.py lines 3-4](file:///w/a.py#L3:4)"),
    ]


async def test_fences_are_longer_than_those_in_the_text() -> None:
    resource = v1.EmbeddedResource(v1.TextResource("````\ncode\n````", "zed:///agent/rule/1"))
    pieces = await read_without_files(resource)
    assert pieces[0] == ContextPiece("zed:///agent/rule/1:\n`````\n````\ncode\n````\n`````")


async def test_embedded_text_that_is_too_long_is_named() -> None:
    resource = v1.EmbeddedResource(v1.TextResource("x" * (content.TOTAL_CHARS + 1), "file:///w/a.txt"))
    assert await read_without_files(resource) == [
        TextPiece("[@a.txt](file:///w/a.txt) (391 KiB of text: too long to be put here)")
    ]


async def test_an_embedded_picture_is_a_picture() -> None:
    resource = v1.EmbeddedResource(v1.BlobResource(PNG, "file:///w/a.png", "image/png"))
    assert await read_without_files(resource) == [
        TextPiece("[@a.png](file:///w/a.png)"),
        PicturePiece("image/png", PNG),
    ]


async def test_an_embedded_document_is_one() -> None:
    resource = v1.EmbeddedResource(v1.BlobResource(PDF, "file:///w/a.pdf", "application/pdf"))
    assert (await read_without_files(resource))[1] == DocumentPiece("application/pdf", PDF)


async def test_an_embedded_blob_that_is_text_is_read_as_text() -> None:
    data = base64.b64encode("é".encode("latin-1")).decode()
    resource = v1.EmbeddedResource(v1.BlobResource(data, "file:///w/a.csv", "text/csv; charset=iso-8859-1"))
    assert (await read_without_files(resource))[0] == ContextPiece("/w/a.csv:\n```csv\né\n```")


async def test_what_the_engine_does_not_take_is_named_with_type_and_size() -> None:
    blocks = (
        v1.AudioBlock(encoded("x" * 3000), "audio/wav"),
        v1.ImageBlock(encoded("BM" + "x" * 98), "image/bmp"),
        v1.EmbeddedResource(v1.BlobResource(encoded("PK"), "file:///w/a.zip", "application/zip")),
        v1.EmbeddedResource(v1.BlobResource(encoded("?"), "file:///w/b")),
    )
    assert await read_without_files(*blocks) == [
        TextPiece(
            "[audio: audio/wav, 2.93 KiB, which the model cannot be shown] "
            "[image: image/bmp, 100 bytes, which the model cannot be shown] "
            "[@a.zip](file:///w/a.zip) (application/zip, 2 bytes, which the model cannot be shown) "
            "[@b](file:///w/b) (unknown type, 1 byte, which the model cannot be shown)"
        )
    ]


async def test_a_drawing_in_svg_is_given_as_its_text() -> None:
    pieces = await read_without_files(v1.ImageBlock(encoded("<svg/>"), "image/svg+xml", uri="file:///w/a.svg"))
    assert pieces == [
        ContextPiece("/w/a.svg:\n```svg\n<svg/>\n```"),
        TextPiece("[@a.svg](file:///w/a.svg) (image/svg+xml, 6 bytes)"),
    ]
    nameless = await read_without_files(v1.ImageBlock(encoded("<svg/>"), "image/svg+xml"))
    assert nameless == [ContextPiece("The image:\n```\n<svg/>\n```"), TextPiece("[image: image/svg+xml, 6 bytes]")]


async def test_broken_base64_is_mentioned_and_not_sent() -> None:
    assert await read_without_files(v1.ImageBlock("@@@", "image/png")) == [
        TextPiece("[image: image/png, its base64 is broken, so it was left out]")
    ]
    assert await read_without_files(v1.ImageBlock("", "image/png")) == [
        TextPiece("[image: image/png, its base64 is broken, so it was left out]")
    ]


async def test_a_picture_has_the_type_of_its_bytes() -> None:
    assert await read_without_files(v1.ImageBlock(PNG, "image/jpeg")) == [PicturePiece("image/png", PNG)]
    assert await read_without_files(v1.ImageBlock(f"data:image/png;base64,{PNG}", "IMAGE/PNG")) == [
        PicturePiece("image/png", PNG)
    ]
    pretending = await read_without_files(v1.ImageBlock(encoded("no picture"), "image/png"))
    assert pretending == [TextPiece("[image: application/octet-stream, 10 bytes, which the model cannot be shown]")]


async def test_a_picture_that_is_too_large_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "MEDIA_LIMIT", 4)
    assert await read_without_files(v1.ImageBlock(PNG, "image/png")) == [
        TextPiece("[image: image/png, 17 bytes, too large to be shown to the model]")
    ]


async def test_a_picture_without_data_is_its_address() -> None:
    assert await read_without_files(v1.ImageBlock("", "image/png", uri="https://example.com/a.png")) == [
        TextPiece("https://example.com/a.png")
    ]


async def test_content_of_an_unknown_kind_is_named() -> None:
    assert await read_without_files(v1.Unknown("video", b"{}")) == [
        TextPiece("[video: content of a kind that cannot be shown to the model]")
    ]


async def test_an_engine_may_take_what_it_does_not_announce() -> None:
    class Polite(Engine):
        name = "polite"
        takes = ("image",)
        also_takes = ("audio",)

        def new(self, session: AgentSession) -> EngineSession:
            return Listening()

    class Listening(EngineSession):
        async def prompt(self, turn: AgentTurn) -> None:
            await turn.say(str(len(turn.prompt)))

    async with playing(Host(Polite()), introduced=False) as editor:
        capabilities = (await editor.introduce()).agent_capabilities.prompt_capabilities
        assert (capabilities.image, capabilities.audio, capabilities.embedded_context) == (True, False, False)
        session = await editor.open()
        await editor.prompt(session, v1.AudioBlock(encoded("x"), "audio/wav"))
        assert "1" in editor.order
        with pytest.raises(RequestRefused):
            await editor.prompt(session, v1.EmbeddedResource(v1.TextResource("x", "file:///w/a")))
