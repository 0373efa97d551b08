"""The content of a prompt: what every agent takes, what this one offers to take, and what is unknown."""

from typing import Final

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import Requirement, capability, must, should
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.suites.agent.turns import ended, usable
from antiphon.traffic.entries import JsonObject

__all__: list[str] = []

Block = JsonObject

PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture of one pixel."""

SILENCE: Final = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
"""A sound without any samples."""


async def _taken(run: AgentRun, requirement: str, *blocks: Block, kind: str) -> None:
    """A turn with something beside the text, in a session of its own."""
    session = await run.session()
    pending = await run.prompt(session, run.words("say"), *blocks)
    response = await ended(run, requirement, pending, f"a prompt with {kind} was not answered")
    run.holds(requirement, response.error is None, f"a prompt with {kind} was refused", response)


@SUITE.scenario(
    "content-baseline",
    "a user sends what every agent takes",
    files=True,
    shows=(
        must(
            "content.texts",
            "A prompt may have several pieces of text, with annotations.",
            link="content#text-content",
            fix="Take every block of the prompt, and ignore the hints on it that you do not need.",
        ),
        must(
            "content.link",
            "A prompt may have a link to a resource, whatever the agent offers.",
            link="initialization#prompt-capabilities",
            fix="Take `resource_link` blocks: give the model at least their `uri`.",
        ),
    ),
)
async def baseline(run: AgentRun) -> None:
    noted = {"type": "text", "text": "Please.", "annotations": {"audience": ["assistant"], "priority": 0.5}}
    await _taken(run, "content.texts", noted, kind="two texts")
    file = run.cwd / "linked.txt"
    file.write_text("linked\n", encoding="utf-8")
    link = {"type": "resource_link", "uri": file.as_uri(), "name": "linked.txt", "mimeType": "text/plain", "size": 7}
    await _taken(run, "content.link", link, kind="a link")


def _offered(id: str, what: str, key: str, kind: str) -> Requirement:
    return capability(
        id,
        f"An agent that offers `promptCapabilities.{key}` takes {what}.",
        link=f"content#{kind}",
        fix=f"Take such blocks, or do not offer `{key}`.",
    )


@SUITE.scenario(
    "content-image",
    "a user sends a picture",
    shows=(_offered("content.image", "pictures", "image", "image-content"),),
)
async def image(run: AgentRun) -> None:
    run.need("promptCapabilities", "image")
    await _taken(run, "content.image", {"type": "image", "mimeType": "image/png", "data": PIXEL}, kind="a picture")


@SUITE.scenario(
    "content-audio",
    "a user sends a sound",
    shows=(_offered("content.audio", "sounds", "audio", "audio-content"),),
)
async def audio(run: AgentRun) -> None:
    run.need("promptCapabilities", "audio")
    await _taken(run, "content.audio", {"type": "audio", "mimeType": "audio/wav", "data": SILENCE}, kind="a sound")


@SUITE.scenario(
    "content-embedded",
    "a user sends a file along",
    shows=(
        _offered("content.embedded", "files as text", "embeddedContext", "embedded-resource"),
        _offered("content.embedded-bytes", "files as bytes", "embeddedContext", "embedded-resource"),
    ),
)
async def embedded(run: AgentRun) -> None:
    run.need("promptCapabilities", "embeddedContext")
    uri = (run.cwd / "embedded.txt").as_uri()
    text = {"uri": uri, "mimeType": "text/plain", "text": "embedded\n"}
    await _taken(run, "content.embedded", {"type": "resource", "resource": text}, kind="a file as text")
    blob = {"uri": uri, "mimeType": "application/octet-stream", "blob": "AAEC"}
    await _taken(run, "content.embedded-bytes", {"type": "resource", "resource": blob}, kind="a file as bytes")


@SUITE.scenario(
    "content-unknown",
    "a user sends something of a kind that does not exist",
    provokes=True,
    shows=(
        should(
            "content.unknown",
            "A prompt with content of an unknown kind is answered, and the session takes another.",
            link="content",
            fix="Answer with the error -32602, or leave the block out; but answer.",
        ),
    ),
)
async def unknown(run: AgentRun) -> None:
    session = await run.session()
    pending = await run.prompt(session, run.words("say"), {"type": "antiphon-unknown", "value": 1})
    await ended(run, "content.unknown", pending, "it was not answered")
    await usable(run, "content.unknown", session)
