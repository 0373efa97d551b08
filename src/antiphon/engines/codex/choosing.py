"""What is chosen in a session. Codex takes it with every turn, so a choice counts from the next prompt on, and is sent again after a restart."""

from typing import TYPE_CHECKING, Any, Final

from antiphon.engines.codex import settings
from antiphon.engines.codex.configured import configured
from antiphon.engines.codex.looking import PROFILE
from antiphon.engines.codex.modes import MODES, WORKSPACE, Setup, sandbox_policy, setup_of
from antiphon.engines.codex.rules import held, is_held, mode_under
from antiphon.engines.codex.server import ServerRefused
from antiphon.errors import Code, RemoteProtocolError, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.agent.session import Session
    from antiphon.engines.codex import wire
    from antiphon.engines.codex.server import Server

__all__ = ["Choosing"]

_NOT_KNOWN: Final = (
    "Codex does not tell how the sandbox of the workspace is configured, and without that it might allow too much\n"
    "hint: send your prompt again, or choose another mode"
)
_ACCEPTING: Final = frozenset({"acceptEdits", "dontAsk"})


class Choosing:
    """Mode, model, effort and summary of one session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._models: Sequence[wire.Model] = ()
        self.mode = "default"
        self.model = ""
        self._effort = ""
        self._summary = "auto"
        self._chosen: set[str] = set()
        self._may_plan = True
        """Codex may be in its plan mode: a thread keeps it until it is told otherwise, also from one server to the next."""
        self._learnt = False
        self._sent: tuple[str, str, str] = ("", "", "")
        """Mode, model and effort as they were last sent: that Codex has taken them over is no news."""
        self._rights: tuple[object, object] | None = None
        """Approval and sandbox as they were last sent, where they are other than the mode's own."""
        self._own: Setup | None = None
        """The user's own settings, if they match no mode and let Codex write the workspace without asking."""
        self._workspace: dict[str, Any] | None = None
        self.has_profile = False
        """Whether the thread was opened so that a turn can be kept to looking whatever Codex's own rules allow."""

    def begin(self, models: "Sequence[wire.Model]", opened: "wire.ThreadOpened") -> None:
        """Show how a thread was opened."""
        self._models = models
        self._take(opened)
        self._show()

    def _take(self, opened: "wire.ThreadOpened") -> None:
        model, effort, sandbox = opened.model, opened.reasoning_effort, opened.sandbox
        way = _way_of(opened.collaboration_mode)
        self._may_plan = way != "default"
        if isinstance(sandbox, dict) and sandbox.get("type") == "workspaceWrite" and self._workspace is None:
            self._workspace = sandbox  # as the user's own configuration has it
        if settings.MODE not in self._chosen and not self._are_sent(opened.approval_policy, sandbox):
            self.mode = mode_under(self._session.rules, opened.approval_policy, sandbox, way == "plan")
            self._own = _unasked(opened.approval_policy, sandbox)
        if settings.MODEL not in self._chosen and model:
            self.model = model
        if settings.EFFORT not in self._chosen and effort:
            self._effort = effort

    async def learn(self, server: "Server") -> None:
        """Before the first turn: what the user has set up for Codex, so that our own words for it do not undo that.

        Raises:
            RequestError: that is not known, and the sandbox of the turn might be wider than the user's own.
        """
        if self._learnt:
            return
        try:
            found = await configured(server, self._session.cwd)
        except (ServerRefused, RemoteProtocolError) as error:
            setup = self._setup_of_turn
            if setup is not None and setup.sandbox == WORKSPACE and self._workspace is None:
                raise RequestError(
                    Code.INTERNAL_ERROR, _NOT_KNOWN, {"kind": "configuration", "details": str(error)}
                ) from error
            return  # and asked again before the next turn
        self._learnt = True
        self._workspace = self._workspace or found.workspace
        if settings.SUMMARY not in self._chosen and found.model_reasoning_summary in settings.SUMMARIES:
            self._summary = found.model_reasoning_summary
            await self._show_and_tell()

    def follow(self, other: "Choosing") -> None:
        """Choose what was chosen in another session."""
        self.mode, self.model, self._effort, self._summary = other.mode, other.model, other._effort, other._summary
        self._chosen, self._rights, self._own = set(other._chosen), other._rights, other._own

    # For who answers in the user's place.

    @property
    def accepts_edits(self) -> bool:
        """Whether the user is not asked about edits of the workspace."""
        return not self._session.looking and (self.mode in _ACCEPTING or self._own_mode is not None)

    @property
    def never_asks(self) -> bool:
        """Whether the user is asked about nothing."""
        return self.mode == "dontAsk" and not self._session.looking

    @property
    def also_writable(self) -> "Sequence[str]":
        """Directories that the user's own configuration counts to the workspace."""
        roots = (self._workspace or {}).get("writableRoots")
        return [root for root in roots if isinstance(root, str)] if isinstance(roots, list) else []

    # For Codex.

    @property
    def _setup(self) -> "Setup | None":
        """What the mode is made of, if one was chosen."""
        setup = setup_of(self.mode) if settings.MODE in self._chosen else None
        return None if setup is None else held(setup, self._session.rules)

    @property
    def _own_mode(self) -> "Setup | None":
        return None if self.mode in MODES else self._own

    @property
    def _setup_of_turn(self) -> "Setup | None":
        """The same for a turn, also where no mode was chosen: the user's own configuration may let Codex do anything unasked."""
        if self._setup is not None:
            return self._setup
        rules = self._session.rules
        own = setup_of(self.mode) or self._own_mode
        if own is None:
            return held(MODES["default"][1], rules) if is_held(rules) else None
        sent = held(own, rules)
        if own is self._own_mode and not is_held(rules):
            sent = Setup(own.approval, sent.sandbox)
        return sent if is_held(rules) or sent != own else None

    def begin_rights(self) -> dict[str, Any]:
        """When Codex asks and what its sandbox lets it do in the turn that begins now; empty if the user's configuration says it."""
        setup = self._setup_of_turn
        if setup is None:
            return {}
        usual = setup_of(self.mode) or self._own_mode
        sandbox = sandbox_policy(setup, usual, list(self._session.directories), self._workspace)
        self._rights = (setup.approval, sandbox["type"]) if setup != setup_of(self.mode) else None
        return {"approvalPolicy": setup.approval, "sandboxPolicy": sandbox}

    def for_thread(self) -> dict[str, Any]:
        """What a thread is opened with: only what was chosen here, or the user's own configuration would not count."""
        chosen: dict[str, Any] = {}
        setup = self._setup
        if setup is not None:
            chosen |= {"approvalPolicy": setup.approval, "sandbox": setup.sandbox}
        if settings.MODEL in self._chosen:
            chosen["model"] = self.model
        return chosen

    def begin_turn(self) -> dict[str, Any]:
        """What the turn that begins now is started with. Codex keeps it for the turns that follow; it is sent again all the same."""
        self._sent = self.mode, self.model, self._effort
        chosen: dict[str, Any] = {"summary": self._summary}
        setup = self._setup_of_turn
        chosen |= self.begin_rights()
        if self._session.looking:
            chosen |= self._only_looking(chosen)
        if settings.MODEL in self._chosen:
            chosen["model"] = self.model
        if settings.EFFORT in self._chosen:
            chosen["effort"] = self._effort
        if setup is not None and (setup.plans or self._may_plan) and self.model:
            chosen["collaborationMode"] = {
                "mode": "plan" if setup.plans else "default",
                "settings": {
                    "model": self.model,
                    "reasoning_effort": self._effort or None,
                    "developer_instructions": None,
                },
            }
            self._may_plan = True
        return chosen

    def _only_looking(self, chosen: dict[str, Any]) -> dict[str, Any]:
        """The rights of somebody who changes nothing, whatever was chosen."""
        plan = MODES["plan"][1]
        if not self.has_profile:
            return {"approvalPolicy": plan.approval, "sandboxPolicy": sandbox_policy(plan, plan, [], None)}
        chosen.pop("sandboxPolicy", None)  # there is the one or the other
        return {"approvalPolicy": plan.approval, "permissions": PROFILE}

    # The client changes something.

    def set_option(self, name: str, value: str) -> None:
        """From the next turn on."""
        self._chosen.add(name)
        match name:
            case settings.MODE:
                self.mode = value
            case settings.MODEL:
                self.model = value
            case settings.EFFORT:
                self._effort = value
            case settings.SUMMARY:
                self._summary = value
            case _:
                pass
        self._show()

    # Codex changes something.

    async def model_is(self, model: str) -> None:
        """It uses another model."""
        if model and model != self.model:
            self.model = model
            await self._show_and_tell()

    async def settings_are(self, now: "wire.ThreadSettings") -> None:
        """The thread is set up like this. What somebody else has changed is taken over; what the user chose meanwhile stays."""
        mode, model, effort = self._sent
        if now.model and now.model != model:
            self.model = now.model
        if now.effort and now.effort != effort:
            self._effort = now.effort
        plans = _way_of(now.collaboration_mode) == "plan"
        self._may_plan |= plans
        approval, sandbox = now.approval_policy, now.sandbox_policy
        if approval is not None and sandbox is not None and not self._are_sent(approval, sandbox):
            found = mode_under(self._session.rules, approval, sandbox, plans)
            self.mode = found if found != mode else self.mode
            self._own = _unasked(approval, sandbox)
        await self._show_and_tell()

    def _are_sent(self, approval: object, sandbox: object) -> bool:
        return self._rights is not None and self._rights == (approval, _kind_of(sandbox))

    # Showing.

    def _show(self) -> None:
        choice = settings.choices_of(
            self._models, mode=self.mode, model=self.model, effort=self._effort, summary=self._summary
        )
        session = self._session
        session.modes, session.models, session.config_options = choice.modes, choice.models, choice.options

    async def _show_and_tell(self) -> None:
        session = self._session
        mode = session.modes.current_mode_id if session.modes is not None else None
        options = list(session.config_options)
        self._show()
        if session.config_options != options:
            await session.tell_options()
        if session.modes is not None and mode is not None and session.modes.current_mode_id != mode:
            await session.update(v1.CurrentModeUpdate(session.modes.current_mode_id))


def _way_of(collaboration: Any) -> str | None:
    """`plan`, `default` or what else there may be; None if the server does not say."""
    mode = collaboration.get("mode") if isinstance(collaboration, dict) else None
    return mode if isinstance(mode, str) else None


def _kind_of(sandbox: object) -> object:
    return sandbox.get("type") if isinstance(sandbox, dict) else sandbox


def _unasked(approval: object, sandbox: object) -> Setup | None:
    """A combination that lets Codex write the workspace unasked; None for any other."""
    return Setup(approval, WORKSPACE) if _kind_of(sandbox) == "workspaceWrite" and approval != "untrusted" else None
