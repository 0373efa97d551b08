"""From a request of the app server to its response. Whatever goes wrong on the way, nothing is allowed by it."""

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.engines.codex import wire
from antiphon.engines.codex.approvals.options import (
    NEW,
    OLD,
    ONCE,
    REJECT,
    SESSION,
    STOP,
    ApprovalOption,
    DecisionForms,
    as_json,
    decided,
    explained,
    offers_for,
    offers_of_old,
)
from antiphon.engines.codex.modes import is_held
from antiphon.engines.codex.translate.commands import command_line, shell_line
from antiphon.engines.labels import one_line, prose, sentence
from antiphon.engines.labels import shown_path as named
from antiphon.engines.project import action_of
from antiphon.engines.questions import (
    CANCEL,
    DECLINE,
    AnswerChoice,
    QuestionCancelled,
    RefusedByPolicy,
    Unanswered,
    UserAnswer,
    UserQuestion,
    as_note,
    ask_by_form,
    ask_by_server_form,
    ask_choice,
    ask_choice_alone,
    ask_in_turn,
    ask_on_server_page,
    is_task_cancelled,
    text_item,
    why_not_asked,
)
from antiphon.errors import AcpError, NotSupported, TurnOver
from antiphon.policy import PolicyMode, Rules, Verdict, decide
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject
from antiphon.text import exact, fenced

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from antiphon.agent.questions import UserQuestions
    from antiphon.agent.session import AgentSession
    from antiphon.engines.codex.settings import CodexSettings

__all__ = [
    "NOTHING",
    "NO_ANSWERS",
    "ApprovalAsker",
    "ask_about_changes",
    "ask_about_command",
    "ask_for_permissions",
    "ask_for_server",
    "ask_questions",
    "changed_files",
    "decided_by_mode",
    "described",
]

# Permission to do more than the sandbox allows, in this turn or in all of the session. What is granted is what was shown.

NOTHING: Final[JsonObject] = {"permissions": {}, "scope": "turn"}

_Kind = v1.PermissionOptionKind
_TURN: Final = v1.PermissionOption("allow_turn", "Allow in this turn", _Kind.ALLOW_ONCE)
_SESSION: Final = v1.PermissionOption("allow_session", "Allow in this session", _Kind.ALLOW_ALWAYS)
_REJECT: Final = v1.PermissionOption("reject", "Reject", _Kind.REJECT_ONCE)

_ACCESS: Final = {"read": "Read", "write": "Read and write", "deny": "Keep out of"}
_PLACES: Final = {
    "root": "all files of this machine",
    "minimal": "the files that programs need to run",
    "project_roots": "the project",
    "tmpdir": "the directory for temporary files",
    "slash_tmp": "`/tmp`",
}


async def ask_for_permissions(
    request: wire.PermissionsApproval, user: "UserQuestions", call: v1.ToolCallPatch | None
) -> JsonObject:
    """Ask for all permissions at once. The server has no item for this, so the request is a call of its own."""
    requested = described(request.permissions)
    if not requested:
        return dict(NOTHING)
    base = v1.ToolCallPatch(
        request.item_id,
        title="Do more than the sandbox allows",
        kind=v1.ToolKind.OTHER,
        content=[text_item("\n".join(f"- {each}" for each in requested))],
        raw_input={"permissions": request.permissions},
    )
    chosen = await ask_choice_alone(user, explained(base, [request.reason]), [_TURN, _SESSION, _REJECT])
    if chosen is _TURN:
        return {"permissions": request.permissions, "scope": "turn"}
    if chosen is _SESSION:
        return {"permissions": request.permissions, "scope": "session"}
    return dict(NOTHING)


