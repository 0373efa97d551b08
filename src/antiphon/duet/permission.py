"""Permission in a joint session: the policy decides first, for every engine alike, and the user is asked what it leaves open.

A `Guard` decides, and the functions before it make the permission request that the user gets, and read the response. About the guard:

Rule 1: all engines share one memory. An "always" that was given for one holds for the others.
Rule 2: an engine gets "once", whatever was decided: what lasts is remembered here and nowhere else.
Rule 3: a question of an engine that is not about permission reaches the user as it is.
Rule 4: an engine that only reads is allowed to read, and the user is not asked about anything else.

About the request:

Rule 5: an "always" of an engine's own is not offered: it would take the decision away from the policy, and hold for that engine alone.
Rule 6: our own options replace it, each with the rule that would be remembered, word by word. Where there is no
such rule, or it would change nothing, none is offered.
Rule 7: what else the engine offers stays as it is and where it is.
Rule 8: the request names the engine that asks, and why, if a rule or a doubt is the reason.
Rule 9: the ids of our options are ours. What an engine offers under one of them is not shown, since its choice would be taken for ours.
Rule 10: an engine may announce what a call does, and later ask about it with no more than its id. Both are judged.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from antiphon.agent.questions import Permission, is_question, refusal, why_refused
from antiphon.errors import Advice, Code, RequestError
from antiphon.local.roots import Workspace
from antiphon.permission.actions import Passing, call_of
from antiphon.permission.gate import DOUBT, USER, Denial, PermissionChoice, PermissionGate, Question, rejecting
from antiphon.permission.memory import forget_closed
from antiphon.permission.settings import BROKEN, rules_in, settings_here
from antiphon.policy import PolicyMode, Rules, Verdict
from antiphon.policy.decision import READ_ONLY_MODE, read_only_rules
from antiphon.policy.rules import KINDS, QUIET_KINDS
from antiphon.protocol import v1
from antiphon.store.decisions import AuditStore, DecisionStore

if TYPE_CHECKING:
    from antiphon.config.settings import Loaded
    from antiphon.policy import Rule
    from antiphon.store.database import Database
    from antiphon.store.decisions import Scope

__all__ = [
    "AGENT",
    "AskUser",
    "Guard",
    "Known",
    "answerable",
    "choice_of",
    "shown_to_user",
    "with_known",
]

Known: TypeAlias = v1.ToolCall | v1.ToolCallPatch
"""A tool call as it was announced before its permission request."""

MAX_NAME: Final = 160
"""Longest name of an option, in characters. Rules that do not fit are listed above the options instead."""

_Kind = v1.PermissionOptionKind
_ONCE: Final = v1.PermissionOption("allow", "Allow once", _Kind.ALLOW_ONCE)
_REJECT: Final = v1.PermissionOption("reject", "Reject", _Kind.REJECT_ONCE)
_ABOUT: Final = {
    "kind": "tool_kind", "title": "title", "name": "name", "content": "content", "locations": "locations", "raw_input": "input",
}  # fmt: skip
"""The fields that describe what a call does, each with the other name that it may have."""

_SCOPES: "Final[dict[str, tuple[Scope, str]]]" = {
    "antiphon_always_session": ("session", "in this session"),
    "antiphon_always_project": ("project", "in this project"),
}
"""The ids of our own options."""


def answerable(request: v1.RequestPermission) -> v1.RequestPermission:
    """The request with the options that may be chosen: once, one way or the other. An "always" without a "once" beside it stays."""
    theirs = [option for option in request.options if option.option_id not in _SCOPES]
    kinds = {option.kind for option in theirs if option.kind.known}
    dropped = {_Kind.ALLOW_ALWAYS} if _Kind.ALLOW_ONCE in kinds else set[_Kind]()
    dropped |= {_Kind.REJECT_ALWAYS} if _Kind.REJECT_ONCE in kinds else set()
    kept = [option for option in theirs if not (option.kind.known and option.kind in dropped)]
    return msgspec.structs.replace(request, options=kept)


def with_known(request: v1.RequestPermission, known: Known | None) -> v1.RequestPermission:
    """The request, with fields that it omits filled in from the announcement of the call."""
    if known is None:
        return request
    call = request.tool_call
    known_text: dict[str, Any] = {}
    for name, also in _ABOUT.items():
        if not _has_value(call, name) and not _has_value(call, also):
            known_text |= {each: getattr(known, each) for each in (name, also) if _has_value(known, each)}
    return (
        msgspec.structs.replace(request, tool_call=msgspec.structs.replace(call, **known_text))
        if known_text
        else request
    )


def _has_value(call: Known, name: str) -> bool:
    value = getattr(call, name)
    return value is not None and value is not v1.UNSET


def shown_to_user(
    request: v1.RequestPermission, question: "Question", engine_title: str, engines_own: Sequence[v1.PermissionOption]
) -> v1.RequestPermission:
    """The request as the user gets it. `engines_own` are all the options that the engine had, so that ours stand where its own stood."""
    rules = _to_remember(request, question)
    ours, listed = _always(rules)
    notes = [*_notes(request.tool_call, engine_title, question), *([_note(listed, "engine")] if listed else [])]
    call = msgspec.structs.replace(request.tool_call, content=[*(request.tool_call.content or ()), *notes])
    options = list(request.options)
    at = _where(engines_own, options)
    meta = {**(request.meta or {}), "antiphon": {"askedBy": engine_title}}  # a client of ours then reports who decided
    return msgspec.structs.replace(request, tool_call=call, options=[*options[:at], *ours, *options[at:]], meta=meta)


def choice_of(shown: v1.RequestPermission, result: v1.PermissionResult) -> PermissionChoice:
    """The decision of the client, and who made it. A response that is not understood is never an approval."""
    option = Permission(result.outcome, shown.options).option
    by = _decided_by(result)
    if option is None:
        return PermissionChoice(Verdict.DENY, by=by)
    if option.option_id in _SCOPES and option.kind == _Kind.ALLOW_ALWAYS:
        return PermissionChoice(Verdict.ALLOW, _SCOPES[option.option_id][0], by=by)
    # An option of an unknown kind may mean anything; but the user has chosen it.
    denies = option.kind.known and option.kind in (_Kind.REJECT_ONCE, _Kind.REJECT_ALWAYS)
    return PermissionChoice(Verdict.DENY if denies else Verdict.ALLOW, option_id=option.option_id, by=by)


def _decided_by(result: v1.PermissionResult) -> str:
    """Return who decided, for the audit: a client of ours reports it; of any other client we know only that it answered."""
    ours = (result.meta or {}).get("antiphon")
    known_text = ours.get("decidedBy") if isinstance(ours, dict) else None
    if not isinstance(known_text, str) or not known_text.isprintable() or len(known_text) > MAX_NAME:
        return "client"
    return USER if known_text == USER else f"client: {known_text}"


def _to_remember(request: v1.RequestPermission, question: "Question") -> "Sequence[Rule]":
    """The rules that an "always" would remember. A rule that asks, or may deny, goes on to do so; and in doubt nothing remembered counts."""
    once = any(option.kind.known and option.kind == _Kind.ALLOW_ONCE for option in request.options)
    plain = all(rule.text.isprintable() and "`" not in rule.text for rule in question.always)
    decided = question.ruling.rule is not None or question.ruling.source == DOUBT
    return question.always if once and plain and not decided else ()


def _always(rules: "Sequence[Rule]") -> tuple[list[v1.PermissionOption], str]:
    """Our options, and the explanation that is shown beside their names."""
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
    """The position of our options among those that are kept: where the engine's own was, else behind the one that allows once."""
    before = 0
    for option in engines_own:
        if option.kind.known and option.kind == _Kind.ALLOW_ALWAYS and option not in kept:
            return before
        before += option in kept
    once = [at for at, option in enumerate(kept) if option.kind.known and option.kind == _Kind.ALLOW_ONCE]
    return once[0] + 1 if once else len(kept)


