"""What the user can choose in a session with Codex: mode, model, effort, summary. Pure values, made from what the server says it has."""

from typing import TYPE_CHECKING, Any, Final

import msgspec

from antiphon.engines.codex.modes import (
    MODES,
    PROFILE,
    WORKSPACE,
    ModeSetup,
    held,
    is_held,
    mode_under,
    modes_with,
    sandbox_policy,
    setup_of,
)
from antiphon.engines.codex.thread import read_config
from antiphon.engines.process import CliRefused
from antiphon.errors import Code, RemoteProtocolError, RequestError
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.agent.session import AgentSession
    from antiphon.engines.codex import wire
    from antiphon.engines.codex.server import CodexServer
    from antiphon.engines.codex.wire import CodexModel

__all__ = ["EFFORT", "MODE", "MODEL", "SUMMARIES", "SUMMARY", "Choice", "CodexSettings", "choices_of"]

MODE: Final = "mode"
MODEL: Final = "model"
EFFORT: Final = "effort"
SUMMARY: Final = "summary"
"""The ids of the settings."""

SUMMARIES: Final = {
    "auto": "As the model has it",
    "concise": "Concise",
    "detailed": "Detailed",
    "none": "None",
}
"""How much of its thinking the model tells."""


class Choice(msgspec.Struct, frozen=True):
    """All that a session shows."""

    modes: v1.ModeState
    models: v1.ModelState
    options: list[v1.ConfigOption]


def choices_of(models: "Sequence[CodexModel]", *, mode: str, model: str, effort: str, summary: str) -> Choice:
    """Modes, models and settings, with what is chosen."""
    modes = modes_with(mode)
    offered = [v1.SessionModel(_id(each), each.display_name or _id(each), each.description or None) for each in models]
    if model not in [each.model_id for each in offered]:  # one that only the user's own configuration knows
        offered.insert(0, v1.SessionModel(model, model))
    options: list[v1.ConfigOption] = [
        v1.SelectConfig(
            id=MODE,
            name="Mode",
            description="When Codex asks you, and what it may do",
            category=v1.ConfigCategory.MODE,
            current_value=mode,
            options=[v1.SelectOption(each.id, each.name, each.description) for each in modes],
        ),
        v1.SelectConfig(
            id=MODEL,
            name="CodexModel",
            category=v1.ConfigCategory.MODEL,
            current_value=model,
            options=[v1.SelectOption(each.model_id, each.name, each.description) for each in offered],
        ),
        *_effort(models, model, effort),
        v1.SelectConfig(
            id=SUMMARY,
            name="Summary",
            description="How much of its thinking the model tells",
            category=v1.ConfigCategory.MODEL_CONFIG,
            current_value=summary,
            options=[v1.SelectOption(value, name) for value, name in SUMMARIES.items()],
        ),
    ]
    return Choice(v1.ModeState(mode, modes), v1.ModelState(offered, model), options)


def _effort(models: "Sequence[CodexModel]", model: str, effort: str) -> list[v1.ConfigOption]:
    known = next((each for each in models if _id(each) == model), None)
    levels = known.supported_reasoning_efforts if known is not None else ()
    names = [each.reasoning_effort for each in levels]
    if not names or known is None:
        return []
    usual = known.default_reasoning_effort if known.default_reasoning_effort in names else names[0]
    return [
        v1.SelectConfig(
            id=EFFORT,
            name="Effort",
            description="How much the model thinks",
            category=v1.ConfigCategory.THOUGHT_LEVEL,
            current_value=effort if effort in names else usual or names[0],
            options=[
                v1.SelectOption(each.reasoning_effort, each.reasoning_effort.capitalize(), each.description or None)
                for each in levels
            ],
        )
    ]


def _id(model: "CodexModel") -> str:
    return model.model or model.id


# --- What is chosen in a session. Codex takes it with every turn, so a choice counts from the next prompt on, and is sent again after a restart

