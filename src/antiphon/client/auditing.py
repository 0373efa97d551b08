"""What of an action goes into the audit: enough to recognise it, without what looks like a secret."""

import shlex

from antiphon.policy import Action
from antiphon.protocol import v1
from antiphon.redaction import redact
from antiphon.store.audit import MAX_TEXT

__all__ = ["decided_by", "subject_of"]


def subject_of(action: Action) -> str:
    """Return what an action is about, in one text: the command, the paths or the address; else the title that the agent gave it."""
    if action.command is not None:
        subject = action.command
    elif action.words is not None:
        subject = shlex.join(action.words)
    elif action.paths:
        subject = " ".join(action.paths)
    else:
        subject = (action.url or "").partition("?")[0] or action.title
    return redact(subject[:MAX_TEXT])


def decided_by(request: v1.RequestPermission, source: str, refused: str | None) -> dict[str, object] | None:
    """Return the `_meta` of an answer: who decided, and why it was refused if that was no person. None for agents that are not ours."""
    if not isinstance((request.meta or {}).get("antiphon"), dict):
        return None
    return {"antiphon": {"decidedBy": source, **({} if refused is None else {"refused": redact(refused[:MAX_TEXT])})}}
