"""What Claude Code asks the user: permission for a tool, approval of a plan, questions of the model, forms of MCP servers.

ClaudeQuestions   the requests of the CLI in one session, each with its response
ClaudeAsker       asks the user about one request, and makes the response for the CLI
"""

import asyncio
import json
import os.path
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.engines.bounded import trim
from antiphon.engines.claude import wire
from antiphon.engines.claude.grants import Grant, grants, keep_rules
from antiphon.engines.claude.rules import HOOK, before_tool
from antiphon.engines.labels import prose
from antiphon.engines.questions import (
    CANCEL,
    DECLINE,
    MAX_NOTE,
    AnswerChoice,
    CliQuestions,
    QuestionCancelled,
    RefusedByPolicy,
    Unanswered,
    UserAnswer,
    UserQuestion,
    as_note,
    ask_by_form,
    ask_by_server_form,
    ask_choice,
    ask_for_text,
    ask_in_turn,
    ask_on_server_page,
    call_with,
    details_item,
    is_task_cancelled,
    text_item,
    why_not_asked,
)
from antiphon.errors import AcpError
from antiphon.protocol import v1
from antiphon.protocol.base import JsonObject
from antiphon.text import exact

if TYPE_CHECKING:
    from antiphon.agent.questions import PageVisit, UserQuestions
    from antiphon.agent.session import AgentSession
    from antiphon.engines.claude.translate.translator import ClaudeTranslator
    from antiphon.engines.events import UpdateSender

__all__ = ["ClaudeAsker", "ClaudeQuestions", "allow", "ask_about_plan", "ask_for_server", "ask_questions", "deny"]

# The responses to a permission request.


def allow(input: JsonObject, *permissions: JsonObject) -> JsonObject:
    """The tool may run. The input is always sent: 2.1.197 takes a response without it for a refusal."""
    body: JsonObject = {"behavior": "allow", "updatedInput": dict(input)}
    return {**body, "updatedPermissions": [dict(each) for each in permissions]} if permissions else body


def deny(message: str, *, interrupt: bool = False) -> JsonObject:
    """The tool may not run; the model reads the message. With `interrupt` the turn ends instead."""
    body: JsonObject = {"behavior": "deny", "message": message}
    return {**body, "interrupt": True} if interrupt else body


DECLINED: Final = (
    "The user declined to answer. Do not ask the same again: go on without an answer, or ask in your own words."
)
CLOSED: Final = "The user closed the questions without an answer. Wait for their next message."
UNREADABLE: Final = "There was no question in this that could be shown to the user."


class _Choice(msgspec.Struct, frozen=True):
    label: str
    description: str | None = None
    preview: str | None = None


class _Question(msgspec.Struct, frozen=True, rename="camel"):
    question: str
    options: list[_Choice]
    header: str | None = None
    multi_select: bool = False


class _Asked(msgspec.Struct, frozen=True):
    questions: list[_Question]


async def ask_questions(request: "wire.CanUseTool", user: "UserQuestions", call: v1.ToolCallPatch) -> JsonObject:
    """Ask the questions of the model. They are the input of a tool call, which gets the answers."""
    try:
        asked = msgspec.convert(request.input, _Asked).questions
    except msgspec.ValidationError:
        asked = []
    if not asked:
        return deny(UNREADABLE)
    questions = [_question(each) for each in asked]
    if user.session.client.shows_forms:
        answers = await ask_by_form(user, questions, "Claude", call.tool_call_id)
    else:
        answers = await ask_in_turn(user, questions, call)
    match answers:
        case Unanswered.DECLINED:
            return deny(DECLINED)
        case Unanswered.CLOSED:
            return deny(CLOSED)
        case _:
            return _answered(request, questions, answers)


def _question(asked: _Question) -> UserQuestion:
    choices = [_choice(each) for each in asked.options]
    return UserQuestion(asked.question, choices, asked.header, several=asked.multi_select)


def _choice(offered: _Choice) -> AnswerChoice:
    meta = None if offered.preview is None else {"claudeCode": {"preview": offered.preview}}
    return AnswerChoice(offered.label, offered.description, offered.preview, meta)


def _answered(
    request: "wire.CanUseTool", questions: Sequence[UserQuestion], answers: Sequence[UserAnswer]
) -> JsonObject:
    texts, notes = dict[str, str](), dict[str, dict[str, str]]()
    for question, answer in zip(questions, answers, strict=True):
        own = [answer.own] if answer.own is not None else []
        if question.several:
            found = [*answer.picked, *own]
        else:
            found = list(answer.picked or own)[:1]
            if answer.picked and own:
                notes[question.text] = {"notes": own[0]}
        if found:
            texts[question.text] = _joined(found) if question.several else found[0]
    return allow({**request.input, "answers": texts, **({"annotations": notes} if notes else {})})


def _joined(answers: Iterable[str]) -> str:
    """Join answers as the CLI does: one that holds the separator is quoted."""
    return ", ".join(json.dumps(each, ensure_ascii=False) if ", " in each or '"' in each else each for each in answers)


