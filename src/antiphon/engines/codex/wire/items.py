"""Items: what happens in a turn, each with an id. They are sent when they start, when they are complete, and again in histories."""

from typing import TYPE_CHECKING, TypeAlias

import msgspec

from antiphon.protocol.base import Items, Unknown

if TYPE_CHECKING:
    from antiphon.protocol.base import Unknown

__all__ = [
    "AgentMessage",
    "AgentState",
    "AudioInput",
    "CodexStruct",
    "CollabAgentToolCall",
    "CommandAction",
    "CommandExecution",
    "ContextCompaction",
    "DynamicToolCall",
    "EnteredReviewMode",
    "ExitedReviewMode",
    "FileChange",
    "FileUpdate",
    "FunctionCallOutput",
    "HookFragment",
    "HookPrompt",
    "ImageFailure",
    "ImageGeneration",
    "ImageInput",
    "ImageView",
    "Item",
    "LocalAudio",
    "LocalImage",
    "McpCallError",
    "McpResult",
    "McpToolCall",
    "Mention",
    "ProposedPlan",
    "Reasoning",
    "SkillInput",
    "Sleep",
    "SubAgentActivity",
    "TextInput",
    "ThreadStruct",
    "UpdateKind",
    "UserInput",
    "UserMessage",
    "WebAction",
    "WebSearch",
]

# What every part of a line shares: names in camelCase, unknown fields ignored, and what is not essential may be missing.


