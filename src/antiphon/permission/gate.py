"""The gate: decides what an agent may do, by the policy, by what is remembered, and by asking.

One policy decides permission requests, file writes and commands, so an agent that never asks is allowed no more than others. Rules:

1. What is in doubt is asked, and only a person may allow it: a deny that may match, a policy that cannot be read, a store that cannot be
   used, a rule in it that means nothing.
2. A denial selects an option that rejects. `cancelled` is for cancelled turns: agents end the whole turn on it.
3. "Always" is remembered as the rule that was shown, and nothing wider. What cannot be remembered is allowed once.
4. Every decision is written to the audit.
"""

import asyncio
import logging
import os
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, TypeVar

from antiphon.aio import maybe_await
from antiphon.errors import Code, ConnectionClosed, RequestError
from antiphon.permission.actions import FileNow, Passing, Wanted, action_of, texts_shown
from antiphon.permission.grants import Grants
from antiphon.permission.memory import Memory
from antiphon.policy import Action, PolicyMode, Rule, Rules, Ruling, Verdict, decide, suggest
from antiphon.protocol import v1
from antiphon.protocol.v1.permission import PermissionOptionKind as Kind
from antiphon.redaction import redact
from antiphon.store.decisions import MAX_TEXT, AuditEntry
from antiphon.store.errors import StoreError

if TYPE_CHECKING:
    from antiphon.local.roots import Workspace
    from antiphon.store.decisions import AuditStore, DecisionStore, Scope

__all__ = [
    "Ask",
    "Denial",
    "OnAsk",
    "PermissionChoice",
    "PermissionGate",
    "Question",
    "allowing",
    "decided_by",
    "rejecting",
    "subject_of",
]

# --- what goes into the audit, without secrets -----------------------------------------------------------------------


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
    """Return the `_meta` of an answer: what decided, and why it was refused if the user was not asked. None for agents that are not ours."""
    if not isinstance((request.meta or {}).get("antiphon"), dict):
        return None
    return {"antiphon": {"decidedBy": source, **({} if refused is None else {"refused": redact(refused[:MAX_TEXT])})}}


# --- the agent's option for a decision; one of an unknown kind only by its id, and never to deny ---------------------
# An "always" of ours is remembered by us, and the agent receives "once": its own "always" may cover more than the rule that was shown.


def allowing(options: Sequence[v1.PermissionOption], option_id: str | None, *, always: bool) -> str | None:
    """The option that allows: the one the user picked, else the one that fits. None: there is no way to allow this and no more."""
    picked = _of_id(options, option_id)
    if picked is not None and not (picked.kind.known and picked.kind in (Kind.REJECT_ONCE, Kind.REJECT_ALWAYS)):
        return picked.option_id
    return _of_kinds(options, (Kind.ALLOW_ONCE, Kind.ALLOW_ALWAYS) if always else (Kind.ALLOW_ONCE,))


def rejecting(options: Sequence[v1.PermissionOption], option_id: str | None, *, always: bool) -> str | None:
    """The option that rejects: the one the user picked, else the one that fits, else any. None: the agent offers no option that rejects."""
    picked = _of_id(options, option_id)
    if picked is not None and picked.kind.known and picked.kind in (Kind.REJECT_ONCE, Kind.REJECT_ALWAYS):
        return picked.option_id
    kinds = (Kind.REJECT_ONCE, Kind.REJECT_ALWAYS)
    return _of_kinds(options, kinds[::-1] if always else kinds)


def _of_id(options: Sequence[v1.PermissionOption], option_id: str | None) -> v1.PermissionOption | None:
    return next((option for option in options if option.option_id == option_id), None)


def _of_kinds(options: Sequence[v1.PermissionOption], kinds: Sequence[Kind]) -> str | None:
    for kind in kinds:
        for option in options:
            if option.kind.known and option.kind == kind:
                return option.option_id
    return None


T = TypeVar("T")