# A plan that is ready.

_Kind = v1.PermissionOptionKind
_ACCEPTING: Final = v1.PermissionOption("accept_edits", "Yes, and accept edits without asking", _Kind.ALLOW_ALWAYS)
_ASKING: Final = v1.PermissionOption("ask_for_edits", "Yes, and ask before each edit", _Kind.ALLOW_ONCE)
_STAYING: Final = v1.PermissionOption("keep_planning", "No, stay in plan mode", _Kind.REJECT_ONCE)
_CHANGING: Final = v1.PermissionOption("change_plan", "No, and explain what to change", _Kind.REJECT_ONCE)

_MODES: Final = {_ACCEPTING.option_id: "acceptEdits", _ASKING.option_id: "default"}

STAYS: Final = (
    "The user did not approve the plan and stays in plan mode. Nothing may be changed yet: "
    "ask what should be different, or improve the plan."
)


async def ask_about_plan(request: "wire.CanUseTool", user: "UserQuestions", call: v1.ToolCallPatch) -> JsonObject:
    """Show the plan, and ask whether and how to go on. The one place where an answer changes the mode."""
    options = [_ASKING, _STAYING] if request.repaired else [_ACCEPTING, _ASKING, _STAYING]
    if user.session.client.shows_forms:
        options.append(_CHANGING)
    plan = request.input.get("plan")
    content = (
        [text_item(plan)]
        if isinstance(plan, str) and plan.strip()
        else call.content or [text_item("There is no plan yet.")]
    )
    chosen = await ask_choice(user, call_with(call, content=content), options, question=True)
    if chosen is None:
        return deny(STAYS)
    if chosen.option_id in _MODES:
        return allow(request.input, _mode(_MODES[chosen.option_id]))
    if chosen is _CHANGING:
        text = await ask_for_text(user, "What should be different?", "Changes to the plan", call.tool_call_id)
        if text is not None:
            return deny(f"The user stays in plan mode and wants the plan changed first. They said:\n{text}")
    return deny(STAYS)


def _mode(mode: str) -> JsonObject:
    return {"type": "setMode", "mode": mode, "destination": "session"}


# Forms and pages of MCP servers.

MOST_PAGES: Final = 64
"""Pages that may still be completed. Servers need not report when the user is done."""


async def ask_for_server(
    request: "wire.ElicitationRequest", user: "UserQuestions", pages: "dict[str, PageVisit]"
) -> JsonObject:
    """Ask by a form or on a page. `pages` gets the page that the user agreed to open, by the server's id for it."""
    if request.mode != "url":
        return await ask_by_server_form(user, _message(request), request.requested_schema)
    body, visit = await ask_on_server_page(user, _message(request), request.url)
    if visit is not None and request.elicitation_id is not None:
        pages[request.elicitation_id] = visit
        trim(pages, MOST_PAGES)
    return body


def _message(request: "wire.ElicitationRequest") -> str:
    """Return the message with the name of the server first: the text is the server's own."""
    server = request.display_name or request.mcp_server_name or "An MCP server"
    text = (f"{server} asks: {request.message}", request.title, request.description)
    return prose("\n".join(part for part in text if part))


# Permission to run a tool.

REJECTED: Final = (
    "The user rejected this tool call: it did not run, and nothing was changed. "
    "Stop what you are doing, and wait for the user to say how to go on."
)
NOT_ALLOWED: Final = "The user did not allow this tool call: it did not run, and nothing was changed."
CANCELLED_TEXT: Final = "The user cancelled while this was being asked: it did not run, and nothing was changed."

_ALLOW: Final = v1.PermissionOption("allow", "Allow once", _Kind.ALLOW_ONCE)
_REJECT: Final = v1.PermissionOption("reject", "Reject", _Kind.REJECT_ONCE)
_REJECT_WITH_WORDS: Final = v1.PermissionOption("reject_with_message", "Reject and say why", _Kind.REJECT_ONCE)

_SPECIAL_TOOLS: Final = {"AskUserQuestion": ask_questions, "ExitPlanMode": ask_about_plan}

_NO_REASON: Final = "This command requires approval"
"""The reason that the CLI gives when it has none."""


