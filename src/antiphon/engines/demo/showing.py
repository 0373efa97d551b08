"""Acts that show content other than text: a picture, a sound, a link, a file sent along."""

import base64
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from antiphon.engines.demo.acts import act
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.session import DemoSession

__all__ = ["picture", "tone"]


def picture(size: int = 32) -> str:
    """A PNG, base64: two squares that answer each other."""
    dark, light = b"\x23\x3d\x4d", b"\xfe\x7f\x2d"
    rows = b"".join(
        b"\0" + b"".join(dark if (x < size // 2) == (y < size // 2) else light for x in range(size))
        for y in range(size)
    )

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", size, size, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(png).decode()


def tone(samples: int = 800) -> str:
    """A WAV, base64: a tenth of a second of a square wave."""
    data = bytes(96 if (at // 10) % 2 else 160 for at in range(samples))
    head = struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + samples, b"WAVE", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8, b"data", samples
    )
    return base64.b64encode(head + data).decode()


@act("image", "Show a picture")
async def image(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A picture in the answer."""
    await turn.say("A picture: ")
    await turn.say(v1.ImageBlock(picture(), "image/png", annotations=v1.Annotations(audience=[v1.Role.USER])))
    return None


@act("audio", "Play a sound")
async def audio(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A sound in the answer."""
    await turn.say("A sound: ")
    await turn.say(v1.AudioBlock(tone(), "audio/wav"))
    return None


@act("link", "Link to a file of the workspace", "[PATH]")
async def link(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A link in the answer."""
    path = Path(turn.path(rest.strip() or "README.md"))
    await turn.say("A link: ")
    await turn.say(v1.ResourceLink(path.name, path.as_uri(), title=path.name, mime_type="text/plain"))
    return None


@act("resource", "Send resources along, as text and as bytes")
async def resource(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Two resources in the answer."""
    await turn.say("Two resources: ")
    text = v1.TextResource("Call and response.\n", "antiphon://demo/motto.txt", "text/plain")
    await turn.say(v1.EmbeddedResource(text))
    await turn.say(v1.EmbeddedResource(v1.BlobResource(picture(8), "antiphon://demo/picture.png", "image/png")))
    return None