_log = logging.getLogger(__name__)

OnAsk: TypeAlias = Literal["deny", "fail", "allow"]

MAX_DENIALS: Final = 1000
"""Denials kept for the summary of a turn. Those beyond are denied and counted, and not kept."""

DOUBT: Final = "doubt"
"""The source of a ruling that asks because something could not be read."""

USER: Final = "user"
"""The source of a decision that a person made at a prompt of ours."""

_GRANT: Final = "permission"
_UNATTENDED: Final = "on-ask"
_FAILED: Final = "not asked"


@dataclass(frozen=True, slots=True)
class Question:
    """What the user is asked: may the agent do this?"""

    session_id: str
    action: Action
    ruling: Ruling
    """Why it is asked."""
    always: tuple[Rule, ...]
    """What "always" would remember; empty if it can only be answered once."""
    request: v1.RequestPermission | None = None
    """The agent's own question; None if it did not ask and is about to write or run something."""
    content: str | None = None
    """The text that is about to be written, where it did not ask."""
    before: FileNow | None = None
    """The file that it would replace."""
    passing: Passing | None = None
    """What it is about to do, where it did not ask."""


@dataclass(frozen=True, slots=True)
class PermissionChoice:
    """The user's answer. With a scope it is remembered; `expires_at` is a time in ISO 8601 with its zone."""

    verdict: Verdict
    scope: "Scope | None" = None
    expires_at: str | None = None
    option_id: str | None = None
    """An option of the agent's own, picked by the user. It is used if it means the same as the verdict."""
    message: str | None = None
    """The reason for a denial that is sent to the agent, where the protocol has a field for it."""
    rules: tuple[Rule, ...] = ()
    """The rules to remember, if they are others than those of the question: the user has changed them."""
    by: str = USER
    """Who decided, for the audit: another client may have answered instead of the user."""


@dataclass(frozen=True, slots=True)
class Denial:
    """Something that an agent wanted and did not get."""

    action: Action
    why: str
    unattended: bool = False
    """Whether the user would have been asked, but there was no user to ask."""

    @property
    def subject(self) -> str:
        """The command, the paths or the address, without what looks like a secret."""
        return subject_of(self.action)


Ask: TypeAlias = Callable[[Question], PermissionChoice | Awaitable[PermissionChoice]]


@dataclass(frozen=True, slots=True)
class _Settled:
    """The outcome of one decision."""

    verdict: Verdict
    source: str
    why: str
    rule: str = ""
    always: bool = False
    option_id: str | None = None
    unattended: bool = False
    answered: bool = False
    """Whether the user was asked and answered."""
    files: Mapping[str, FileNow] = field(default_factory=dict)
    """The files that its diffs are about, as they were when it was asked; by real path."""

    @classmethod
    def by(cls, ruling: Ruling) -> "_Settled":
        return cls(ruling.verdict, ruling.source, ruling.why, "" if ruling.rule is None else ruling.rule.text)


class GateSessions(Protocol):
    """What the gate has to know of the sessions that ask."""

    def workspace(self, session_id: str) -> "Workspace | None":
        """Return the directories of a session, if they are known."""

    def running_turn(self, session_id: str) -> object:
        """Return the turn that runs in a session. A grant lasts as long as its turn."""

    async def ask(self, session_id: str | None, ask: Callable[[], T | Awaitable[T]], instead: T) -> T:
        """Ask the user, unless the turn is being cancelled; stop asking when it is. Then the answer is `instead`."""


