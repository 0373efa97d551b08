"""Prompts as the CLI takes them. It reads commands and `@path` in the last block alone, so what stands there is what matters."""

import base64
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent.turn import AgentTurn
from antiphon.client.files import Files
from antiphon.connection.router import Router
from antiphon.engines.claude.driver import message_of
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m
from tests.agent.editor import FULL, only_prompt, playing

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
PDF = base64.b64encode(b"%PDF-1.7").decode()
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
PICTURE = v1.ImageBlock(PNG, "image/png")
NOTES = v1.EmbeddedResource(v1.TextResource("@other.py", "file:///w/notes.txt"))
NOTES_CONTEXT = {"type": "text", "text": "/w/notes.txt:\n```txt\n@other.py\n```"}
NOTES_MENTION = "[@notes.txt](file:///w/notes.txt)"


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def message(*blocks: "str | v1.ContentBlock", cwd: str = "/w") -> "str | list[dict[str, Any]]":
    """What a prompt becomes, with a client that has files."""
    texts = list[Any]()
    agent = only_prompt(lambda turn: _keep(turn, texts))
    agent.takes = ("image", "resource")
    agent.also_takes = ("audio",)
    files, router = Files(), Router()
    router.on_request(m.READ_TEXT_FILE, lambda asked: files.read([cwd], asked))
    async with playing(agent, FULL, router) as editor:
        await editor.prompt(await editor.open(cwd), *blocks)
    [found] = texts
    return found  # type: ignore[no-any-return]


async def _keep(turn: AgentTurn, texts: list[Any]) -> None:
    texts.append(await message_of(turn))


async def test_words_alone_are_a_string() -> None:
    assert await message("hello", "again") == "hello\n\nagain"
    assert await message("/review a.py") == "/review a.py"


async def test_context_stands_before_the_words() -> None:
    assert await message("fix", NOTES) == [NOTES_CONTEXT, text(f"fix {NOTES_MENTION}")]


async def test_links_are_read_through_the_client(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1\n2\n3\n4\n", encoding="utf-8")
    uri = f"file://{tmp_path}/a.py#L2:3"
    printed = await message("why ", v1.ResourceLink("a.py", uri), "?", cwd=str(tmp_path))
    assert printed == [
        text(f"{tmp_path}/a.py, lines 2-3:\n```py\n2\n3\n```"),
        text(f"why [@a.py lines 2-3]({uri})?"),
    ]


async def test_pictures_are_pictures_in_their_place() -> None:
    assert await message("this", PICTURE, "and?") == [text("this"), IMAGE, text("and?")]


async def test_a_document_is_one() -> None:
    resource = v1.EmbeddedResource(v1.BlobResource(PDF, "file:///w/a.pdf", "application/pdf"))
    document = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}
    assert await message(resource, "what is it?") == [text("[@a.pdf](file:///w/a.pdf)"), document, text("what is it?")]


async def test_a_command_is_the_last_block_and_begins_it() -> None:
    for blocks in ((NOTES, PICTURE, " /review now"), ("/review now", PICTURE, NOTES), ("/review now", NOTES, PICTURE)):
        text = await message(*blocks)
        assert isinstance(text, list)
        assert text[-1]["text"].startswith("/review now")
        assert NOTES_CONTEXT in text[:-1]
        assert IMAGE in text[:-1]


async def test_an_ending_that_looks_like_a_command_is_none() -> None:
    assert await message("see", PICTURE, "/compact") == [text("see"), IMAGE, text("\n/compact")]


async def test_a_path_at_the_beginning_stays_as_it_is() -> None:
    assert await message("/etc/hosts is wrong") == "/etc/hosts is wrong"


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (v1.AudioBlock(base64.b64encode(b"RIFF").decode(), "audio/wav"), "[audio: audio/wav, 4 bytes"),
        (v1.ImageBlock(base64.b64encode(b"II*").decode(), "image/tiff"), "[image: image/tiff, 3 bytes"),
    ],
)
async def test_what_claude_does_not_take_is_described_in_words(block: v1.ContentBlock, words: str) -> None:
    text = await message("look", block)
    assert isinstance(text, str)
    assert text.startswith(f"look {words}")