class ClaudeAsker:
    """Asks the user about requests of one session. Several may be open at once; cancelling one cancels it at the client."""

    def __init__(self, session: "AgentSession") -> None:
        self._session = session
        self._pages: dict[str, PageVisit] = {}

    async def answer(self, request: "wire.CanUseTool", user: "UserQuestions", call: v1.ToolCallPatch) -> JsonObject:
        """Return the response to a permission request: the tool may run, or it may not and why."""
        ask = _SPECIAL_TOOLS.get(request.tool_name, self._ask)
        try:
            return await ask(request, user, _with_sub_agent(request, call))
        except asyncio.CancelledError:
            if is_task_cancelled():
                raise
            return deny(CANCELLED_TEXT, interrupt=True)  # the turn has ended, and its questions with it
        except QuestionCancelled:
            return deny(CANCELLED_TEXT, interrupt=True)
        except RefusedByPolicy as refused:
            return deny(f"This tool call is not allowed here: it did not run, and nothing was changed. {refused}")
        except AcpError as error:
            return deny(f"The user could not be asked, so this did not run: {why_not_asked(error)}")

    async def elicit(self, request: "wire.ElicitationRequest", user: "UserQuestions") -> JsonObject:
        """Return the response to a request of an MCP server to the user."""
        try:
            return await ask_for_server(request, user, self._pages)
        except asyncio.CancelledError:
            if is_task_cancelled():
                raise
            return dict(CANCEL)
        except AcpError:
            return dict(DECLINE)

    async def page_done(self, elicitation_id: str) -> None:
        """Complete a page: the server reports that the user is done there, and the client may stop waiting."""
        visit = self._pages.pop(elicitation_id, None)
        if visit is not None:
            await visit.complete()

    async def _ask(self, request: "wire.CanUseTool", user: "UserQuestions", call: v1.ToolCallPatch) -> JsonObject:
        session = self._session
        roots = (session.cwd, *session.directories)
        # The CLI reports real paths, whatever link led it there.
        lasting = grants(request, [*map(os.path.realpath, roots), *roots])
        allowing = [_ALLOW, *(grant.option for grant in lasting)]
        rejecting = [_REJECT, *([_REJECT_WITH_WORDS] if session.client.shows_forms else [])]
        # Clients preselect the first option.
        options = [*rejecting, *allowing] if request.default_to_no or request.repaired else [*allowing, *rejecting]
        chosen = await ask_choice(user, _explained(request, call, lasting), options)
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
            text = await ask_for_text(user, "What should Claude do instead?", "Your message", call.tool_call_id)
            if text is not None:
                return deny(f"The user rejected this tool call: it did not run. They said:\n{text}")
        return deny(REJECTED)


def _with_sub_agent(request: "wire.CanUseTool", call: v1.ToolCallPatch) -> v1.ToolCallPatch:
    """Return the call with the sub-agent that asks, if it is one, for clients that show it in their own way."""
    if request.agent_id is None:
        return call
    meta = dict(call.meta or {})
    ours = meta.get("claudeCode")
    meta["claudeCode"] = {**(ours if isinstance(ours, dict) else {}), "agentId": request.agent_id}
    return call_with(call, meta=meta)


def _explained(request: "wire.CanUseTool", call: v1.ToolCallPatch, lasting: list[Grant]) -> v1.ToolCallPatch:
    """Return the call with the details that the CLI sent."""
    text = list(_notes(request, call))
    text.extend(grant.note for grant in lasting if grant.note is not None)
    return call_with(call, content=[*(call.content or []), details_item("\n\n".join(text))]) if text else call


def _notes(request: "wire.CanUseTool", call: v1.ToolCallPatch) -> Iterator[str]:
    if request.agent_id is not None:
        yield f"A sub-agent asks (`{request.agent_id}`)."
    known = [call.title or "", *(place.path for place in call.locations or ()), *_texts(call)]
    reason = as_note(request.decision_reason)
    for note in (as_note(request.title), as_note(request.description), reason if reason != _NO_REASON else ""):
        if note and not any(note in each for each in known):
            known.append(note)
            yield note
    blocked = exact(request.blocked_path or "").strip()[:MAX_NOTE]
    if blocked and not any(blocked in each for each in known):
        yield f"It reaches for `{blocked}`."


def _texts(call: v1.ToolCallPatch) -> Iterator[str]:
    """Yield the texts that the call shows already."""
    for item in call.content or ():
        match item:
            case v1.ContentItem(content=v1.TextBlock(text=shown)):
                yield shown
            case _:
                pass


class ClaudeQuestions(CliQuestions[wire.ControlRequest]):
    """The control requests of the CLI in one session that are answered here."""

    def __init__(self, session: "AgentSession", updates: "UpdateSender", translator: "ClaudeTranslator") -> None:
        super().__init__(session, updates)
        self._asker = ClaudeAsker(session)
        self._translator = translator

    def _id_of(self, request: wire.ControlRequest) -> str:
        return request.request_id

    async def _result_of(self, request: wire.ControlRequest) -> JsonObject | None:
        match request.request:
            case wire.CanUseTool() as asked:
                result = await self._asker.answer(asked, self._user, self._translator.patch_of(asked))
                if result.get("behavior") == "allow" and asked.tool_use_id is not None:
                    await self._send_allowed(self._translator.allowed(asked.tool_use_id))
                return result
            case wire.ElicitationRequest() as asked_by_server:
                return await self._asker.elicit(asked_by_server, self._user)
            case wire.OtherControl(subtype=subtype, fields=fields) if subtype == HOOK:
                return before_tool(self._session, fields)
            case _:
                return None

    async def page_done(self, elicitation_id: str | None) -> None:
        """The user has done what an MCP server wanted on a page: the client may stop waiting."""
        if elicitation_id is not None:
            await self._asker.page_done(elicitation_id)
