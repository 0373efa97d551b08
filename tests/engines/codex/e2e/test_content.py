"""What a prompt may hold, and what of it reaches the model."""

import base64

from antiphon import v1
from tests.engines.codex.bullets import proves
from tests.engines.codex.client import connected
from tests.engines.codex.place import Place
from tests.engines.codex.versions import BOTH
from tests.engines.pictures import DOT


@proves("content.image-file", on=BOTH)
async def test_images_that_are_files_reach_the_model_as_images(at: Place) -> None:
    dot = at.folder / "dot.png"
    dot.write_bytes(base64.b64decode(DOT))
    async with connected(at) as client:
        await client.say(["what is this?", v1.ResourceLink("dot.png", dot.as_uri(), mime_type="image/png")])
    [picture] = at.model.last.images
    assert picture.startswith("data:image/")
