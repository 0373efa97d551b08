"""Answers in the user's place, in the modes in which they are not asked about edits.

In these modes Codex works in a read-only sandbox and asks before it writes: a patch by itself, a command if the model asks to run it
outside of the sandbox. The policy then decides as it does for every engine in `acceptEdits`: work on files of the workspace is accepted,
but for files that name programs to run; the user is asked about those, and about every other command. In `dontAsk` it is declined.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from antiphon.engines.codex import wire
from antiphon.engines.codex.approvals.decisions import NEW, OLD, Words
from antiphon.engines.codex.approvals.permissions import NOTHING
from antiphon.engines.codex.modes import is_held
from antiphon.engines.project import action_of
from antiphon.engines.questions import DECLINE
from antiphon.policy import PolicyMode, Rules, Verdict, decide

if TYPE_CHECKING:
    from antiphon.agent.session import Session
    from antiphon.engines.codex.settings import Choosing
    from antiphon.engines.questions import Body
    from antiphon.protocol import v1

__all__ = ["changed_files", "decided_by_mode"]


def decided_by_mode(
    session: "Session", choosing: "Choosing", params: "wire.Request | wire.Unread", call: "v1.ToolCallPatch | None"
) -> "Body | None":
    """Return the answer to a request of Codex that the mode decides; None if the user is asked, or the guard of a joint session."""
    if not choosing.accepts_edits:
        return None
    guarded = session.rules is not None
    if guarded and (not choosing.never_asks or is_held(session.rules)):
        return None  # the guard knows the mode too, and what was decided for always
    words = _words_for(params)
    if words is not None and call is not None and _is_plain(params) and _accepted(session, choosing, call):
        return {"decision": words.once}
    if guarded or not choosing.never_asks:
        return None
    if words is not None:
        return words.declined
    if isinstance(params, wire.PermissionsApproval):
        return dict(NOTHING)
    return dict(DECLINE) if isinstance(params, wire.Elicitation) else None


def changed_files(params: "wire.Request | wire.Unread", call: "v1.ToolCallPatch") -> Iterable[str]:
    """Return the files that a request is about, if it is about changes to files."""
    if not isinstance(params, wire.FileApproval | wire.ApplyPatchApproval) or not isinstance(call.raw_input, dict):
        return []
    named = [call.raw_input.get("path"), *(call.raw_input.get("paths") or ())]
    return [path for path in named if isinstance(path, str) and os.path.isabs(path)]


def _words_for(params: "wire.Request | wire.Unread") -> Words | None:
    """The words of the protocol that a command or a change is decided in; None for any other request."""
    if isinstance(params, wire.CommandApproval | wire.FileApproval):
        return NEW
    return OLD if isinstance(params, wire.ExecApproval | wire.ApplyPatchApproval) else None


def _is_plain(params: "wire.Request | wire.Unread") -> bool:
    """Whether it is about the call as it is shown: a command, or changes to these files, and no more than that."""
    if isinstance(params, wire.CommandApproval):
        own_call = params.approval_id in (None, params.item_id)
        more = params.network_approval_context is not None or params.additional_permissions
        return params.kind == "command" and bool(params.command) and own_call and not more
    return isinstance(params, wire.ExecApproval) or not getattr(params, "grant_root", None)


def _accepted(session: "Session", choosing: "Choosing", call: "v1.ToolCallPatch") -> bool:
    rules = session.rules or Rules()
    action = action_of(session, call, also=choosing.also_writable)
    ruling = decide(action, Rules(deny=rules.deny, ask=rules.ask), PolicyMode.ACCEPT_EDITS)
    return ruling.verdict is Verdict.ALLOW