def described(permissions: Mapping[str, object]) -> list[str]:
    """Return each permission that is requested, in a line. What is not known is shown as JSON."""
    found, rest = list[str](), JsonObject()
    for name, value in permissions.items():
        if value is None or value == {}:
            continue
        if name == "network" and isinstance(value, dict) and set(value) == {"enabled"}:
            found.extend(["Use the network"] if value["enabled"] else [])
        elif name == "fileSystem" and isinstance(value, dict):
            found.extend(_files(value))
        else:
            rest[name] = value
    return [*found, *([_as_it_is(rest)] if rest else [])]


def _files(requested: JsonObject) -> Iterator[str]:
    lines = list[str]()
    for name in ("read", "write"):  # the older form, which newer servers send along
        lines.extend(_line(name, f"`{exact(path)}`") for path in requested.get(name) or () if isinstance(path, str))
    for entry in requested.get("entries") or ():
        lines.append(_entry(entry))
    yield from dict.fromkeys(lines)
    known = ("read", "write", "entries", "globScanMaxDepth")
    rest = {name: value for name, value in requested.items() if name not in known and value is not None}
    if rest:
        yield _as_it_is(rest)


def _entry(entry: object) -> str:
    access, path = (entry.get("access"), entry.get("path")) if isinstance(entry, dict) else (None, None)
    if access not in _ACCESS or not isinstance(path, dict):
        return _as_it_is(entry)
    match path:
        case {"type": "path", "path": str(name)}:
            return _line(access, f"`{exact(name)}`")
        case {"type": "glob_pattern", "pattern": str(pattern)}:
            return _line(access, f"`{exact(pattern)}`")
        case {"type": "special", "value": {"kind": str(kind), **more}} if kind in _PLACES:
            inside = more.get("subpath")
            return _line(access, f"`{inside}` in {_PLACES[kind]}" if inside else _PLACES[kind])
        case _:
            return _as_it_is(entry)


def _line(access: str, what: str) -> str:
    return f"{_ACCESS[access]} {what}"


def _as_it_is(value: object) -> str:
    return "\n" + as_json(value)


# Questions of the model to the user. An answer is a list of texts by the question's id.

NO_ANSWERS: Final[JsonObject] = {"answers": {}}

NOTE: Final = "user_note: "
"""What Codex puts before the text that a user adds to a choice."""


async def ask_questions(
    request: wire.UserInputRequest, user: "UserQuestions", call: v1.ToolCallPatch | None
) -> JsonObject:
    """Ask all of them. The model goes on without the answers that it does not get."""
    questions = [_question(each) for each in request.questions]
    if not questions:
        return dict(NO_ANSWERS)
    # The server may set a time, after which it expects an empty answer.
    limit = request.auto_resolution_ms / 1000 if request.auto_resolution_ms else None
    try:
        async with asyncio.timeout(limit):
            if user.session.client.shows_forms:
                answers = await ask_by_form(user, questions, "Codex", None)
            else:
                answers = await _without_forms(request, user, questions)
    except TimeoutError:
        return dict(NO_ANSWERS)
    if isinstance(answers, Unanswered):
        return dict(NO_ANSWERS)
    texts = {each.id: _texts(answer) for each, answer in zip(request.questions, answers, strict=True)}
    return {"answers": {id: {"answers": found} for id, found in texts.items() if found}}


def _question(request: wire.UserInputQuestion) -> UserQuestion:
    choices = [AnswerChoice(each.label, each.description) for each in request.options or ()]
    return UserQuestion(
        request.question, choices, request.header or None, other=request.is_other, secret=request.is_secret
    )


async def _without_forms(
    request: wire.UserInputRequest, user: "UserQuestions", questions: Sequence[UserQuestion]
) -> list[UserAnswer] | Unanswered:
    """The server has no item for its questions, so they are a call of their own."""
    if not any(each.choices for each in questions):
        raise NotSupported("the client shows no forms, and these questions have no choices")
    id, title = request.item_id, "Codex has a question"
    await user.update(v1.ToolCall(id, title))
    status = v1.ToolStatus.FAILED
    try:
        answers = await ask_in_turn(user, questions, v1.ToolCallPatch(id, title=title))
        if not isinstance(answers, Unanswered):
            status = v1.ToolStatus.COMPLETED
        return answers
    finally:
        with suppress(AcpError):  # the reason why there is no answer is reported already
            await user.session.update(v1.ToolCallUpdate(id, status=status))