class PermissionGate:
    """Decides for one agent: give `permission` to `connect`, and the files and terminals that it guards.

    Without `ask` there is no user to ask, and `on_ask` decides what happens to such requests: they are denied, denied and noted as a
    failure, or allowed. `broken` is what is wrong with the files of the policy: then the user is asked about everything, and nothing is allowed unasked.
    `workspace` is that of everything that asks, for callers that attach no sessions.
    """

    def __init__(
        self,
        rules: Rules | None = None,
        mode: PolicyMode | Callable[[], PolicyMode] = PolicyMode.DEFAULT,
        *,
        ask: Ask | None = None,
        on_ask: OnAsk = "deny",
        decisions: "DecisionStore | None" = None,
        audit: "AuditStore | None" = None,
        project: str = "",
        agent: str = "",
        broken: str = "",
        workspace: "Workspace | None" = None,
    ) -> None:
        self.rules = rules or Rules()
        self._mode = mode
        self.denials: list[Denial] = []
        """The first of them, `MAX_DENIALS` at most."""
        self.denied = 0
        """How many there were."""
        self.unattended = 0
        """How many calls were denied because there was no user to ask."""
        self.failed: Denial | None = None
        """The first denial under `on_ask="fail"`."""
        self._ask = ask
        self._on_ask = on_ask
        self._memory = Memory(decisions, agent)
        self._audit = audit
        self._project = project
        self._agent = agent
        self._broken = broken
        self._grants = Grants()
        self._sessions: GateSessions | None = None
        self._workspace_here = workspace
        self.one_at_a_time = True
        """Whether a question waits until the one before is answered, as at a terminal. Clients that show several at once need not wait."""
        self._asking = asyncio.Lock()
        self.decided_alone: Callable[[AuditEntry], None] | None = None
        """Called with each decision that no user made."""

    @property
    def mode(self) -> PolicyMode:
        """The mode in force. A gate that was given a function asks it each time: the mode is kept elsewhere."""
        return self._mode if isinstance(self._mode, PolicyMode) else self._mode()

    @mode.setter
    def mode(self, mode: PolicyMode) -> None:
        self._mode = mode

    @property
    def scopes(self) -> "tuple[Scope, ...]":
        """How far an answer can count that is remembered. Without a store it ends with the gate, which is that of one session."""
        return ("session", "project", "everywhere") if self._memory.is_stored else ("session",)

    def attach(self, sessions: "GateSessions") -> None:
        """Set the sessions whose requests the gate will answer. `connect` calls it; before that their directories are unknown."""
        self._sessions = sessions

    def turn_over(self) -> None:
        """End what was allowed in a turn and not used. For callers that attach no sessions, and so no turns."""
        self._grants = Grants()

    async def permission(self, request: v1.RequestPermission, ask: Ask | None = None) -> v1.PermissionResult:
        """Answer a permission request. `ask` replaces the function that asks the user, for this request only.

        The `_meta` of the result names what decided, for agents of ours, so that it does not take the policy for the user.

        Raises:
            RequestError: it is denied, and the agent offers no option that rejects.
        """
        action = action_of(request, self._workspace(request.session_id))
        try:
            settled = await self._settle(request, action, ask)
        except asyncio.CancelledError:
            self._record(request.session_id, action, _CANCELLED, "cancelled")
            raise
        option = None
        if settled.verdict is Verdict.ALLOW:
            option = allowing(request.options, settled.option_id, always=settled.always)
            if option is None:
                settled = replace(
                    settled, verdict=Verdict.DENY, why="The agent offers no way to allow this and no more."
                )
        if settled.verdict is not Verdict.ALLOW:
            option = rejecting(request.options, settled.option_id, always=settled.always)
        self._record(request.session_id, action, settled, option or "")
        if option is None:
            raise RequestError(
                Code.INVALID_REQUEST, f"permission denied, and the request has no option that rejects: {settled.why}"
            )
        if settled.verdict is Verdict.ALLOW and settled.answered:
            shown = texts_shown(request, self._workspace(request.session_id))
            self._grants.give(request.session_id, self._turn(request.session_id), action, shown, settled.files)
        refused = settled.why if settled.verdict is not Verdict.ALLOW and not settled.answered else None
        return v1.PermissionResult(v1.Selected(option), meta=decided_by(request, settled.source, refused))

    async def admit(
        self, request: v1.ReadTextFile | v1.WriteTextFile | v1.CreateTerminal, ask: Ask | None = None
    ) -> None:
        """Decide about a read, a write or a command, for the code that performs it. `ask` as in `permission`.

        Raises:
            RequestError: it may not.
        """
        action = action_of(request, self._workspace(request.session_id))
        if self._sessions is None:
            settled = await self._settle(request, action, ask)
        else:  # a question that is released when the turn is cancelled
            settled = await self._sessions.ask(
                request.session_id, lambda: self._settle(request, action, ask), _CANCELLED
            )
        self._record(request.session_id, action, settled)
        if settled.verdict is not Verdict.ALLOW:
            raise RequestError(Code.INVALID_REQUEST, f"permission denied: {settled.why}")

    async def judge(self, session_id: str, action: Action) -> Ruling:
        """The verdict of rules, memory and mode, before the user is asked. Doubt becomes an ask, or a deny where the user is not to be asked."""
        remembered, doubt = await self._memory.recall(session_id, self._project_of(session_id))
        ruling = decide(action, self.rules, self.mode, () if self._broken else remembered, datetime.now(UTC))
        by_rule = ruling.rule is not None and ruling.verdict is Verdict.ALLOW and ruling.source != "remembered"
        if ruling.verdict is Verdict.DENY or (not self._broken and (not doubt or by_rule)):
            return ruling
        verdict = Verdict.DENY if self.mode is PolicyMode.DONT_ASK else Verdict.ASK
        return Ruling(verdict, None, DOUBT, self._broken or doubt, doubt=True)

    # How it is decided.

    async def _settle(self, request: Wanted, action: Action, ask: Ask | None) -> _Settled:
        """Decide: first the policy, then what was granted, then the user. Files are read only for the last two, in a thread."""
        ask = ask or self._ask
        ruling = await self.judge(request.session_id, action)
        if ruling.verdict is not Verdict.ASK:
            return _Settled.by(ruling)
        before = await self._before(request, action)
        if self._take_grant(request, action, before):
            return _Settled(Verdict.ALLOW, _GRANT, "It was allowed just now, when it was asked about.")
        if ask is None:
            return self._unattended(ruling)
        waited = self.one_at_a_time and self._asking.locked()
        async with self._asking if self.one_at_a_time else nullcontext():
            if waited:  # the answers before may cover this one, and the mode may be another
                ruling = await self.judge(request.session_id, action)
                if ruling.verdict is not Verdict.ASK:
                    return _Settled.by(ruling)
            if isinstance(request, v1.WriteTextFile) and (waited or before is None):
                before = await asyncio.to_thread(FileNow.read, request.path)
            files = await self._files_shown(request)
            settled = await self._put(ask, self._question(request, action, ruling, before))
            return replace(settled, files=files)

    async def _before(self, request: Wanted, action: Action) -> FileNow | None:
        """Read the file that is to be written, if a grant may be about it."""
        if not isinstance(request, v1.WriteTextFile):
            return None
        if not self._grants.may_take_write(request.session_id, self._turn(request.session_id), action.paths):
            return None
        return await asyncio.to_thread(FileNow.read, request.path)

    async def _files_shown(self, request: Wanted) -> dict[str, FileNow]:
        """Read the files that the user is about to see diffs of."""
        if not isinstance(request, v1.RequestPermission):
            return {}
        shown = texts_shown(request, self._workspace(request.session_id))
        if not shown:
            return {}
        return await asyncio.to_thread(lambda: {path: FileNow.read(path) for path in shown})

    def _question(self, request: Wanted, action: Action, ruling: Ruling, before: FileNow | None) -> Question:
        asked = request if isinstance(request, v1.RequestPermission) else None
        content = request.content if isinstance(request, v1.WriteTextFile) else None
        passing = None if isinstance(request, v1.RequestPermission) else request
        return Question(request.session_id, action, ruling, suggest(action), asked, content, before, passing)

    async def _put(self, ask: Ask, question: Question) -> _Settled:
        try:
            choice = await maybe_await(ask(question))
            verdict = Verdict(choice.verdict)
        except ConnectionClosed as error:  # the client is gone: deny
            _log.info("the question could not be asked: %s", error)
            return _Settled(Verdict.DENY, _FAILED, "The question could not be asked.")
        except Exception:  # if asking fails, deny
            _log.exception("the question could not be asked")
            return _Settled(Verdict.DENY, _FAILED, "The question could not be asked.")
        if verdict is Verdict.ASK:
            return _Settled(Verdict.DENY, _FAILED, "The question was not answered.")
        rules = choice.rules or question.always
        always = choice.scope is not None and await self._memory.keep(
            rules,
            verdict,
            choice.scope,
            session_id=question.session_id,
            project=self._project_of(question.session_id),
            expires_at=choice.expires_at,
        )
        done = "allowed" if verdict is Verdict.ALLOW else "denied"
        extent = f"always ({choice.scope})" if always else "once"
        decider = "The user" if choice.by == USER else "The client"
        why = choice.message if choice.message and verdict is Verdict.DENY else f"{decider} {done} it {extent}."
        rule = ", ".join(rule.text for rule in rules) if always else ""
        return _Settled(verdict, choice.by, why, rule, always, choice.option_id, answered=True)

    def _unattended(self, ruling: Ruling) -> _Settled:
        if self._on_ask == "allow" and not ruling.doubt:
            return replace(
                _Settled.by(ruling),
                verdict=Verdict.ALLOW,
                source=_UNATTENDED,
                why=f"{ruling.why} There is no user to ask, so it is allowed.",
            )
        why = f"{ruling.why} There is no user to ask, so it is denied."
        return replace(_Settled.by(ruling), verdict=Verdict.DENY, source=_UNATTENDED, why=why, unattended=True)

    def _take_grant(self, request: Wanted, action: Action, before: FileNow | None) -> bool:
        turn = self._turn(request.session_id)
        match request:
            case v1.WriteTextFile() if before is not None:
                return self._grants.take_write(request.session_id, turn, action.paths, request.content, before)
            case v1.CreateTerminal():
                return self._grants.take_command(request.session_id, turn, action)
            case _:
                return False

    # What is known.

    def _workspace(self, session_id: str) -> "Workspace | None":
        return self._workspace_here if self._sessions is None else self._sessions.workspace(session_id)

    def _turn(self, session_id: str) -> object:
        return None if self._sessions is None else self._sessions.running_turn(session_id)

    def _project_of(self, session_id: str) -> str:
        workspace = self._workspace(session_id)
        return self._project or ("" if workspace is None else os.path.realpath(workspace.cwd))

    def _record(self, session_id: str, action: Action, settled: _Settled, answer: str = "") -> None:
        if settled.verdict is not Verdict.ALLOW and settled is not _CANCELLED:
            denial = Denial(action, settled.why, settled.unattended)
            self.denied += 1
            self.unattended += settled.unattended
            if len(self.denials) < MAX_DENIALS:
                self.denials.append(denial)
            if settled.unattended and self._on_ask == "fail" and self.failed is None:
                self.failed = denial
        if self._audit is None and self.decided_alone is None:
            return
        entry = AuditEntry(
            self._agent, session_id, action.cwd, action.tool or action.name or "", action.kind, subject_of(action),
            settled.verdict.value, redact(settled.rule[:MAX_TEXT]), settled.source, redact(settled.why[:MAX_TEXT]), answer,
        )  # fmt: skip
        if self.decided_alone is not None and not settled.answered:
            self.decided_alone(entry)
        if self._audit is None:
            return
        try:
            self._audit.post(entry)
        except StoreError as error:
            _log.error("a decision could not be written down: %s", error)


_CANCELLED: Final = _Settled(Verdict.DENY, "cancelled", "The turn was cancelled before the user answered.")
