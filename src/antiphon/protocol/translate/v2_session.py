"""What the translator for a client of version 2 knows of a session, the options that are set in it, and the small types of its stream."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from antiphon.errors import Code, RequestError
from antiphon.protocol import v1, v2
from antiphon.protocol.base import JsonObject, Unknown
from antiphon.protocol.exchange import Id, Loss, RequestFailure
from antiphon.protocol.translate.base import Translator
from antiphon.protocol.translate.tables import BoundedTable
from antiphon.protocol.translate.v1_session import text_of
from antiphon.protocol.translate.v1_updates import KEPT
from antiphon.protocol.translate.v2_updates import UpdatesToV2
from antiphon.protocol.translate.values import content as c
from antiphon.protocol.v1 import methods as m1

if TYPE_CHECKING:
    from antiphon.protocol.extension import OpenWork

__all__ = [
    "AgentChunk", "AgentPiece", "HeldPrompt", "V2ClientSession", "V2Settings", "about_session", "idle",
    "stop_reason", "system_prompt_to_v1",
]  # fmt: skip


class _Text(msgspec.Struct, tag_field="type", tag="text", forbid_unknown_fields=True, gc=False):
    text: str


class _Piece(msgspec.Struct, tag_field="sessionUpdate", forbid_unknown_fields=True, rename="camel", gc=False):
    content: _Text
    message_id: str | None = None


class AgentPiece(_Piece, tag="agent_message_chunk", forbid_unknown_fields=True, gc=False):
    """A piece of a message, as plain text."""


class _ThoughtPiece(_Piece, tag="agent_thought_chunk", forbid_unknown_fields=True, gc=False):
    pass


class AgentChunk(msgspec.Struct, forbid_unknown_fields=True, rename="camel", gc=False):
    """A piece of text in the stream of an agent, and nothing else."""

    session_id: str
    update: AgentPiece | _ThoughtPiece


class HeldPrompt:
    """A prompt of the client: held, then sent, then inserted, which is its response."""

    __slots__ = (
        "_unechoed", "cancelled", "content", "id", "inserted", "message_id", "meta", "offered", "request",
    )  # fmt: skip

    def __init__(self, id: Id, content: "list[v2.ContentBlock]", meta: JsonObject | None) -> None:
        self.id = id
        self.content = content
        self.meta = meta
        self.message_id = ""
        self.inserted = False
        self.cancelled = False
        self.offered = False
        """Whether the agent is asked to take it into the turn that runs."""
        self.request = 0
        """The id that it has at the agent, where the agent holds it."""
        self._unechoed = text_of(content)

    def is_echo(self, chunk: v1.UserMessageChunk) -> bool:
        """Whether a user message is this prompt, which some agents repeat. The client was sent it when it was inserted."""
        text = text_of([chunk.content])
        if not text or not self._unechoed.startswith(text):
            return False
        self._unechoed = self._unechoed[len(text) :]
        return True


class V2ClientSession:
    """What the translator knows of a session."""

    def __init__(self, id: str, updates: UpdatesToV2) -> None:
        self.id = id
        self.updates = updates
        self.active: HeldPrompt | None = None
        """The prompt that the agent works on: agents of version 1 get one at a time."""
        self.held: deque[HeldPrompt] = deque()
        self.questions: dict[Id, bool] = {}
        """Requests of the agent to the user that are open, by their id; True once they were answered for the client."""
        self.opening = 0
        """Requests to open it again that are not answered."""
        self.silent = False
        """Whether what the agent replays is not wanted."""
        self.prompted = False
        """Whether the agent has it in store, as far as one can tell: a prompt was inserted, or it was opened again."""
        self.closing: list[Id] = []
        """The requests to close it, which are answered when its turn has ended."""
        # What agents of version 1 cannot report; agents of our SDK can.
        self.working = False
        """Whether the agent works by itself, without a prompt."""
        self.background: list[v2.BackgroundWork] | None = None
        """The background work; None if it was never reported."""
        self.cancellable: BoundedTable[OpenWork, None] = BoundedTable()
        """The work that the client may cancel alone."""
        self.aside: set[Id] = set()
        """Requests to the user that are about background work: the foreground does not wait for them."""
        self.ended: v2.StateUpdate | None = None
        """How the last prompt ended, while the agent still works by itself."""

    @property
    def has_prompts(self) -> bool:
        """Whether a prompt has not ended, or waits."""
        return self.active is not None or bool(self.held)

    def show_state(self) -> None:
        """Send the state."""
        self.updates.send(v2.StateUpdate(state=self.state, background=self.background))

    def end(self, ended: v2.StateUpdate) -> None:
        """Send how work has ended, unless the agent still works by itself: then it is sent at the end of that."""
        if self.state is not v2.ForegroundState.IDLE:
            self.ended = ended
        elif self.background is None:
            self.updates.send(ended)
        else:
            self.updates.send(msgspec.structs.replace(ended, background=self.background))

    def is_background(self, tool_call_id: str) -> bool:
        """Whether a tool call is background work."""
        return self.background is not None and v2.BackgroundToolCall(tool_call_id=tool_call_id) in self.background

    @property
    def state(self) -> v2.ForegroundState:
        """The foreground state, as the client was sent it."""
        if not self.working and (self.active is None or not self.active.inserted):
            return v2.ForegroundState.IDLE
        return v2.ForegroundState.REQUIRES_ACTION if self.waits else v2.ForegroundState.RUNNING

    @property
    def waits(self) -> bool:
        """Whether the user is asked something."""
        return any(not answered and id not in self.aside for id, answered in self.questions.items())


def about_session(failure: RequestFailure, session_id: str) -> RequestFailure:
    """Return an error of the agent so that one about an unknown session names it, as version 2 wants."""
    data = failure.data
    if failure.code != Code.RESOURCE_NOT_FOUND or (isinstance(data, dict) and "sessionId" in data):
        return failure
    message = f"{failure.message}: {data}" if isinstance(data, str) else failure.message
    return RequestFailure(failure.code, message, {"sessionId": session_id})


def idle(
    reason: v2.StopReason,
    *,
    error: v2.Failure | None = None,
    usage: v1.Usage | None = None,
    meta: JsonObject | None = None,
) -> v2.StateUpdate:
    """Return the state at the end of work."""
    return v2.StateUpdate(state=v2.ForegroundState.IDLE, stop_reason=reason, error=error, usage=usage, meta=meta)


def stop_reason(result: v1.PromptResult) -> tuple[v2.StopReason, JsonObject | None]:
    """Return why a turn ended, as it was where another translator kept it, and the rest of `_meta`."""
    kept = result.meta.get(KEPT) if result.meta is not None else None
    if result.meta is not None and isinstance(kept, dict) and isinstance(word := kept.get("stopReason"), str):
        return v2.StopReason(word), {key: value for key, value in result.meta.items() if key != KEPT} or None
    return v2.StopReason(result.stop_reason.meaning.value), result.meta


def system_prompt_to_v1(prompt: v2.SystemPrompt | None, report: c.Report) -> v1.SystemPrompt | None:
    """Return a system prompt in version 1."""
    if prompt is None:
        return None
    return v1.SystemPrompt(
        mode=prompt.mode, content=[c.block_to_v1(block, report) for block in prompt.content], meta=prompt.meta
    )


class V2Settings:
    """Sets the options of sessions. `fail` answers a request about a session with an error of the agent."""

    def __init__(
        self,
        translator: Translator,
        session_of: Callable[[str], V2ClientSession],
        fail: Callable[[Id, RequestFailure, str], None],
    ) -> None:
        self._translator = translator
        self._session_of = session_of
        self._fail = fail

    def set_option(self, id: Id, asked: v2.SetConfigOption) -> None:
        """Set an option: one of the agent's, or one that stands for its modes or models."""
        translator = self._translator
        if isinstance(asked, Unknown):
            wrong = f"no value of type `{asked.kind}`"
            translator.losses.append(Loss("session/set_config_option", wrong, refused=True))
            raise RequestError.invalid_params(wrong)
        session = self._session_of(asked.session_id)
        updates = session.updates

        def changed(meta: JsonObject | None) -> None:
            updates.set_value(asked.config_id, asked.value)
            translator.answer_client(id, v2.SetConfigOptionResult(config_options=updates.options, meta=meta))

        def failed(failure: RequestFailure) -> None:
            self._fail(id, failure, asked.session_id)

        if updates.sets_mode(asked.config_id) and isinstance(asked.value, str):
            mode = v1.SetMode(session_id=asked.session_id, mode_id=asked.value, meta=asked.meta)
            translator.ask_agent(id, m1.SET_MODE, mode, lambda result: changed(result.meta), failed)
            return
        if updates.sets_model(asked.config_id) and isinstance(asked.value, str):
            model = v1.SetModel(session_id=asked.session_id, model_id=asked.value, meta=asked.meta)
            translator.ask_agent(id, m1.SET_MODEL, model, lambda result: changed(result.meta), failed)
            return

        def answered(result: v1.SetConfigOptionResult) -> None:
            if result.config_options:
                updates.set_options(result.config_options)
                updates.send_options()
                translator.answer_client(id, v2.SetConfigOptionResult(config_options=updates.options, meta=result.meta))
            else:  # some agents answer without the list
                changed(result.meta)

        params = v1.SetConfigOption(
            session_id=asked.session_id, config_id=asked.config_id, value=asked.value, meta=asked.meta
        )
        translator.ask_agent(id, m1.SET_CONFIG_OPTION, params, answered, failed)