def _texts(answer: UserAnswer) -> list[str]:
    own = [] if answer.own is None else [f"{NOTE}{answer.own}" if answer.picked else answer.own]
    return [*answer.picked, *own]


# An elicitation of an MCP server, or a permission request of Codex for one of its tools: the same method, distinguished by `_meta`.

_ALLOW: Final = v1.PermissionOption("allow", "Allow once", _Kind.ALLOW_ONCE)
_TOOL_IN_SESSION: Final = v1.PermissionOption(
    "allow_session", "Always allow this tool in this session", _Kind.ALLOW_ALWAYS
)
_ALWAYS: Final = v1.PermissionOption("allow_always_tool", "Always allow this tool, in all projects", _Kind.ALLOW_ALWAYS)
_REJECT_TOOL: Final = v1.PermissionOption("reject", "Reject", _Kind.REJECT_ONCE)
_YES: Final = v1.PermissionOption("accept", "Yes", _Kind.ALLOW_ONCE)
_NO: Final = v1.PermissionOption("decline", "No", _Kind.REJECT_ONCE)

_PERSIST: Final = {_TOOL_IN_SESSION.option_id: "session", _ALWAYS.option_id: "always"}
_FORMS: Final = ("form", "openai/form", "openaiForm", None)


async def ask_for_server(
    request: wire.McpElicitation, user: "UserQuestions", call: v1.ToolCallPatch | None
) -> JsonObject:
    """Ask the user, with a form, a page or permission options."""
    if request.mode == "url":
        # Codex does not forward when the user is done there, so the client gets no notification either.
        body, _ = await ask_on_server_page(user, _message(request), request.url)
        return body
    if request.mode not in _FORMS:
        raise NotSupported(f"a question in the way of {as_note(request.mode)} cannot be shown")
    if request.is_for_tool:
        return await _ask_about_tool(request, user, call)
    if not request.fields and not user.session.client.shows_forms:
        return await _yes_or_no(request, user)
    return await ask_by_server_form(user, _message(request), request.requested_schema)


def _message(request: wire.McpElicitation) -> str:
    """Return the message after the name of the server, because the text is the server's."""
    return prose(f"{request.server_name or 'An MCP server'} asks: {request.message}")


async def _ask_about_tool(
    request: wire.McpElicitation, user: "UserQuestions", call: v1.ToolCallPatch | None
) -> JsonObject:
    options = [_ALLOW, *_lasting(request, user), _REJECT_TOOL]
    described = (request.meta or {}).get("tool_description")
    notes = [request.message, described if isinstance(described, str) else None]
    if call is None:
        chosen = await ask_choice_alone(user, explained(_tool_call(request, user), notes), options)
    else:
        chosen = await ask_choice(user, explained(call, notes), options)
    if chosen is None or chosen is _REJECT_TOOL:
        return dict(DECLINE)
    persist = _PERSIST.get(chosen.option_id)
    return {"action": "accept", "content": None, "_meta": None if persist is None else {"persist": persist}}


def _lasting(request: wire.McpElicitation, user: "UserQuestions") -> Iterator[v1.PermissionOption]:
    offered = (request.meta or {}).get("persist")
    offered = offered if isinstance(offered, list) else [offered]
    if "session" in offered:
        yield _TOOL_IN_SESSION
    # Codex stores it with the server in its own settings; a server of the client is not there.
    ours = any(getattr(server, "name", None) == request.server_name for server in user.session.mcp_servers)
    if "always" in offered and not ours:
        yield _ALWAYS


