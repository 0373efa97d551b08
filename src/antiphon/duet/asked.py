"""What the user is asked where the policy leaves something open, and what their answer means. Pure.

Rule 1: an "always" of an engine's own is not offered: it would take the decision away from the policy, and hold for that engine alone.
Rule 2: in its place stand ours, each with the rule that would be remembered, word by word. Where there is no such rule, or it would change
nothing, there is none.
Rule 3: what else the engine offers stays as it is and where it is.
Rule 4: who asks is said, and why, if a rule or a doubt is the reason.
Rule 5: the ids of our options are ours. What an engine offers under one of them is not shown, since its choice would be taken for ours.
Rule 6: an engine may say once what a call is about, and later ask about it with no more than its id. It is judged by both.
"""

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never

import msgspec

from antiphon.agent.permission import Permission
from antiphon.permission.gate import DOUBT, USER, Choice
from antiphon.policy import Verdict
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.permission.gate import Question
    from antiphon.policy import Rule
    from antiphon.store.decisions import Scope

__all__ = ["Known", "Passing", "answerable", "choice_of", "question_about", "shown_to_user", "with_known"]

Passing: TypeAlias = v1.ReadTextFile | v1.WriteTextFile | v1.CreateTerminal
"""What an engine does through us instead of asking."""

Known: TypeAlias = v1.ToolCall | v1.ToolCallPatch
"""What was told of a call before."""

MAX_NAME: Final = 160
"""Longest name of an option, in characters. Rules that do not fit are listed above the options instead."""

_Kind = v1.PermissionOptionKind
_ONCE: Final = v1.PermissionOption("allow", "Allow once", _Kind.ALLOW_ONCE)
_REJECT: Final = v1.PermissionOption("reject", "Reject", _Kind.REJECT_ONCE)
_ABOUT: Final = {
    "kind": "tool_kind", "title": "title", "name": "name", "content": "content", "locations": "locations", "raw_input": "input",
}  # fmt: skip
"""What of a call tells what it does, each with the other name that it may have."""

_SCOPES: "Final[dict[str, tuple[Scope, str]]]" = {
    "antiphon_always_session": ("session", "in this session"),
    "antiphon_always_project": ("project", "in this project"),
}
"""The ids of our own options."""


def answerable(request: v1.RequestPermission) -> v1.RequestPermission:
    """The question with what it may be answered with: once, one way or the other. What can only be said for always stays."""
    theirs = [option for option in request.options if option.option_id not in _SCOPES]
    kinds = {option.kind for option in theirs if option.kind.known}
    dropped = {_Kind.ALLOW_ALWAYS} if _Kind.ALLOW_ONCE in kinds else set[_Kind]()
    dropped |= {_Kind.REJECT_ALWAYS} if _Kind.REJECT_ONCE in kinds else set()
    kept = [option for option in theirs if not (option.kind.known and option.kind in dropped)]
    return msgspec.structs.replace(request, options=kept)


def with_known(request: v1.RequestPermission, known: Known | None) -> v1.RequestPermission:
    """The question with what was told of the call before, where it says nothing of that itself."""
    if known is None:
        return request
    call = request.tool_call
    told: dict[str, Any] = {}
    for name, also in _ABOUT.items():
        if not _said(call, name) and not _said(call, also):
            told |= {each: getattr(known, each) for each in (name, also) if _said(known, each)}
    return msgspec.structs.replace(request, tool_call=msgspec.structs.replace(call, **told)) if told else request


def _said(call: Known, name: str) -> bool:
    value = getattr(call, name)
    return value is not None and value is not v1.UNSET


def question_about(request: Passing, number: int, now: str | None) -> v1.RequestPermission:
    """The question that an engine did not ask before it reads, writes or runs something. `now` is what a file has that is to be written."""
    match request:
        case v1.WriteTextFile(path=path, content=content):
            call = v1.ToolCallPatch(
                f"admit-{number}", kind=v1.ToolKind.EDIT, title=f"Write {path}", name="Write", raw_input={"path": path},
                content=[v1.Diff(path, content, now)], locations=[v1.ToolLocation(path)], status=v1.ToolStatus.PENDING,
            )  # fmt: skip
        case v1.ReadTextFile(path=path):
            call = v1.ToolCallPatch(
                f"admit-{number}", kind=v1.ToolKind.READ, title=f"Read {path}", name="Read", raw_input={"path": path},
                locations=[v1.ToolLocation(path)], status=v1.ToolStatus.PENDING,
            )  # fmt: skip
        case v1.CreateTerminal():
            line = shlex.join([request.command, *request.args]) if request.args else request.command
            call = v1.ToolCallPatch(
                f"admit-{number}", kind=v1.ToolKind.EXECUTE, title=line.partition("\n")[0], name="Bash",
                raw_input={"command": line, **({"cwd": request.cwd} if request.cwd else {})},
                content=[_text(f"```sh\n{line}\n```")] if "```" not in line else [], status=v1.ToolStatus.PENDING,
            )  # fmt: skip
        case _:
            assert_never(request)
    return v1.RequestPermission(request.session_id, call, [_ONCE, _REJECT])


