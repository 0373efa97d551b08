"""What a prompt may hold, and what of it reaches the model."""

import base64

from antiphon import v1
from antiphon.client.files import Files
from antiphon.protocol.v1 import methods as m
from tests.engines.claude.model.steps import Text
from tests.engines.claude.place import Place
from tests.engines.claude.proofs import proves
from tests.engines.claude.versions import BOTH
from tests.engines.driving import Can, connected
from tests.engines.pictures import DOT

LINES = "".join(f"line {number}\n" for number in range(1, 101))


class Editor(Files):
    """The client's files, one of which has been changed in the editor and not been saved."""

    def __init__(self, unsaved: dict[str, str]) -> None:
        super().__init__()
        self.unsaved = unsaved
        self.asked: list[v1.ReadTextFile] = []

    async def read(self, roots: object, request: v1.ReadTextFile) -> v1.ReadTextFileResult:
        self.asked.append(request)
        lines = self.unsaved[request.path].splitlines(keepends=True)
        start = (request.line or 1) - 1
        return v1.ReadTextFileResult("".join(lines[start : None if request.limit is None else start + request.limit]))


@proves("content.image", on=BOTH)
async def test_images_reach_the_model_as_images(at: Place) -> None:
    async with connected(at) as client:
        await client.say(["what is this?", v1.ImageBlock(DOT, "image/png")])
    [source] = at.model.last.images
    assert source == {"type": "base64", "media_type": "image/png", "data": DOT}
    assert at.model.last.prompt == "what is this?"


@proves("content.embedded")
async def test_embedded_text_reaches_the_model_with_where_it_is_from(at: Place) -> None:
    score = v1.TextResource("do re mi fa so", f"file://{at.folder}/score.txt", "text/plain")
    async with connected(at) as client:
        await client.say(["sing this", v1.EmbeddedResource(score)])
    assert "do re mi fa so" in at.model.last.everything and "score.txt" in at.model.last.everything


@proves("content.link", "content.range")
async def test_links_are_read_as_the_clients_editor_has_them_and_only_the_lines_they_name(at: Place) -> None:
    song, long = at.write("song.txt", "saved\n"), at.write("long.txt", "saved too\n")
    editor = Editor({str(song): "not saved yet\n", str(long): LINES})
    links = [
        v1.ResourceLink("song.txt", f"file://{song}"),
        v1.ResourceLink("long.txt", f"file://{long}#L42:50"),
    ]
    async with connected(at, Can(files=editor)) as client:
        await client.say(["look at", *links])
    seen = at.model.last.everything
    assert "not saved yet" in seen and "song.txt" in seen
    assert "line 42" in seen and "line 50" in seen and "line 41" not in seen and "line 51" not in seen
    ranged = next(each for each in editor.asked if each.path == str(long))
    assert (ranged.line, ranged.limit) == (42, 9)


@proves("content.link")
async def test_a_client_that_reads_no_files_has_its_links_named(at: Place) -> None:
    at.write("song.txt", LINES)
    async with connected(at, Can(files=None)) as client:
        await client.say(["look at", v1.ResourceLink("song.txt", f"file://{at.folder}/song.txt#L7-9")])
    assert f"{at.folder}/song.txt" in at.model.last.everything and "7" in at.model.last.everything


@proves("content.refused")
async def test_what_the_program_takes_not_is_told_by_its_name_type_and_size(at: Place) -> None:
    bytes = base64.b64encode(b"x" * 3000).decode()
    svg = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'/>").decode()
    at.model.answers(Text("I see"))
    async with connected(at) as client:
        told = await client.say(
            [
                "look at",
                v1.ImageBlock(svg, "image/svg+xml", uri="file:///drawings/score.svg"),
                v1.EmbeddedResource(v1.BlobResource(bytes, "file:///data/songs.bin", "application/octet-stream")),
            ]
        )
    seen = at.model.last.everything
    assert told.text == "I see" and at.model.last.images == []
    assert "score.svg" in seen and "image/svg+xml" in seen
    assert "songs.bin" in seen and "application/octet-stream" in seen and "2.93 KiB" in seen


@proves("content.refused")
async def test_sound_is_told_by_its_type_and_size(at: Place) -> None:
    sound = v1.AudioBlock(base64.b64encode(b"\0" * 2048).decode(), "audio/wav")
    async with connected(at) as client:
        session = await client.open()
        # Our library would not send it: the agent did not say that it takes sound.
        await client.agent.connection.request(m.PROMPT, v1.Prompt(session.id, [v1.TextBlock("hear"), sound]))
    seen = at.model.last.everything
    assert "audio/wav" in seen and "2 KiB" in seen