def _notes(call: v1.ToolCallPatch, engine_title: str, question: "Question") -> Iterator[v1.ContentItem]:
    theirs = (call.meta or {}).get("claudeCode")
    part = theirs.get("agentId") if isinstance(theirs, dict) else None
    shown = "\n".join(
        item.content.text
        for item in call.content or ()
        if isinstance(item, v1.ContentItem) and isinstance(item.content, v1.TextBlock)
    )
    if isinstance(part, str) and part and part.isprintable() and part not in shown:
        yield _note(f"A sub-agent of {engine_title} asks (`{part}`).", "details")
    else:
        yield _note(f"{engine_title} asks.", "engine")
    if question.ruling.rule is not None or question.ruling.source == DOUBT:
        yield _note(question.ruling.why, "details")


def _note(markdown: str, kind: Literal["engine", "details"]) -> v1.ContentItem:
    """A text of the question that is no part of the call. The mark `engine`: a client of ours shows the same in its own way."""
    return v1.ContentItem(v1.TextBlock(markdown), meta={"antiphon": {"question": kind}})


AGENT: Final = "antiphon"
"""The name under which decisions are remembered and audited: that of the joint agent, whichever engine asked."""

_ALL_ASKED: Final = Rules.parse(ask=[f"kind:{kind}" for kind in KINDS if kind not in QUIET_KINDS], source="doubt")
"""The rules where the policy cannot be read: the user is asked before anything is done."""