def shown_to_user(
    request: v1.RequestPermission, question: "Question", who: str, engines_own: Sequence[v1.PermissionOption]
) -> v1.RequestPermission:
    """The question as the user gets it. `engines_own` are all the options that the engine had, so that ours stand where its own stood."""
    rules = _to_remember(request, question)
    ours, listed = _always(rules)
    notes = [*_notes(request.tool_call, who, question), *([listed] if listed else [])]
    call = msgspec.structs.replace(
        request.tool_call, content=[*(request.tool_call.content or ()), _text("\n\n".join(notes))]
    )
    options = list(request.options)
    at = _where(engines_own, options)
    meta = {**(request.meta or {}), "antiphon": {"askedBy": who}}  # a client of ours says then who decided
    return msgspec.structs.replace(request, tool_call=call, options=[*options[:at], *ours, *options[at:]], meta=meta)


def choice_of(shown: v1.RequestPermission, result: v1.PermissionResult) -> Choice:
    """What was decided at the client, and by whom. Nothing that is not understood is ever an approval."""
    option = Permission(result.outcome, shown.options).option
    by = _decided_by(result)
    if option is None:
        return Choice(Verdict.DENY, by=by)
    if option.option_id in _SCOPES and option.kind == _Kind.ALLOW_ALWAYS:
        return Choice(Verdict.ALLOW, _SCOPES[option.option_id][0], by=by)
    # An option of a kind from tomorrow may be anything; it is the user who has chosen it.
    denies = option.kind.known and option.kind in (_Kind.REJECT_ONCE, _Kind.REJECT_ALWAYS)
    return Choice(Verdict.DENY if denies else Verdict.ALLOW, option_id=option.option_id, by=by)


def _decided_by(result: v1.PermissionResult) -> str:
    """Return who decided, for the audit: a client of ours says it, of any other we know only that it answered."""
    ours = (result.meta or {}).get("antiphon")
    told = ours.get("decidedBy") if isinstance(ours, dict) else None
    if not isinstance(told, str) or not told.isprintable() or len(told) > MAX_NAME:
        return "client"
    return USER if told == USER else f"client: {told}"


def _to_remember(request: v1.RequestPermission, question: "Question") -> "Sequence[Rule]":
    """The rules that an "always" would remember. A rule that asks, or may deny, goes on to do so; and in doubt nothing remembered counts."""
    once = any(option.kind.known and option.kind == _Kind.ALLOW_ONCE for option in request.options)
    plain = all(rule.text.isprintable() and "`" not in rule.text for rule in question.always)
    decided = question.ruling.rule is not None or question.ruling.source == DOUBT
    return question.always if once and plain and not decided else ()


def _always(rules: "Sequence[Rule]") -> tuple[list[v1.PermissionOption], str]:
    """Our options, and what has to be said about them beside their names."""
    if not rules:
        return [], ""
    what = " and ".join(f"`{rule}`" for rule in rules)
    listed = ""
    if len(what) > MAX_NAME:
        listed = "Always would allow:\n" + "\n".join(f"- `{rule}`" for rule in rules)
        what = "what is listed above"
    options = [
        v1.PermissionOption(id, f"Always allow {what} {where}", _Kind.ALLOW_ALWAYS)
        for id, (_, where) in _SCOPES.items()
    ]
    return options, listed


def _where(engines_own: Sequence[v1.PermissionOption], kept: Sequence[v1.PermissionOption]) -> int:
    """The place of ours among those that are kept: where the engine's own stood, else behind the one that allows it once."""
    before = 0
    for option in engines_own:
        if option.kind.known and option.kind == _Kind.ALLOW_ALWAYS and option not in kept:
            return before
        before += option in kept
    once = [at for at, option in enumerate(kept) if option.kind.known and option.kind == _Kind.ALLOW_ONCE]
    return once[0] + 1 if once else len(kept)


def _notes(call: v1.ToolCallPatch, who: str, question: "Question") -> Iterator[str]:
    theirs = (call.meta or {}).get("claudeCode")
    part = theirs.get("agentId") if isinstance(theirs, dict) else None
    told = "\n".join(
        item.content.text
        for item in call.content or ()
        if isinstance(item, v1.ContentItem) and isinstance(item.content, v1.TextBlock)
    )
    if isinstance(part, str) and part and part.isprintable() and part not in told:
        yield f"A sub-agent of {who} asks (`{part}`)."
    else:
        yield f"{who} asks."
    if question.ruling.rule is not None or question.ruling.source == DOUBT:
        yield question.ruling.why


def _text(markdown: str) -> v1.ContentItem:
    return v1.ContentItem(v1.TextBlock(markdown))
