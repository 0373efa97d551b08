"""Calls that are neither commands nor file changes: how they are described, and their results."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.codex.translate.calls import CallDescription, CallOutcome
from antiphon.engines.codex.translate.commands import file_uri, seconds
from antiphon.engines.codex.wire import (
    AudioInput,
    ImageInput,
    LocalAudio,
    LocalImage,
    Mention,
    SkillInput,
    TextInput,
    UserInput,
)
from antiphon.engines.labels import absolute_path, one_line, shown_path, shown_text, title
from antiphon.protocol import v1
from antiphon.protocol.base import BAD_INPUT, UNSET, JsonObject
from antiphon.protocol.salvage import salvage
from antiphon.text import fenced

__all__ = [
    "TOOLS",
    "ToolItem",
    "block_of_input",
    "content_of_mcp",
    "content_of_output",
    "json_text",
    "mcp_name",
    "outcome_of",
    "show",
]

# Content as Codex and MCP servers write it, in the shape of the protocol.

_DATA: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[^,;]*)*?;base64,", re.IGNORECASE)


class _Wrapped(msgspec.Struct):
    content: v1.ContentBlock


def json_text(value: object) -> str:
    """Return any value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def block_of_input(piece: UserInput) -> v1.ContentBlock | None:
    """Return a part of a prompt as a content block; None where nothing of it can be shown."""
    match piece:
        case TextInput(text=text):
            return v1.TextBlock(text=text) if text else None
        case ImageInput(url=url, file_id=file_id):
            return _picture(url) if url else v1.TextBlock(text=f"[image {file_id}]")
        case AudioInput(url=url):
            data = _DATA.match(url)
            if data is not None:
                return v1.AudioBlock(data=url[data.end() :], mime_type=data[1] or "audio/wav")
            return v1.ResourceLink(name="audio", uri=url)
        case LocalImage(path=path) | LocalAudio(path=path):
            return v1.ResourceLink(name=path.rpartition("/")[2] or path, uri=file_uri(path))
        case SkillInput(name=name, path=path) | Mention(name=name, path=path):
            return v1.ResourceLink(name=name, uri=file_uri(path))
        case _:
            return None


def content_of_mcp(blocks: list[object]) -> list[v1.ToolContent]:
    """Return the content of an MCP tool result: its blocks have the shape of the protocol; anything else is shown as JSON."""
    return [_mcp(block) for block in blocks]


def content_of_output(output: object) -> list[v1.ToolContent]:
    """What other tools returned: text, or pieces in the shape of a model's input."""
    if isinstance(output, str):
        return [shown_text(output)] if output else []
    return [_piece(piece) for piece in output] if isinstance(output, list) else []


def _mcp(block: object) -> v1.ToolContent:
    wire = msgspec.json.encode({"content": block})
    try:
        return v1.ContentItem(content=salvage(wire, _Wrapped).content)
    except BAD_INPUT:
        return shown_text(fenced(json_text(block), "json"))


def _piece(piece: object) -> v1.ToolContent:
    if isinstance(piece, dict):
        text = piece.get("text")
        if isinstance(text, str):
            return shown_text(text)
        for name in ("imageUrl", "image_url"):
            if isinstance(piece.get(name), str):
                return v1.ContentItem(content=_picture(piece[name]))
    return shown_text(fenced(json_text(piece), "json"))


def _picture(url: str) -> v1.ContentBlock:
    data = _DATA.match(url)
    if data is not None:
        return v1.ImageBlock(data=url[data.end() :], mime_type=data[1] or "image/png")
    return v1.ResourceLink(name="image", uri=url)


MAX_LINKS: Final = 20
"""Results of a search that are shown; the raw output has all."""

_VERBS: Final = {
    "spawnAgent": "Start an agent", "sendInput": "Talk to an agent", "resumeAgent": "Resume an agent", "wait": "Wait for agents",
    "closeAgent": "Close an agent", "sendMessage": "Send a message to an agent", "followupTask": "Give an agent another task",
    "interruptAgent": "Interrupt an agent", "listAgents": "List agents",
}  # fmt: skip
_ACTIVITIES: Final = {
    "started": "has started",
    "interacted": "got a message",
    "interrupted": "was interrupted",
    "completed": "is done",
}