AskUser: TypeAlias = Callable[[v1.RequestPermission], Awaitable[v1.PermissionResult]]
"""Sends a permission request to the client."""


class _CancelledByClient(asyncio.CancelledError):
    """The client cancelled the permission request. It is not an `Exception`, so that handlers of errors do not catch it."""


class Guard:
    """Decides about the permission requests of all engines of one session."""

    def __init__(self, workspace: Workspace, loaded: "Loaded", database: "Database | None") -> None:
        self.rules = rules_in(loaded.settings).merged(_ALL_ASKED if loaded.policy_broken else Rules())
        """The rules of the policy, which the engines are given too."""
        self.settings = loaded.settings
        """Everything in the config files."""
        self.problems: Sequence[Advice] = loaded.problems
        """What is wrong with the config files, to be shown once."""
        self.notes: Sequence[Advice] = loaded.notes
        """Settings that do not count yet, and how to make them count."""
        self._workspace = workspace
        self._broken = BROKEN if loaded.policy_broken else ""
        self._project = "" if loaded.sources.directory is None else str(loaded.sources.directory)
        self._decisions = None if database is None else DecisionStore(database)
        self._audit = None if database is None else AuditStore(database)
        self._gates: dict[str, PermissionGate] = {}
        """A gate for each engine: each asks one thing after the other, and does not wait for the requests of another."""
        self._reading_gate = self._gate_for_reading()
        self._mode: Callable[[], str] = lambda: ""
        """Gives the mode of the session, which its settings keep."""
        self._numbers = 0

    @classmethod
    async def open(cls, cwd: str, directories: Sequence[str], database: "Database") -> "Guard":
        """Make a guard with the rules of the user, and of the project as far as it is trusted."""
        guard = cls(Workspace.at(cwd, directories), await settings_here(cwd, database), database)
        guard.notes = (*guard.notes, *await forget_closed(DecisionStore(database)))
        return guard

    # The mode.

    def use_mode(self, mode: Callable[[], str]) -> None:
        """Ask this function for the mode of the session, each time one is needed."""
        self._mode = mode

    def _policy_mode(self) -> PolicyMode:
        """The mode of the session, as the policy knows it: one that it does not know counts as `default`."""
        try:
            return PolicyMode(self._mode() or PolicyMode.DEFAULT)
        except ValueError:
            return PolicyMode.DEFAULT

    def turn_over(self) -> None:
        """End the turn: grants that were not used are dropped."""
        for gate in self._gates.values():
            gate.turn_over()

    async def forget_session(self, session_id: str) -> None:
        """Forget what was decided for always in this session. What was decided for the project holds.

        Raises:
            StoreError: it could not be deleted, and still holds.
        """
        self._gates.clear()
        if self._decisions is not None:
            await self._decisions.revoke_session(session_id, agent=AGENT)

    # Requests of engines.

    async def permission(
        self,
        engine_title: str,
        request: v1.RequestPermission,
        ask: AskUser,
        *,
        looking: bool = False,
        trusted_marks: bool = True,
        known: Known | None = None,
    ) -> v1.PermissionResult:
        """Answer a permission request of an engine; with `looking` without asking the user.

        `known` is the call as it was announced: it counts for fields that the request omits.

        Cancelling this cancels the request at the client.

        Raises:
            RequestError: it is denied, and the engine offers no option that rejects.
        """
        request = with_known(request, known)
        if trusted_marks and is_question(request):
            return _stays(request) if looking and _leaves_plan(request) else await ask(request)
        once = answerable(request)
        gate = self._reading_gate if looking else self._gate(engine_title)
        put = None if looking else _Asker(engine_title, once, request.options, ask)
        try:
            answer = await gate.permission(once, put)
        except _CancelledByClient:
            return v1.PermissionResult(v1.Cancelled())
        finally:
            denials = _take_denials(gate)
        why = put.refused if put is not None and put.asked else denials[-1].why if denials else None
        return v1.PermissionResult(answer.outcome, meta=None if why is None else refusal(why))

    async def admit(self, request: Passing, ask: AskUser, engine_title: str = "", *, looking: bool = False) -> None:
        """Let a read, a write or a command pass that an engine does through us. What the engine was just allowed is not asked again.

        Raises:
            RequestError: it may not.
        """
        if looking:
            try:
                await self._reading_gate.admit(request)
            finally:
                _take_denials(self._reading_gate)
            return
        self._numbers += 1
        gate = self._gate(engine_title)
        try:
            await gate.admit(request, _Asker(engine_title or "The agent", (request, self._numbers), (), ask))
        except _CancelledByClient:
            raise RequestError(Code.REQUEST_CANCELLED, "the request was cancelled") from None
        finally:
            _take_denials(gate)

    # The gates.

    def _gate(self, engine_title: str) -> PermissionGate:
        gate = self._gates.get(engine_title)
        if gate is None:
            gate = self._gates[engine_title] = PermissionGate(
                self.rules,
                self._policy_mode,
                decisions=self._decisions,
                audit=self._audit,
                project=self._project,
                agent=AGENT,
                broken=self._broken,
                workspace=self._workspace,
            )
        return gate

    def _gate_for_reading(self) -> PermissionGate:
        """The gate of engines that only read: no rule and no memory allows more than reading, and the user is not asked."""
        return PermissionGate(
            read_only_rules(self.rules), READ_ONLY_MODE, audit=self._audit, agent=AGENT, broken=self._broken, workspace=self._workspace,
        )  # fmt: skip