def _tool_call(request: wire.McpElicitation, user: "UserQuestions") -> v1.ToolCallPatch:
    """Return the request as a call of its own. Rules of a client see neither name nor arguments, so that no rule for another tool allows it."""
    arguments = (request.meta or {}).get("tool_params")
    return v1.ToolCallPatch(
        user.next_id("question"),
        title=sentence(request.message) or f"Use a tool of {request.server_name}",
        kind=v1.ToolKind.OTHER,
        content=[text_item(as_json(arguments))] if arguments else [],
        raw_input={},
    )


async def _yes_or_no(request: wire.McpElicitation, user: "UserQuestions") -> JsonObject:
    """A form with nothing to fill in, for clients without forms."""
    message = _message(request)
    call = v1.ToolCallPatch(
        user.next_id("question"), title=sentence(message), kind=v1.ToolKind.OTHER, content=[text_item(as_note(message))]
    )
    chosen = await ask_choice_alone(user, call, [_YES, _NO], question=True)
    return {"action": "accept", "content": {}} if chosen is _YES else dict(DECLINE)


# Permission for changes to files. The changes themselves are in the call.


async def ask_about_changes(
    request: wire.FileApproval | wire.ApplyPatchApproval, user: "UserQuestions", call: v1.ToolCallPatch | None
) -> JsonObject:
    """Ask about changes to files, in either protocol."""
    argv = NEW if isinstance(request, wire.FileApproval) else OLD
    base = _change_call(request) if call is None else call
    paths = list(dict.fromkeys(_paths(base)))
    offers = [ApprovalOption(ONCE, argv.once), ApprovalOption(REJECT, argv.decline), ApprovalOption(STOP, argv.stop)]
    if paths:
        always = f"Always allow {_which(request, paths, user.session.cwd)} in this session"
        option = v1.PermissionOption(SESSION, always, v1.PermissionOptionKind.ALLOW_ALWAYS)
        offers.insert(1, ApprovalOption(option, argv.session))
    unknown = None if paths else "Codex does not report which files would be changed, and how."
    root = (
        f"It asks to write anywhere in `{exact(request.grant_root)}` for the rest of the session."
        if request.grant_root
        else None
    )
    ask = ask_choice_alone if call is None else ask_choice
    chosen = await ask(user, explained(base, [request.reason], [unknown, root]), [offer.option for offer in offers])
    return decided(offers, chosen, argv)


def _which(request: wire.FileApproval | wire.ApplyPatchApproval, paths: list[str], cwd: str) -> str:
    """Return what is allowed for the session: the files, and not the directory that they are in."""
    if request.grant_root:
        return f"changes in `{one_line(request.grant_root)}`"
    if len(paths) == 1 and paths[0].isprintable() and "`" not in paths[0]:
        return f"changes to `{named(paths[0], cwd)}`"
    return f"changes to these {len(paths)} files" if len(paths) > 1 else "changes to this file"


def _paths(call: v1.ToolCallPatch) -> Iterable[str]:
    yield from (each.path for each in call.content or () if isinstance(each, v1.Diff))
    yield from (place.path for place in call.locations or ())


def _change_call(request: wire.FileApproval | wire.ApplyPatchApproval) -> v1.ToolCallPatch:
    """Return the request as a call of its own: the changes were not reported."""
    id = request.item_id if isinstance(request, wire.FileApproval) else request.call_id
    return v1.ToolCallPatch(id, title="Change files", kind=v1.ToolKind.EDIT, name="Edit", raw_input={})


# Permission for a command, for input to a running one, or for a host that it wants to reach.


async def ask_about_command(
    request: wire.CommandApproval | wire.ExecApproval, user: "UserQuestions", call: v1.ToolCallPatch | None
) -> JsonObject:
    """Ask about a command, in either protocol."""
    if isinstance(request, wire.ExecApproval):
        offers, argv, alone = offers_of_old(), OLD, call is None
    else:
        offers, argv = offers_for(request), NEW
        # The request is about a part of the call, which goes on whatever the answer is.
        alone = call is None or request.approval_id not in (None, request.item_id)
    base = _command_call(request, user) if alone or call is None else call
    ours = [*_facts(request, user), *(offer.note for offer in offers)]
    chosen = await (ask_choice_alone if alone else ask_choice)(
        user, explained(base, [request.reason], ours), [offer.option for offer in offers]
    )
    return decided(offers, chosen, argv)