def mcp_name(server: str, tool: str) -> str:
    """The name that rules know a server's tool by."""
    return f"mcp__{server}__{tool}"


def show(item: "ToolItem", cwd: str) -> CallDescription:
    """Return the description of a call."""
    return TOOLS[type(item)][0](item, cwd)


def outcome_of(item: "ToolItem") -> CallOutcome:
    """Return the result of a call."""
    return TOOLS[type(item)][1](item)


def _show_mcp(item: wire.McpToolCall, _: str) -> CallDescription:
    return CallDescription(
        title=one_line(f"{item.server}: {item.tool}" if item.server else item.tool) or "Call a tool",
        kind=v1.ToolKind.READ if item.read_only_hint else v1.ToolKind.OTHER,
        name=mcp_name(item.server, item.tool),
        raw_input=item.arguments,
    )


def _end_mcp(item: wire.McpToolCall) -> CallOutcome:
    if item.status == "completed" and item.error is None:
        result = item.result or wire.McpResult()
        raw = {"content": result.content, "structuredContent": result.structured_content}
        return CallOutcome(content=content_of_mcp(result.content), raw_output=raw)
    message = item.error.message if item.error else "It did not come to its end."
    return CallOutcome(failed=True, content=[shown_text(message)], raw_output={"error": message})


def _show_dynamic(item: wire.DynamicToolCall, _: str) -> CallDescription:
    name = f"{item.namespace}__{item.tool}" if item.namespace else item.tool
    return CallDescription(title=one_line(item.tool) or "Call a tool", name=name or None, raw_input=item.arguments)


def _end_dynamic(item: wire.DynamicToolCall) -> CallOutcome:
    failed = item.status != "completed" or item.success is False
    return CallOutcome(
        failed=failed, content=content_of_output(item.content_items), raw_output=item.content_items or []
    )


def _show_function(item: wire.FunctionCallOutput, _: str) -> CallDescription:
    return CallDescription(title=one_line(item.name) or "Call a tool", name=item.name or None)


def _end_function(item: wire.FunctionCallOutput) -> CallOutcome:
    return CallOutcome(failed=item.failed, content=content_of_output(item.output), raw_output=item.output)


def _show_agents(item: wire.CollabAgentToolCall, _: str) -> CallDescription:
    verb = _VERBS.get(item.tool, "Work with agents")
    description: JsonObject = {"prompt": item.prompt, "model": item.model, "agents": item.receiver_thread_ids}
    return CallDescription(
        title=title(f"{verb}:" if item.prompt else verb, item.prompt),
        kind=v1.ToolKind.THINK,
        name="Agent" if item.tool == "spawnAgent" else item.tool or None,
        raw_input={name: value for name, value in description.items() if value},
        content=[shown_text(item.prompt)] if item.prompt else [],
    )


def _end_agents(item: wire.CollabAgentToolCall) -> CallOutcome:
    value = [state.message for state in item.agents_states.values() if state.message]
    raw = {id: {"status": state.status, "message": state.message} for id, state in item.agents_states.items()}
    content: list[v1.ToolContent] = [shown_text(text) for text in (item.prompt, *value) if text]
    return CallOutcome(failed=item.status != "completed", content=content, raw_output=raw)


def _show_activity(item: wire.SubAgentActivity, _: str) -> CallDescription:
    what = _ACTIVITIES.get(item.kind, item.kind)
    return CallDescription(title=one_line(f"Agent {item.agent_path} {what}"), kind=v1.ToolKind.THINK, name="Agent")


def _show_search(item: wire.WebSearch, _: str) -> CallDescription:
    action = item.action or wire.WebAction(type="search")
    query = item.query or action.query or ", ".join(action.queries or ())
    description: JsonObject = {"query": query, "url": action.url, "pattern": action.pattern}
    return CallDescription(
        title=_web_title(action, query),
        kind=v1.ToolKind.FETCH,
        name="WebFetch" if action.url else "WebSearch",
        raw_input={name: value for name, value in description.items() if value},
    )