class CodexStruct(msgspec.Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of every struct of the protocol. Frozen, and outside the garbage collector's rounds, because trees of them have no cycles."""


class ThreadStruct(CodexStruct, frozen=True):
    """A message about one thread, or about none in particular."""

    thread_id: str | None = None
    turn_id: str | None = None


# A prompt, part by part.


class TextInput(CodexStruct, frozen=True, tag_field="type", tag="text"):
    """A text in a prompt."""

    text: str = ""


class ImageInput(CodexStruct, frozen=True, tag_field="type", tag="image"):
    """A picture: its address, which may hold the data, or its number in the service's own store."""

    url: str | None = None
    file_id: str | None = None


class LocalImage(CodexStruct, frozen=True, tag_field="type", tag="localImage"):
    """A picture in a file."""

    path: str


class AudioInput(CodexStruct, frozen=True, tag_field="type", tag="audio"):
    """Sound, by its address, which may hold the data."""

    url: str


class LocalAudio(CodexStruct, frozen=True, tag_field="type", tag="localAudio"):
    """Sound in a file."""

    path: str


class SkillInput(CodexStruct, frozen=True, tag_field="type", tag="skill"):
    """A skill to use."""

    name: str
    path: str


class Mention(CodexStruct, frozen=True, tag_field="type", tag="mention"):
    """Something that is only named."""

    name: str
    path: str


if TYPE_CHECKING:
    UserInput: TypeAlias = (
        TextInput | ImageInput | LocalImage | AudioInput | LocalAudio | SkillInput | Mention | Unknown
    )
else:
    UserInput = TextInput | ImageInput | LocalImage | AudioInput | LocalAudio | SkillInput | Mention


class UserMessage(CodexStruct, frozen=True, tag_field="type", tag="userMessage"):
    """A prompt of the user."""

    id: str
    content: Items[UserInput] = msgspec.field(default_factory=list)
    client_id: str | None = None


class HookFragment(CodexStruct, frozen=True):
    """A part of the message of a hook to the model."""

    text: str = ""


class HookPrompt(CodexStruct, frozen=True, tag_field="type", tag="hookPrompt"):
    """A message of hooks to the model, sent as if by the user."""

    id: str
    fragments: Items[HookFragment] = msgspec.field(default_factory=list)


class AgentMessage(CodexStruct, frozen=True, tag_field="type", tag="agentMessage"):
    """A message of the model. `phase` distinguishes a comment from the final answer."""

    id: str
    text: str = ""
    phase: str | None = None


class FunctionCallOutput(CodexStruct, frozen=True, tag_field="type", tag="functionCallOutput"):
    """The result of a call that has no item of its own."""

    id: str
    name: str = ""
    namespace: str | None = None
    output: object = None
    failed: bool = False
    """A field of ours, for calls that Codex does not report: whether the call failed."""


class ProposedPlan(CodexStruct, frozen=True, tag_field="type", tag="plan"):
    """A plan that the model lays before the user."""

    id: str
    text: str = ""


class Reasoning(CodexStruct, frozen=True, tag_field="type", tag="reasoning"):
    """What the model thinks: in short, and at length where it shows that."""

    id: str
    summary: Items[str] = msgspec.field(default_factory=list)
    content: Items[str] = msgspec.field(default_factory=list)


class CommandAction(CodexStruct, frozen=True):
    """What a part of a command is taken to do: `read`, `listFiles`, `search` or `unknown`."""

    type: str = "unknown"
    command: str = ""
    name: str | None = None
    path: str | None = None
    query: str | None = None


class CommandExecution(CodexStruct, frozen=True, tag_field="type", tag="commandExecution"):
    """A command; `command` is the line with the shell that runs it."""

    id: str
    command: str = ""
    cwd: str | None = None
    process_id: str | None = None
    source: str = "agent"
    status: str = "inProgress"
    command_actions: Items[CommandAction] = msgspec.field(default_factory=list)
    aggregated_output: str | None = None
    exit_code: int | None = None
    duration_ms: int | None = None


class UpdateKind(CodexStruct, frozen=True):
    """What becomes of a file: `add`, `delete` or `update`, which may move it."""

    type: str = "update"
    move_path: str | None = msgspec.field(default=None, name="move_path")


class FileUpdate(CodexStruct, frozen=True):
    """A change to one file. `diff` is the whole text of a file that is added or deleted, else unified hunks."""

    path: str
    kind: UpdateKind = UpdateKind()
    diff: str = ""


class FileChange(CodexStruct, frozen=True, tag_field="type", tag="fileChange"):
    """Changes to files."""

    id: str
    changes: Items[FileUpdate] = msgspec.field(default_factory=list)
    status: str = "inProgress"


class McpResult(CodexStruct, frozen=True):
    """What a server's tool returned; the content is in MCP's own shape."""

    content: list[object] = msgspec.field(default_factory=list)
    structured_content: object = None


class McpCallError(CodexStruct, frozen=True):
    """Why a server's tool failed."""

    message: str = ""


class McpToolCall(CodexStruct, frozen=True, tag_field="type", tag="mcpToolCall"):
    """A call of an MCP server's tool."""

    id: str
    server: str = ""
    tool: str = ""
    arguments: object = None
    status: str = "inProgress"
    result: McpResult | None = None
    error: McpCallError | None = None
    read_only_hint: bool | None = None
    duration_ms: int | None = None


class DynamicToolCall(CodexStruct, frozen=True, tag_field="type", tag="dynamicToolCall"):
    """A call of a tool that the client itself offers."""

    id: str
    tool: str = ""
    namespace: str | None = None
    arguments: object = None
    status: str = "inProgress"
    content_items: list[object] | None = None
    success: bool | None = None


class AgentState(CodexStruct, frozen=True):
    """The state of another agent."""

    status: str = ""
    message: str | None = None


class CollabAgentToolCall(CodexStruct, frozen=True, tag_field="type", tag="collabAgentToolCall"):
    """The agent works with other agents: it starts them, sends them messages, waits for them."""

    id: str
    tool: str = ""
    status: str = "inProgress"
    prompt: str | None = None
    model: str | None = None
    receiver_thread_ids: Items[str] = msgspec.field(default_factory=list)
    agents_states: dict[str, AgentState] = msgspec.field(default_factory=dict)


class SubAgentActivity(CodexStruct, frozen=True, tag_field="type", tag="subAgentActivity"):
    """Another agent was started, sent a message, interrupted, or is done."""

    id: str
    kind: str = ""
    agent_path: str = ""
    agent_thread_id: str = ""


class WebAction(CodexStruct, frozen=True):
    """What was done on the web: `search`, `openPage`, `findInPage` or `other`."""

    type: str = "other"
    query: str | None = None
    queries: list[str] | None = None
    url: str | None = None
    pattern: str | None = None


class WebSearch(CodexStruct, frozen=True, tag_field="type", tag="webSearch"):
    """A search on the web, or a page read there."""

    id: str
    query: str = ""
    action: WebAction | None = None
    results: list[object] | None = None


class ImageView(CodexStruct, frozen=True, tag_field="type", tag="imageView"):
    """The model looks at a picture."""

    id: str
    path: str = ""


class Sleep(CodexStruct, frozen=True, tag_field="type", tag="sleep"):
    """The agent waits."""

    id: str
    duration_ms: int = 0


class ImageFailure(CodexStruct, frozen=True):
    """Why there is no picture."""

    type: str = ""
    resets_at: int | None = None


class ImageGeneration(CodexStruct, frozen=True, tag_field="type", tag="imageGeneration"):
    """A picture that the model makes: base64 in `result`, or stored by the service as `file_id`."""

    id: str
    status: str = ""
    result: str | None = None
    file_id: str | None = None
    revised_prompt: str | None = None
    saved_path: str | None = None
    failure: ImageFailure | None = None


class EnteredReviewMode(CodexStruct, frozen=True, tag_field="type", tag="enteredReviewMode"):
    """A review begins; `review` is its subject."""

    id: str
    review: str = ""


class ExitedReviewMode(CodexStruct, frozen=True, tag_field="type", tag="exitedReviewMode"):
    """A review is done; `review` is the finding."""

    id: str
    review: str = ""


class ContextCompaction(CodexStruct, frozen=True, tag_field="type", tag="contextCompaction"):
    """The context is made shorter."""

    id: str


_Known: TypeAlias = (
    UserMessage
    | HookPrompt
    | AgentMessage
    | FunctionCallOutput
    | ProposedPlan
    | Reasoning
    | CommandExecution
    | FileChange
    | McpToolCall
    | DynamicToolCall
    | CollabAgentToolCall
    | SubAgentActivity
    | WebSearch
    | ImageView
    | Sleep
    | ImageGeneration
    | EnteredReviewMode
    | ExitedReviewMode
    | ContextCompaction
)

if TYPE_CHECKING:
    Item: TypeAlias = _Known | Unknown
else:
    Item = _Known
