"""Commands for parts of the protocol beside text: content, questions to the user, settings and drafts."""

import base64
import struct
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from antiphon.engines.demo.commands import COMMANDS, command
from antiphon.errors import Code, RequestError, ResponseError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.agent import Outcome
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.session import DemoSession

__all__ = ["ALL_STEPS", "FORM", "picture", "tone"]


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


@command("image", "Show a picture")
async def image(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A picture in the answer."""
    await turn.say("A picture: ")
    await turn.say(v1.ImageBlock(picture(), "image/png", annotations=v1.Annotations(audience=[v1.Role.USER])))
    return None


@command("audio", "Play a sound")
async def audio(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A sound in the answer."""
    await turn.say("A sound: ")
    await turn.say(v1.AudioBlock(tone(), "audio/wav"))
    return None


@command("link", "Link to a file of the workspace", "[PATH]")
async def link(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A link in the answer."""
    path = Path(turn.path(rest.strip() or "README.md"))
    await turn.say("A link: ")
    await turn.say(v1.ResourceLink(path.name, path.as_uri(), title=path.name, mime_type="text/plain"))
    return None


@command("resource", "Send resources along, as text and as bytes")
async def resource(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Two resources in the answer."""
    await turn.say("Two resources: ")
    text = v1.TextResource("Call and response.\n", "antiphon://demo/motto.txt", "text/plain")
    await turn.say(v1.EmbeddedResource(text))
    await turn.say(v1.EmbeddedResource(v1.BlobResource(picture(8), "antiphon://demo/picture.png", "image/png")))
    return None


# Commands that ask the user: a form, a choice, a page, permission.

FORM = v1.Form(
    title="About your part",
    properties={
        "name": v1.StringProperty(title="Your name", min_length=1, max_length=40, default="Ada"),
        "voice": v1.StringProperty(
            title="Your voice",
            one_of=[v1.EnumOption("high", "High"), v1.EnumOption("low", "Low", "the deep one")],
            default="high",
        ),
        "bars": v1.IntegerProperty(title="How many bars", minimum=1, maximum=64, default=8),
        "tempo": v1.NumberProperty(title="How fast", minimum=0.5, maximum=2.0, default=1.0),
        "repeat": v1.BooleanProperty(title="Again?", default=False),
        "parts": v1.MultiSelectProperty(v1.StringItems(["call", "response"]), title="Which parts", default=["call"]),
    },
    required=["name"],
)
"""A form with a field of every kind."""


@command("ask", "Ask you to fill in a form")
async def ask(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A form; for clients that show none, a question with two answers."""
    if not turn.session.client.shows_forms:
        picked = await turn.choose("Which part do you sing?", {"call": "The call", "response": "The response"})
        await turn.say(f"You sing the {picked}." if picked else "You would rather not say.")
        return None
    answers = await turn.ask("Which part do you sing?", FORM)
    if answers is None:
        await turn.say("You would rather not say.")
    else:
        await turn.say("You said:\n\n" + "\n".join(f"- {name}: {value}" for name, value in sorted(answers.items())))
    return None


@command("visit", "Ask you to open a page", "[URL]")
async def visit(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A page to open, and the notification that the user is done there."""
    url = rest.strip() or "https://agentclientprotocol.com"
    if not turn.session.client.opens_pages:
        await turn.say(f"Your client opens no pages; this is the address: {url}")
        return None
    page = await turn.visit("Please have a look at this page", url)
    await turn.say("You went there." if page else "You stayed here.")
    if page:
        await page.complete()
    return None


@command("permission", "Ask for permission, to do nothing")
async def permission(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A question with all four kinds of answer."""
    async with turn.tool("Do nothing", v1.ToolKind.OTHER, name="Nothing", input={}) as call:
        answer = await call.permitted()
    chosen = answer.option.kind if answer.option else "nothing"
    await turn.say(f"You chose: {chosen}.")
    return None


# Commands on the session itself: its mode, its settings, its MCP servers.


@command("mode", "Switch the mode, as an agent does by itself", "default|plan")
async def mode(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A tool call of the kind that switches modes, and the update for it."""
    text = rest.strip() or "plan"
    modes = turn.session.modes.available_modes if turn.session.modes else []
    name = next((each.name for each in modes if each.id == text), text)
    async with turn.tool(f"Switch to {name}", v1.ToolKind.SWITCH_MODE, input={"mode": text}):
        await turn.session.switch_mode(text)
        await demo.remember()
    await turn.say(f"The mode is “{name}” now.")
    return None


@command("set", "Change a setting, as an agent does by itself", "KEY VALUE")
async def set_option(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """The settings as they stand afterwards."""
    arguments = rest.split()
    if len(arguments) != 2:
        raise RequestError(Code.INVALID_PARAMS, "Invalid params", "use `/set KEY VALUE`, such as `/set thinking on`")
    key, value = arguments
    switches = [option.id for option in turn.session.config_options if isinstance(option, v1.BooleanConfig)]
    await turn.session.change_option(key, value in ("on", "true", "yes") if key in switches else value)
    await demo.remember()
    await turn.say(f"`{key}` is `{value}` now.")
    return None


@command("mcp", "List the MCP servers of this session")
async def mcp(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """The servers of the client; the demo starts none of them."""
    servers = turn.session.mcp_servers
    if not servers:
        await turn.say("This session has no MCP servers.")
    for server in servers:
        where = getattr(server, "command", None) or getattr(server, "url", "")
        await turn.say(f"- `{getattr(server, 'name', '?')}`: {where}\n")
    return None


# Commands for drafts of the protocol, for clients that have the capability.


@command("plans", "Show several plans, of every form (draft)")
async def plans(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Send plans as a list, as a file and as Markdown; then remove one."""
    if turn.session.client.capabilities.plan is None:
        await turn.say("Your client does not show several plans; `/plan` shows one.")
        return None
    entry = v1.PlanEntry("Sing", v1.PlanPriority.HIGH, v1.PlanStatus.PENDING)
    readme = f"file://{turn.path('README.md')}"
    for plan in (v1.PlanItems("list", [entry]), v1.PlanFile("file", readme), v1.PlanMarkdown("text", "- [ ] Sing")):
        await turn.update(v1.PlanUpdate(plan))
    await turn.update(v1.PlanRemoved("file"))
    await turn.say("Two plans are left.")
    return None


@command("child", "Show a child session at work (draft)")
async def child(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """A child session that goes through its states, and a message to it."""
    if turn.session.client.capabilities.subagents is None:
        await turn.say("Your client does not show child sessions.")
        return None
    id = f"{turn.session.id}-{turn.next_id('child')}"
    states = (v1.RunningState(), v1.ActionRequiredState(), v1.UnknownState(), v1.IdleState(v1.IdleReason.END_TURN))
    await turn.update(v1.SubagentUpdate(id, title="The second voice", cwd=turn.session.cwd))
    for state in states:
        await turn.update(v1.SubagentUpdate(id, state=state))
    message = turn.next_id("message")
    await turn.update(v1.SessionMessage(message, sender_session_id=turn.session.id, recipient_session_id=id))
    await turn.update(v1.SessionMessageChunk(message, v1.TextBlock("Your turn.")))
    await turn.say("The child is done.")
    return None


# The command that runs all the others.

FILE: Final = "antiphon-demo.txt"
MOVED: Final = "antiphon-demo-moved.txt"

ALL_STEPS: Final = (
    ("think", "everything"), ("plan", ""), ("echo", "call and response"), ("image", ""), ("audio", ""), ("link", ""),
    ("resource", ""), ("ask", ""), ("visit", ""), ("permission", ""), ("edit", FILE), ("read", FILE), ("search", "response"),
    ("move", f"{FILE} {MOVED}"), ("delete", MOVED), ("run", "echo call && echo response"), ("limit", "0.2 echo slow; sleep 60"), ("fetch", ""), ("mode", "default"),
    ("set", "thinking on"), ("set", "thinking off"), ("title", ""), ("notice", ""), ("compact", ""), ("compact", "fail"),
    ("compact", "cancel"), ("count", "2"), ("ids", ""), ("mcp", ""), ("plans", ""), ("child", ""), ("usage", ""),
)  # fmt: skip
"""Command and what follows it. What changes the workspace cleans up after itself."""


@command("all", "Everything, one after the other")
async def everything(demo: "DemoSession", turn: "AgentTurn", rest: str) -> "Outcome":
    """Every kind of update, content, tool call and question in one turn. Ends with the tokens that it took."""
    outcome: Outcome = None
    for name, arguments in ALL_STEPS:
        try:
            outcome = await COMMANDS[name].run(demo, turn, arguments)
        except ResponseError as error:  # you may have refused what it needs
            await turn.say(f"`/{name}` did not work: {error}")
        await turn.say("\n\n")
    async with turn.tool("A tool that fails, to show it") as call:
        call.fail()
    return outcome