def _command_call(request: wire.CommandApproval | wire.ExecApproval, user: "UserQuestions") -> v1.ToolCallPatch:
    """Return the request as a call of its own."""
    if isinstance(request, wire.ExecApproval):
        id, line, title = request.approval_id or request.call_id, shell_line(request.command), None
    else:
        id, line = request.approval_id or request.item_id, command_line(request.command or "")
        title = None if request.kind == "command" else "Send input to a running command"
        if request.network_approval_context is not None:
            title = one_line(f"Network access to {request.network_approval_context.host}")
    return v1.ToolCallPatch(
        id,
        title=title or one_line(line) or "Run a command",
        kind=v1.ToolKind.EXECUTE,
        name="Bash",
        content=[text_item(fenced(exact(line), "sh"))] if line else [],
        # Never what the call itself runs: a client's rules would take it for that.
        raw_input={"command": line, "cwd": request.cwd or user.session.cwd},
    )


def _facts(request: wire.CommandApproval | wire.ExecApproval, user: "UserQuestions") -> Iterator[str]:
    if request.cwd is not None and request.cwd != user.session.cwd:
        yield f"It runs in `{exact(request.cwd)}`."
    if isinstance(request, wire.ExecApproval):
        return
    network = request.network_approval_context
    if network is not None:
        yield f"It wants to reach `{exact(network.host)}`" + (f" ({network.protocol})." if network.protocol else ".")
    more = described(request.additional_permissions or {})
    if more:
        yield "It wants more than the sandbox allows:\n" + "\n".join(f"- {each}" for each in more)


class _ApprovalMethod(msgspec.Struct, frozen=True):
    """How a request method is handled, and the response if the user gives no answer."""

    params: type[Any]
    ask: "Callable[[Any, UserQuestions, v1.ToolCallPatch | None], Awaitable[JsonObject]]"
    declined: JsonObject
    """The response if the user could not be asked: the turn goes on without."""
    cancelled: JsonObject
    """The response if the turn is being cancelled."""


_METHODS: Final = {
    "item/commandExecution/requestApproval": _ApprovalMethod(
        wire.CommandApproval, ask_about_command, NEW.declined, NEW.stopped
    ),
    "execCommandApproval": _ApprovalMethod(wire.ExecApproval, ask_about_command, OLD.declined, OLD.stopped),
    "item/fileChange/requestApproval": _ApprovalMethod(wire.FileApproval, ask_about_changes, NEW.declined, NEW.stopped),
    "applyPatchApproval": _ApprovalMethod(wire.ApplyPatchApproval, ask_about_changes, OLD.declined, OLD.stopped),
    "item/permissions/requestApproval": _ApprovalMethod(
        wire.PermissionsApproval, ask_for_permissions, NOTHING, NOTHING
    ),
    "item/tool/requestUserInput": _ApprovalMethod(wire.UserInputRequest, ask_questions, NO_ANSWERS, NO_ANSWERS),
    "mcpServer/elicitation/request": _ApprovalMethod(wire.McpElicitation, ask_for_server, DECLINE, CANCEL),
}