_NOT_KNOWN: Final = (
    "Codex does not tell how the sandbox of the workspace is configured, and without that it might allow too much\n"
    "hint: send your prompt again, or choose another mode"
)
_ACCEPTING: Final = frozenset({"acceptEdits", "dontAsk"})


class CodexSettings:
    """Mode, model, effort and summary of one session."""

    def __init__(self, session: "AgentSession") -> None:
        self._session = session
        self._models: Sequence[wire.CodexModel] = ()
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
        self._own: ModeSetup | None = None
        """The user's own settings, if they match no mode and let Codex write the workspace without asking."""
        self._workspace: dict[str, Any] | None = None
        self.has_profile = False
        """Whether the thread was opened so that a turn can be kept to looking whatever Codex's own rules allow."""

    def begin(self, models: "Sequence[wire.CodexModel]", opened: "wire.ThreadOpened") -> None:
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
        if MODE not in self._chosen and not self._are_sent(opened.approval_policy, sandbox):
            self.mode = mode_under(self._session.rules, opened.approval_policy, sandbox, way == "plan")
            self._own = _unasked(opened.approval_policy, sandbox)
        if MODEL not in self._chosen and model:
            self.model = model
        if EFFORT not in self._chosen and effort:
            self._effort = effort

    async def learn(self, server: "CodexServer") -> None:
        """Before the first turn: what the user has set up for Codex, so that our own words for it do not undo that.

        Raises:
            RequestError: that is not known, and the sandbox of the turn might be wider than the user's own.
        """
        if self._learnt:
            return
        try:
            found = await read_config(server, self._session.cwd)
        except (CliRefused, RemoteProtocolError) as error:
            setup = self._setup_of_turn
            if setup is not None and setup.sandbox == WORKSPACE and self._workspace is None:
                raise RequestError(
                    Code.INTERNAL_ERROR, _NOT_KNOWN, {"kind": "configuration", "details": str(error)}
                ) from error
            return  # and asked again before the next turn
        self._learnt = True
        self._workspace = self._workspace or found.workspace
        if SUMMARY not in self._chosen and found.model_reasoning_summary in SUMMARIES:
            self._summary = found.model_reasoning_summary
            await self._show_and_tell()

    def follow(self, other: "CodexSettings") -> None:
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
    def _setup(self) -> "ModeSetup | None":
        """What the mode is made of, if one was chosen."""
        setup = setup_of(self.mode) if MODE in self._chosen else None
        return None if setup is None else held(setup, self._session.rules)

    @property
    def _own_mode(self) -> "ModeSetup | None":
        return None if self.mode in MODES else self._own

    @property
    def _setup_of_turn(self) -> "ModeSetup | None":
        """The same for a turn, also where no mode was chosen: the user's own configuration may let Codex do anything unasked."""
        if self._setup is not None:
            return self._setup
        rules = self._session.rules
        own = setup_of(self.mode) or self._own_mode
        if own is None:
            return held(MODES["default"][1], rules) if is_held(rules) else None
        sent = held(own, rules)
        if own is self._own_mode and not is_held(rules):
            sent = ModeSetup(own.approval, sent.sandbox)
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
        if MODEL in self._chosen:
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
        if MODEL in self._chosen:
            chosen["model"] = self.model
        if EFFORT in self._chosen:
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
        if name == MODE:
            self.mode = value
        elif name == MODEL:
            self.model = value
        elif name == EFFORT:
            self._effort = value
        elif name == SUMMARY:
            self._summary = value
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
        choice = choices_of(self._models, mode=self.mode, model=self.model, effort=self._effort, summary=self._summary)
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


def _unasked(approval: object, sandbox: object) -> ModeSetup | None:
    """A combination that lets Codex write the workspace unasked; None for any other."""
    return ModeSetup(approval, WORKSPACE) if _kind_of(sandbox) == "workspaceWrite" and approval != "untrusted" else None
