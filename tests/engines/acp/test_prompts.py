"""Prompts for an agent behind our engine: what it does not take it gets in words."""

import base64
import json
from pathlib import Path

from antiphon.protocol import v1
from tests.engines.acp import stand_in as s
from tests.engines.acp.place import StandIn, through
from tests.engines.pictures import DOT

TUNE = v1.AudioBlock(data=base64.b64encode(b"la la la").decode(), mime_type="audio/wav")
EMBEDDED = v1.EmbeddedResource(v1.TextResource(text="la\nla\n", uri="file:///songs/a.txt"))
PICTURE = v1.ImageBlock(data=DOT, mime_type="image/png")
LINK = v1.ResourceLink(name="b.txt", uri="file:///songs/b.txt")
PROMPT: list[v1.ContentBlock] = [EMBEDDED, v1.TextBlock("/sing it, with"), PICTURE, TUNE, LINK]
"""Text and links every agent takes."""


async def blocks_received(kind: type[s.Plain], folder: Path, workspace: Path) -> list[dict[str, str]]:
    behind = StandIn(kind, folder)
    async with through(behind.engine) as agent:
        await (await agent.new_session(workspace)).prompt(PROMPT)
    blocks: list[dict[str, str]] = json.loads(behind.noted("prompt")[0])
    return blocks


async def test_what_the_agent_does_not_take_is_put_into_words_where_it_stood(tmp_path: Path, workspace: Path) -> None:
    command, mention, text, picture, tune, link = await blocks_received(s.Plain, tmp_path, workspace)
    assert command["text"] == "/sing it, with"  # a command comes first, or it would be none
    assert mention["text"] == "[@a.txt](file:///songs/a.txt)"
    assert text["text"] == "/songs/a.txt:\n```txt\nla\nla\n```"
    assert picture["text"].startswith("[image: image/png, ") and "cannot be shown" in picture["text"]
    assert tune["text"] == "[audio: audio/wav, 8 bytes, which the model cannot be shown]"
    assert link["type"] == "resource_link"


async def test_what_the_agent_takes_is_left_as_it_is(tmp_path: Path, workspace: Path) -> None:
    blocks = await blocks_received(s.TakesPictures, tmp_path, workspace)
    assert [block["type"] for block in blocks] == ["text", "text", "text", "image", "text", "resource_link"]
    assert blocks[3]["data"] == DOT
