"""What a prompt may hold, and what of it reaches the model."""

import base64

from antiphon import v1
from antiphon.client.files import Files
from antiphon.protocol.v1 import methods as m
from tests.engines.client import Can, connected
from tests.engines.pictures import DOT
from tests.engines.places import Place
from tests.engines.subjects import proves

LINES = "".join(f"line {number}\n" for number in range(1, 101))


class Editor(Files):
    """The client's files, as its editor has them and has not saved them yet."""

    def __init__(self, unsaved: dict[str, str]) -> None:
        super().__init__()
        self.unsaved = unsaved
        self.asked: list[v1.ReadTextFile] = []

    async def read(self, roots: object, request: v1.ReadTextFile) -> v1.ReadTextFileResult:
        self.asked.append(request)
        lines = self.unsaved[request.path].splitlines(keepends=True)
        start = (request.line or 1) - 1
        return v1.ReadTextFileResult("".join(lines[start : None if request.limit is None else start + request.limit]))


@proves("content.image", "content.embedded", "content.link", "content.range", "content.refused")
async def test_pictures_texts_and_links_reach_the_model_and_what_it_does_not_take_is_named(at: Place) -> None:
    song, long = at.write("song.txt", "saved\n"), at.write("long.txt", "saved too\n")
    editor = Editor({str(song): "not saved yet\n", str(long): LINES})
    links = [v1.ResourceLink("song.txt", f"file://{song}"), v1.ResourceLink("long.txt", f"file://{long}#L42:50")]
    score = v1.TextResource("do re mi fa so", f"file://{at.folder}/score.txt", "text/plain")
    svg = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'/>").decode()
    blob = v1.BlobResource(base64.b64encode(b"x" * 3000).decode(), "file:///data/songs.bin", "application/octet-stream")
    refused: list[v1.ContentBlock] = [
        v1.TextBlock("look at"),
        v1.ImageBlock(svg, "image/svg+xml", uri="file:///drawings/score.svg"),
        v1.EmbeddedResource(blob),
        v1.AudioBlock(base64.b64encode(b"\0" * 2048).decode(), "audio/wav"),
    ]
    async with connected(at, Can(files=editor)) as client:
        await client.open()
        # Our library would not send it: the agent did not say that it takes sound.
        await client.agent.connection.request(m.PROMPT, v1.Prompt(client.session.id, refused))
        seen = at.model.last.everything
        assert at.model.last.images == [] and "score.svg" in seen and "image/svg+xml" in seen
        assert "songs.bin" in seen and "application/octet-stream" in seen and "2.93 KiB" in seen
        assert "audio/wav" in seen and "2 KiB" in seen

        await client.say(["sing this", v1.EmbeddedResource(score)])
        assert "do re mi fa so" in at.model.last.everything and "score.txt" in at.model.last.everything

        await client.say(["look at", *links])
        seen = at.model.last.everything
        assert "not saved yet" in seen and "song.txt" in seen
        assert "line 42" in seen and "line 50" in seen and "line 41" not in seen and "line 51" not in seen
        ranged = next(each for each in editor.asked if each.path == str(long))
        assert (ranged.line, ranged.limit) == (42, 9)

        await client.say(["what is this?", v1.ImageBlock(DOT, "image/png")])
        [picture] = at.model.last.images
        assert DOT in str(picture) and "image/png" in str(picture) and at.model.last.prompt == "what is this?"