def _take_denials(gate: PermissionGate) -> list[Denial]:
    """Take what a gate has just denied. It is noted in the same step in which it answers, so no other denial is among it."""
    denials = list(gate.denials)
    gate.denials.clear()
    return denials


def _leaves_plan(request: v1.RequestPermission) -> bool:
    call = request.tool_call
    return call.name == "ExitPlanMode" or call.kind == v1.ToolKind.SWITCH_MODE


def _stays(request: v1.RequestPermission) -> v1.PermissionResult:
    option = rejecting(request.options, None, always=False)
    return v1.PermissionResult(v1.Cancelled() if option is None else v1.Selected(option))


class _Asker:
    """Sends the question of a gate to the client, as the request that the engine sent.

    What an engine does without a request is given as it is, with a number, and shown only if it has to be asked about.
    """

    def __init__(
        self,
        engine_title: str,
        request: v1.RequestPermission | tuple[Passing, int],
        engines_own: Sequence[v1.PermissionOption],
        ask: AskUser,
    ) -> None:
        self.asked = False
        self.refused: str | None = None
        """Why a policy at the client refused it in the user's place."""
        self._engine_title = engine_title
        self._request = request
        self._engines_own = engines_own
        self._ask = ask

    async def __call__(self, question: Question) -> PermissionChoice:
        self.asked = True
        request, own = self._request, self._engines_own
        if isinstance(request, tuple):
            passing, number = request
            now = None if question.before is None else question.before.text
            request = v1.RequestPermission(
                passing.session_id, call_of(passing, f"admit-{number}", now), [_ONCE, _REJECT]
            )
            own = request.options
        shown = shown_to_user(request, question, self._engine_title, own)
        result = await self._ask(shown)
        if isinstance(result.outcome, v1.Cancelled):
            raise _CancelledByClient
        self.refused = why_refused(result)
        return choice_of(shown, result)
