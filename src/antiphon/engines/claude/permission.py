"""May this tool run? The CLI's questions become questions to the user, and the user's answers what the CLI goes by."""

import asyncio
import os.path
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from antiphon.engines.claude.elicitation import ask_for_server
from antiphon.engines.claude.grants import Grant, grants
from antiphon.engines.claude.inquiry import allow, deny
from antiphon.engines.claude.kept_rules import keep_rules
from antiphon.engines.claude.plans import ask_about_plan
from antiphon.engines.claude.questions import ask_questions
from antiphon.engines.elicitation import CANCEL, DECLINE
from antiphon.engines.inquiry import MAX_NOTE, Body, CalledOff, Refused, noted, pick, shown, text, why, withdrawn, words
from antiphon.errors import AcpError
from antiphon.protocol import v1
from antiphon.text import exact

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking, Visit
    from antiphon.agent.session import Session
    from antiphon.engines.claude import wire

__all__ = ["Asker"]

REJECTED: Final = (
    "The user rejected this tool call: it did not run, and nothing was changed. "
    "Stop what you are doing, and wait for the user to say how to go on."
)
NOT_ALLOWED: Final = "The user did not allow this tool call: it did not run, and nothing was changed."
CALLED_OFF: Final = "The user cancelled while this was being asked: it did not run, and nothing was changed."

_Kind = v1.PermissionOptionKind
_ALLOW: Final = v1.PermissionOption("allow", "Allow once", _Kind.ALLOW_ONCE)
_REJECT: Final = v1.PermissionOption("reject", "Reject", _Kind.REJECT_ONCE)
_REJECT_WITH_WORDS: Final = v1.PermissionOption("reject_with_message", "Reject and say why", _Kind.REJECT_ONCE)

_ASKED_THEIR_OWN_WAY: Final = {"AskUserQuestion": ask_questions, "ExitPlanMode": ask_about_plan}

_COMMONPLACE: Final = "This command requires approval"
"""What the CLI gives as a reason when there is none."""


class Asker:
    """Asks for one session. Several questions may be open at once; whoever cancels one withdraws it at the client."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._pages: dict[str, Visit] = {}

    async def answer(self, request: "wire.CanUseTool", stage: "Asking", call: v1.ToolCallPatch) -> Body:
        """What the CLI is told: it may, or it may not and why."""
        ask = _ASKED_THEIR_OWN_WAY.get(request.tool_name, self._ask)
        try:
            return await ask(request, stage, _from_whom(request, call))
        except asyncio.CancelledError:
            if withdrawn():
                raise
            return deny(CALLED_OFF, interrupt=True)  # the turn has ended, and its questions with it
        except CalledOff:
            return deny(CALLED_OFF, interrupt=True)
        except Refused as refused:
            return deny(f"This tool call is not allowed here: it did not run, and nothing was changed. {refused}")
        except AcpError as error:
            return deny(f"The user could not be asked, so this did not run: {why(error)}")

    async def elicit(self, request: "wire.Elicitation", stage: "Asking") -> Body:
        """What an MCP server is told that wants something from the user."""
        try:
            return await ask_for_server(request, stage, self._pages)
        except asyncio.CancelledError:
            if withdrawn():
                raise
            return dict(CANCEL)
        except AcpError:
            return dict(DECLINE)

    async def page_done(self, elicitation_id: str) -> None:
        """A server says that the user is done on the page it asked for: the client may stop waiting."""
        visit = self._pages.pop(elicitation_id, None)
        if visit is not None:
            await visit.complete()

    async def _ask(self, request: "wire.CanUseTool", stage: "Asking", call: v1.ToolCallPatch) -> Body:
        session = self._session
        roots = (session.cwd, *session.directories)
        # The CLI says where things really are, whatever link led it there.
        lasting = grants(request, [*map(os.path.realpath, roots), *roots])
        allowing = [_ALLOW, *(grant.option for grant in lasting)]
        rejecting = [_REJECT, *([_REJECT_WITH_WORDS] if session.client.shows_forms else [])]
        # Clients put the first option under the user's finger.
        options = [*rejecting, *allowing] if request.default_to_no or request.mended else [*allowing, *rejecting]
        chosen = await pick(stage, _explained(request, call, lasting), options)
        if chosen is None:
            return deny(NOT_ALLOWED)
        if chosen is _ALLOW:
            return allow(request.input)
        for grant in lasting:
            if chosen is grant.option:
                if grant.kept:
                    await asyncio.to_thread(keep_rules, session.cwd, grant.kept)
                return allow(request.input, *grant.updates)
        if chosen is _REJECT_WITH_WORDS:
            said = await words(stage, "What should Claude do instead?", "Your message", call.tool_call_id)
            if said is not None:
                return deny(f"The user rejected this tool call: it did not run. They said:\n{said}")
        return deny(REJECTED)


def _from_whom(request: "wire.CanUseTool", call: v1.ToolCallPatch) -> v1.ToolCallPatch:
    """Which sub-agent asks, if it is one, for clients that can show it in their own way."""
    if request.agent_id is None:
        return call
    meta = dict(call.meta or {})
    ours = meta.get("claudeCode")
    meta["claudeCode"] = {**(ours if isinstance(ours, dict) else {}), "agentId": request.agent_id}
    return shown(call, meta=meta)


def _explained(request: "wire.CanUseTool", call: v1.ToolCallPatch, lasting: list[Grant]) -> v1.ToolCallPatch:
    """What the call would do, and what the CLI has to say about it."""
    said = list(_notes(request, call))
    said.extend(grant.note for grant in lasting if grant.note is not None)
    return shown(call, content=[*(call.content or []), text("\n\n".join(said))]) if said else call


def _notes(request: "wire.CanUseTool", call: v1.ToolCallPatch) -> Iterator[str]:
    if request.agent_id is not None:
        yield f"A sub-agent asks (`{request.agent_id}`)."
    known = [call.title or "", *(place.path for place in call.locations or ()), *_texts(call)]
    reason = noted(request.decision_reason)
    for note in (noted(request.title), noted(request.description), reason if reason != _COMMONPLACE else ""):
        if note and not any(note in each for each in known):
            known.append(note)
            yield note
    blocked = exact(request.blocked_path or "").strip()[:MAX_NOTE]
    if blocked and not any(blocked in each for each in known):
        yield f"It reaches for `{blocked}`."


def _texts(call: v1.ToolCallPatch) -> Iterator[str]:
    """What it shows already."""
    for item in call.content or ():
        match item:
            case v1.ContentItem(content=v1.TextBlock(text=shown)):
                yield shown
            case _:
                pass
