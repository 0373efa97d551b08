"""Permission in a joint session: the policy decides first, for every engine alike; only what it leaves open is asked.

Rule 1: all engines go by one memory. An "always" that was given for one holds for the others.
Rule 2: an engine is told "once", whatever was decided: what lasts is remembered here and nowhere else.
Rule 3: a question that is none for permission is the user's alone, and reaches them as it is.
Rule 4: who only looks is allowed to read, and nobody is asked about anything else.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from antiphon.agent.permission import is_question, refusal, why_refused
from antiphon.duet.asked import Known, Passing, answerable, choice_of, question_about, shown_to_user, with_known
from antiphon.errors import Advice, Code, RequestError
from antiphon.local.roots import Workspace
from antiphon.permission.gate import Choice, Denial, PermissionGate, Question, rejecting
from antiphon.permission.memory import forget_closed
from antiphon.permission.settings import BROKEN, rules_in, settings_here
from antiphon.policy import PolicyMode, Rules
from antiphon.policy.decision import READ_ONLY_MODE, read_only_rules
from antiphon.policy.rules import KINDS, QUIET_KINDS
from antiphon.protocol import v1
from antiphon.store.audit import AuditStore
from antiphon.store.decisions import DecisionStore

if TYPE_CHECKING:
    from antiphon.config.settings import Loaded
    from antiphon.store.database import Database

__all__ = ["AGENT", "AskUser", "Guard"]

AGENT: Final = "antiphon"
"""Under whose name decisions are remembered and written down: the session's, whichever engine asked."""

_ALL_ASKED: Final = Rules.parse(ask=[f"kind:{kind}" for kind in KINDS if kind not in QUIET_KINDS], source="doubt")
"""Where the policy cannot be read: engines ask before they do anything."""

AskUser: TypeAlias = Callable[[v1.RequestPermission], Awaitable[v1.PermissionResult]]
"""Puts a question to the editor."""


class _CalledOff(asyncio.CancelledError):
    """The client called the question off. Nobody's screen failed, so it passes by those who look for errors."""


class Guard:
    """Decides for all engines of one session."""

    def __init__(self, workspace: Workspace, loaded: "Loaded", database: "Database | None") -> None:
        self.rules = rules_in(loaded.settings).merged(_ALL_ASKED if loaded.policy_broken else Rules())
        """What the engines are given too."""
        self.settings = loaded.settings
        """All that the config files say."""
        self.problems: Sequence[Advice] = loaded.problems
        """What is wrong with the config files, to be told once."""
        self.notes: Sequence[Advice] = loaded.notes
        """What does not count yet, and how it would."""
        self._workspace = workspace
        self._broken = BROKEN if loaded.policy_broken else ""
        self._project = "" if loaded.sources.directory is None else str(loaded.sources.directory)
        self._decisions = None if database is None else DecisionStore(database)
        self._audit = None if database is None else AuditStore(database)
        self._gates: dict[str, PermissionGate] = {}
        """One for each engine: each asks one thing after the other, and does not wait for another's answers."""
        self._onlookers = self._keeper_of_onlookers()
        self._mode: str = PolicyMode.DEFAULT.value
        self._numbers = 0

    @classmethod
    async def open(cls, cwd: str, directories: Sequence[str], database: "Database") -> "Guard":
        """With the rules of the user, and of the project as far as it is trusted."""
        guard = cls(Workspace.at(cwd, directories), await settings_here(cwd, database), database)
        guard.notes = (*guard.notes, *await forget_closed(DecisionStore(database)))
        return guard

    # How careful it is.

    @property
    def mode(self) -> str:
        """The mode of the session. One that the policy does not know counts as `default`."""
        return self._mode

    @mode.setter
    def mode(self, mode: str) -> None:
        self._mode = mode
        for gate in self._gates.values():
            gate.mode = self._policy_mode

    @property
    def _policy_mode(self) -> PolicyMode:
        return PolicyMode(self._mode) if self._mode in {mode.value for mode in PolicyMode} else PolicyMode.DEFAULT

    def turn_over(self) -> None:
        """What was allowed in the turn and not used is not allowed any more."""
        for gate in self._gates.values():
            gate.turn_over()

    async def forget_session(self, session_id: str) -> None:
        """What was decided for always in this session holds no longer. What was decided for the project does.

        Raises:
            StoreError: it could not be deleted, and still holds.
        """
        self._gates.clear()
        if self._decisions is not None:
            await self._decisions.revoke_session(session_id, agent=AGENT)

    # What engines ask.

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
        """Answer an engine's question for permission; with `looking` without ever asking about it.

        `known` is what was told of the call before: it counts where the question says nothing itself.

        Whoever cancels this withdraws the question at the client.

        Raises:
            RequestError: it is denied, and the engine offers no option that says so.
        """
        request = with_known(request, known)
        if trusted_marks and is_question(request):
            return _stays(request) if looking and _leaves_plan(request) else await ask(request)
        once = answerable(request)
        gate = self._onlookers if looking else self._gate(engine_title)
        put = None if looking else _Asker(engine_title, once, request.options, ask)
        try:
            answer = await gate.permission(once, put)
        except _CalledOff:
            return v1.PermissionResult(v1.Cancelled())
        finally:
            denials = _taken(gate)
        why = put.refused if put is not None and put.asked else denials[-1].why if denials else None
        return v1.PermissionResult(answer.outcome, meta=None if why is None else refusal(why))

    async def admit(self, request: Passing, ask: AskUser, engine_title: str = "", *, looking: bool = False) -> None:
        """Let a read, a write or a command pass that an engine does through us. What it was just allowed is not asked again.

        Raises:
            RequestError: it may not.
        """
        if looking:
            try:
                await self._onlookers.admit(request)
            finally:
                _taken(self._onlookers)
            return
        self._numbers += 1
        gate = self._gate(engine_title)
        try:
            await gate.admit(request, _Asker(engine_title or "The agent", (request, self._numbers), (), ask))
        except _CalledOff:
            raise RequestError(Code.REQUEST_CANCELLED, "the question about it was called off") from None
        finally:
            _taken(gate)

    # Who decides.

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

    def _keeper_of_onlookers(self) -> PermissionGate:
        """For those who only look: no rule and no memory allows more than reading, and nobody is asked."""
        return PermissionGate(
            read_only_rules(self.rules), READ_ONLY_MODE, audit=self._audit, agent=AGENT, broken=self._broken, workspace=self._workspace,
        )  # fmt: skip


def _taken(gate: PermissionGate) -> list[Denial]:
    """What it has just denied. It is noted in the same step in which it answers, so nobody else's is among it; and nobody sums it up."""
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
    """Puts a gate's question to the editor, in the words of the request that the engine sent.

    What an engine does without a request is given as it is, with a number, and shown only if it has to be asked about.
    """

    def __init__(
        self,
        who: str,
        request: v1.RequestPermission | tuple[Passing, int],
        engines_own: Sequence[v1.PermissionOption],
        ask: AskUser,
    ) -> None:
        self.asked = False
        self.refused: str | None = None
        """Why a policy at the client refused it in the user's place."""
        self._who = who
        self._request = request
        self._engines_own = engines_own
        self._ask = ask

    async def __call__(self, question: Question) -> Choice:
        self.asked = True
        request, own = self._request, self._engines_own
        if isinstance(request, tuple):
            request = question_about(*request, None if question.before is None else question.before.text)
            own = request.options
        shown = shown_to_user(request, question, self._who, own)
        result = await self._ask(shown)
        if isinstance(result.outcome, v1.Cancelled):
            raise _CalledOff
        self.refused = why_refused(result)
        return choice_of(shown, result)