def _web_title(action: wire.WebAction, query: str) -> str:
    if action.type == "openPage":
        return title("Read", action.url or query or "a page on the web")
    if action.type == "findInPage":
        return title("Look for", action.pattern, f"in {action.url}" if action.url else "")
    return title("Search the web for" if query else "Search the web", query)


def _end_search(item: wire.WebSearch) -> CallOutcome:
    links = [link for link in map(_link, (item.results or [])[:MAX_LINKS]) if link is not None]
    return CallOutcome(content=links or None, raw_output=item.results if item.results is not None else UNSET)


def _link(result: object) -> v1.ToolContent | None:
    if not isinstance(result, dict) or not isinstance(url := result.get("url"), str):
        return None
    name = result.get("title")
    return v1.ContentItem(content=v1.ResourceLink(name=name if isinstance(name, str) and name else url, uri=url))


def _show_view(item: wire.ImageView, cwd: str) -> CallDescription:
    path = absolute_path(item.path, cwd)
    link = v1.ResourceLink(name=path.rpartition("/")[2] or path, uri=file_uri(path))
    return CallDescription(
        title=title("Look at", shown_path(item.path, cwd)),
        kind=v1.ToolKind.READ,
        name="Read",
        raw_input={"path": path},
        locations=[v1.ToolLocation(path=path)],
        content=[v1.ContentItem(content=link)],
    )


def _show_picture(item: wire.ImageGeneration, _: str) -> CallDescription:
    prompt = item.revised_prompt
    return CallDescription(
        title=title("Make a picture:" if prompt else "Make a picture", prompt),
        name="ImageGeneration",
        raw_input={"prompt": prompt} if prompt else UNSET,
    )


def _end_picture(item: wire.ImageGeneration) -> CallOutcome:
    content: list[v1.ToolContent] = []
    if item.result:
        uri = file_uri(item.saved_path) if item.saved_path else None
        picture = v1.ImageBlock(data=item.result, mime_type=_picture_type(item.result), uri=uri)
        content.append(v1.ContentItem(content=picture))
    elif item.saved_path:
        name = item.saved_path.rpartition("/")[2]
        content.append(v1.ContentItem(content=v1.ResourceLink(name=name, uri=file_uri(item.saved_path))))
    failed = item.failure is not None or item.status in ("failed", "cancelled")
    if failed:
        limit = item.failure is not None and item.failure.type == "usageLimitExceeded"
        content.append(shown_text("The limit for pictures is used up." if limit else "There is no picture."))
    raw = {"status": item.status, "savedPath": item.saved_path, "fileId": item.file_id}
    return CallOutcome(failed=failed, content=content, raw_output={name: value for name, value in raw.items() if value})


def _picture_type(data: str) -> str:
    for start, kind in (("/9j/", "image/jpeg"), ("UklGR", "image/webp"), ("R0lGOD", "image/gif")):
        if data.startswith(start):
            return kind
    return "image/png"


def _show_sleep(item: wire.Sleep, _: str) -> CallDescription:
    return CallDescription(
        title=f"Wait {seconds(item.duration_ms)}", name="Sleep", raw_input={"durationMs": item.duration_ms}
    )


def _done(_: object) -> CallOutcome:
    return CallOutcome()


ToolItem: TypeAlias = (
    wire.McpToolCall
    | wire.DynamicToolCall
    | wire.FunctionCallOutput
    | wire.CollabAgentToolCall
    | wire.SubAgentActivity
    | wire.WebSearch
    | wire.ImageView
    | wire.ImageGeneration
    | wire.Sleep
)
"""An item that is a tool call, other than a command or a change of files."""

TOOLS: Final[dict[type, tuple[Callable[[Any, str], CallDescription], Callable[[Any], CallOutcome]]]] = {
    wire.McpToolCall: (_show_mcp, _end_mcp),
    wire.DynamicToolCall: (_show_dynamic, _end_dynamic),
    wire.FunctionCallOutput: (_show_function, _end_function),
    wire.CollabAgentToolCall: (_show_agents, _end_agents),
    wire.SubAgentActivity: (_show_activity, _done),
    wire.WebSearch: (_show_search, _end_search),
    wire.ImageView: (_show_view, _done),
    wire.ImageGeneration: (_show_picture, _end_picture),
    wire.Sleep: (_show_sleep, _done),
}
