"""What every question of the CLI needs on its way to the user and back. Nothing that is not understood is ever an approval."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from antiphon.agent.permission import Permission
from antiphon.errors import AcpError
from antiphon.protocol import v1
from antiphon.protocol.v1 import methods as m

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking

__all__ = ["Body", "CalledOff", "allow", "deny", "pick", "shown", "text", "words"]

Body: TypeAlias = dict[str, Any]
"""What the CLI gets to read as the answer."""

_WORDS: Final = "words"


class CalledOff(AcpError):
    """The client called the question off, because the turn is being cancelled."""


def allow(input: Mapping[str, Any], *permissions: Mapping[str, Any]) -> Body:
    """The tool may run. The input is always there: 2.1.197 takes an answer without it for a refusal."""
    body: Body = {"behavior": "allow", "updatedInput": dict(input)}
    return {**body, "updatedPermissions": [dict(each) for each in permissions]} if permissions else body


def deny(message: str, *, interrupt: bool = False) -> Body:
    """The tool may not run; the model reads the message. With `interrupt` the turn ends instead."""
    body: Body = {"behavior": "deny", "message": message}
    return {**body, "interrupt": True} if interrupt else body


async def pick(
    stage: "Asking", call: v1.ToolCallPatch, options: Sequence[v1.PermissionOption]
) -> v1.PermissionOption | None:
    """Which of the options the user chose; None if the answer was none of them.

    Raises:
        CalledOff: there will be no answer.
    """
    question = v1.RequestPermission(stage.session.id, call, list(options))
    outcome = (await stage.request(m.REQUEST_PERMISSION, question)).outcome
    if isinstance(outcome, v1.Cancelled):
        raise CalledOff("the question was called off")
    return Permission(outcome, options).option


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