class ApprovalAsker:
    """Handles the requests of one session. Several may be open at once; cancelling one cancels it at the client."""

    def __init__(self, session: "AgentSession") -> None:
        self._session = session

    async def answer(
        self,
        method: str,
        params: "wire.Request | wire.UnreadParams",
        user: "UserQuestions",
        call: v1.ToolCallPatch | None = None,
    ) -> JsonObject | None:
        """Return the response; None for a method that no user is asked about. `call` is the call as the client knows it."""
        method_of = _METHODS.get(method)
        if method_of is None:
            return None
        if not isinstance(params, method_of.params):
            await self._warn("the question could not be read")
            return dict(method_of.declined)
        try:
            return await method_of.ask(params, user, call)
        except asyncio.CancelledError:
            if is_task_cancelled():
                raise
            return dict(method_of.cancelled)  # the turn has ended, and its requests with it
        except (QuestionCancelled, TurnOver):
            return dict(method_of.cancelled)
        except RefusedByPolicy:  # by a rule or a mode that the user has set: no notice needed
            return dict(method_of.declined)
        except AcpError as error:
            await self._warn(why_not_asked(error))
            return dict(method_of.declined)

    async def _warn(self, reason: str) -> None:
        """Show the reason to the user: a response to the server has no field for it."""
        title = "Codex wanted to ask something and could not, so it was declined"
        with suppress(AcpError):  # a client that is gone
            await self._session.notice(title, reason, v1.NoticeSeverity.WARNING)


# Requests that a mode decides, in the modes in which the user is not asked about edits.
# In these modes Codex works in a read-only sandbox and asks before it writes: a patch by itself, a command if the model asks to run it
# outside of the sandbox. The policy then decides as it does for every engine in `acceptEdits`: work on files of the workspace is accepted,
# but for files that name programs to run; the user is asked about those, and about every other command. In `dontAsk` it is declined.


def decided_by_mode(
    session: "AgentSession",
    choosing: "CodexSettings",
    params: "wire.Request | wire.UnreadParams",
    call: "v1.ToolCallPatch | None",
) -> "JsonObject | None":
    """Return the answer to a request of Codex that the mode decides; None if the user is asked, or the guard of a joint session."""
    if not choosing.accepts_edits:
        return None
    guarded = session.host.rules is not None
    if guarded and (not choosing.never_asks or is_held(session.host.rules)):
        return None  # the guard knows the mode and the remembered decisions too
    argv = _forms_for(params)
    if argv is not None and call is not None and _is_plain(params) and _accepted(session, choosing, call):
        return {"decision": argv.once}
    if guarded or not choosing.never_asks:
        return None
    if argv is not None:
        return argv.declined
    if isinstance(params, wire.PermissionsApproval):
        return dict(NOTHING)
    return dict(DECLINE) if isinstance(params, wire.McpElicitation) else None


def changed_files(params: "wire.Request | wire.UnreadParams", call: "v1.ToolCallPatch") -> Iterable[str]:
    """Return the files that a request is about, if it is about changes to files."""
    if not isinstance(params, wire.FileApproval | wire.ApplyPatchApproval) or not isinstance(call.raw_input, dict):
        return []
    named = [call.raw_input.get("path"), *(call.raw_input.get("paths") or ())]
    return [path for path in named if isinstance(path, str) and os.path.isabs(path)]


def _forms_for(params: "wire.Request | wire.UnreadParams") -> DecisionForms | None:
    """Return the decision forms for a command or a change; None for any other request."""
    if isinstance(params, wire.CommandApproval | wire.FileApproval):
        return NEW
    return OLD if isinstance(params, wire.ExecApproval | wire.ApplyPatchApproval) else None


def _is_plain(params: "wire.Request | wire.UnreadParams") -> bool:
    """Whether it is about the call as it is shown: a command, or changes to these files, and no more than that."""
    if isinstance(params, wire.CommandApproval):
        own_call = params.approval_id in (None, params.item_id)
        more = params.network_approval_context is not None or params.additional_permissions
        return params.kind == "command" and bool(params.command) and own_call and not more
    return isinstance(params, wire.ExecApproval) or not getattr(params, "grant_root", None)


def _accepted(session: "AgentSession", choosing: "CodexSettings", call: "v1.ToolCallPatch") -> bool:
    rules = session.host.rules or Rules()
    action = action_of(session, call, also=choosing.also_writable)
    ruling = decide(action, Rules(deny=rules.deny, ask=rules.ask), PolicyMode.ACCEPT_EDITS)
    return ruling.verdict is Verdict.ALLOW
