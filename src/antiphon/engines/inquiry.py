"""What every question of a program needs on its way to the user and back. Nothing that is not understood is ever an approval."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from antiphon.agent.permission import QUESTION, Permission, why_refused
from antiphon.engines.wording import prose
from antiphon.errors import AcpError, RequestError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking

__all__ = [
    "MAX_NOTE",
    "Body",
    "CalledOff",
    "Refused",
    "noted",
    "pick",
    "pick_alone",
    "shown",
    "text",
    "why",
    "withdrawn",
    "words",
]

Body: TypeAlias = dict[str, Any]
"""What the program gets to read as the answer."""

MAX_NOTE: Final = 2000
"""Most characters of what a program says about a question that are shown with it. A reason is a sentence."""

_WORDS: Final = "words"
_Kind = v1.PermissionOptionKind


class CalledOff(AcpError):
    """The client called the question off, because the turn is being cancelled."""


class Refused(AcpError):
    """A policy said no in the user's place; the text says why."""


async def pick(
    stage: "Asking", call: v1.ToolCallPatch, options: Sequence[v1.PermissionOption], *, question: bool = False
) -> v1.PermissionOption | None:
    """Which of the options the user chose; None if the answer was none of them. `question`: it is not about permission, and only they can say.

    Raises:
        CalledOff: there will be no answer.
        Refused: the user was not asked.
    """
    asked = v1.RequestPermission(stage.session.id, call, list(options), meta=QUESTION if question else None)
    answer = await stage.request(m.REQUEST_PERMISSION, asked)
    if isinstance(answer.outcome, v1.Cancelled):
        raise CalledOff("the question was called off")
    permission = Permission(answer.outcome, options)
    if not permission and (why := why_refused(answer)) is not None:
        raise Refused(why)
    return permission.option


async def pick_alone(
    stage: "Asking", call: v1.ToolCallPatch, options: Sequence[v1.PermissionOption], *, question: bool = False
) -> v1.PermissionOption | None:
    """The same for a question about no call that the client knows: it begins and ends with the question.

    Raises:
        CalledOff: there will be no answer.
        Refused: the user was not asked.
    """
    id = call.tool_call_id
    named = {name: value for name in ("kind", "name", "content", "locations") if (value := getattr(call, name))}
    await stage.update(v1.ToolCall(id, call.title or "A question", raw_input=call.raw_input, **named))
    chosen = None
    try:
        chosen = await pick(stage, call, options, question=question)
    finally:
        allowed = chosen is not None and chosen.kind in (_Kind.ALLOW_ONCE, _Kind.ALLOW_ALWAYS)
        status = v1.ToolStatus.COMPLETED if allowed else v1.ToolStatus.FAILED
        with suppress(AcpError):  # whatever kept us from the answer is told already
            await stage.session.update(v1.ToolCallUpdate(id, status=status))
    return chosen


async def words(stage: "Asking", message: str, title: str, about: str) -> str | None:
    """What the user has to say, by a form with one field; None if that is nothing, or the form failed."""
    try:
        answers = await stage.ask(message, v1.Form(properties={_WORDS: v1.StringProperty(title=title)}), about=about)
    except AcpError:  # the answer that matters has been given already
        return None
    said = (answers or {}).get(_WORDS)
    return said.strip() or None if isinstance(said, str) else None


def text(markdown: str) -> v1.ContentItem:
    """A piece of what a question shows."""
    return v1.ContentItem(v1.TextBlock(markdown))


def shown(call: v1.ToolCallPatch, **changes: Any) -> v1.ToolCallPatch:
    """The call as it is shown in a question, where that differs from how it stands."""
    return msgspec.structs.replace(call, **changes)


def noted(said: str | None) -> str:
    """What a program says about a question, as it can be shown."""
    return prose(said or "").strip()[:MAX_NOTE]


def withdrawn() -> bool:
    """Whether a cancellation is meant for whoever asks, and not only for the question: the program took it back."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def why(error: AcpError) -> str:
    """In a few words, why the user could not be asked."""
    said = error.reason if isinstance(error, RequestError) else str(error).partition("\n")[0]
    return said or "no reason was given"
