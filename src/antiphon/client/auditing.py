"""What of an action goes into the audit: enough to recognise it, without what looks like a secret."""

import re
import shlex
from typing import Final

from antiphon.policy import Action
from antiphon.protocol import v1
from antiphon.store.audit import MAX_TEXT

__all__ = ["decided_by", "redacted", "subject_of"]

_NAME: Final = r"[\w.-]{0,40}(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|credential|authorization|cookie|signature|(?:^|[_-])(?:pass|passin|pwd|auth|sig|pw))[\w.-]{0,40}"

_SECRETS: Final = (
    # --password hunter2, --api-key=…, TOKEN=…, "password": "…", Authorization: Bearer …
    (re.compile(rf"(?i)(--?{_NAME}[ \t=]+[\"']?)[^\s\"']+"), r"\1…"),
    (re.compile(rf"(?i)({_NAME}[\"']?[ \t]*[=:][ \t]*[\"']?(?:(?:bearer|basic|token)[ \t]+)?)[^\s\"'&;|]+"), r"\1…"),
    (re.compile(r"(?i)\b((?:bearer|basic)[ \t]+)[\w.~+/=-]{6,}"), r"\1…"),
    (re.compile(r"(://)[^/\s@]{1,200}@"), r"\1…@"),  # user:password@host
    (re.compile(r"(\s(?:-u|--user)[ =]?[\"']?[^\s:\"']+:)[^\s\"']+"), r"\1…"),  # curl -u user:password
    (re.compile(r"(?i)(\b(?:\w*_)?(?:pass|pwd|pw|auth|sig)=[\"']?)[^\s\"'&;|]+"), r"\1…"),  # DB_PASS=…, ?sig=…
    (re.compile(r"(\b(?:mysql|mysqldump|sshpass|docker login)\b[^|;&]*?\s-p ?)[^\s-][^\s]*"), r"\1…"),
    (re.compile(r"(\beyJ)[\w.-]{8,}"), r"\1…"),  # a JWT
    (re.compile(r"\b(sk-|gh[opsur]_|github_pat_|glpat-|xox[abpr]-|AKIA|AIza|hf_|npm_)[\w-]{8,}"), r"\1…"),
)


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
    return redacted(subject)


def redacted(text: str) -> str:
    """The text with what looks like a secret left out. A guess, and made on the safe side: too much may go."""
    text = text[:MAX_TEXT]
    for pattern, instead in _SECRETS:
        text = pattern.sub(instead, text)
    return text


def decided_by(request: v1.RequestPermission, source: str, refused: str | None) -> dict[str, object] | None:
    """Return the `_meta` of an answer: who decided, and why it was refused if that was no person. None for agents that are not ours."""
    if not isinstance((request.meta or {}).get("antiphon"), dict):
        return None
    return {"antiphon": {"decidedBy": source, **({} if refused is None else {"refused": redacted(refused)})}}
