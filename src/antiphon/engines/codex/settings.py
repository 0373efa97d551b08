"""The settings of a session with Codex: mode, model, effort, summary.

Codex takes them with every turn, so a change counts from the next prompt on, and is sent again after a restart of the server.
"""

from typing import TYPE_CHECKING, Final

from antiphon.engines.cli_session import (
    EFFORT,
    MODE,
    MODEL,
    SettingsSync,
    SettingsView,
    effort_option,
    mode_option,
    model_option,
)  # fmt: skip
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
    from antiphon.protocol.base import JsonObject

__all__ = ["SUMMARIES", "SUMMARY", "CodexSettings", "shown_settings"]

SUMMARY: Final = "summary"
"""The id of the setting that only Codex has."""

SUMMARIES: Final = {
    "auto": "As the model has it",
    "concise": "Concise",
    "detailed": "Detailed",
    "none": "None",
}
"""How much of its thinking the model shows."""


def shown_settings(models: "Sequence[CodexModel]", *, mode: str, model: str, effort: str, summary: str) -> SettingsView:
    """Modes, models and options as the client is shown them."""
    modes = modes_with(mode)
    offered = [v1.SessionModel(_id(each), each.display_name or _id(each), each.description or None) for each in models]
    if model not in [each.model_id for each in offered]:  # one that only the user's own configuration knows
        offered.insert(0, v1.SessionModel(model, model))
    options: list[v1.ConfigOption] = [
        mode_option(modes, mode, "When Codex asks you, and what it may do"),
        model_option(offered, model),
        *_effort(models, model, effort),
        v1.SelectConfig(
            id=SUMMARY,
            name="Summary",
            description="How much of its thinking the model shows",
            category=v1.ConfigCategory.MODEL_CONFIG,
            current_value=summary,
            options=[v1.SelectOption(value, name) for value, name in SUMMARIES.items()],
        ),
    ]
    return SettingsView(v1.ModeState(mode, modes), v1.ModelState(offered, model), options)


def _effort(models: "Sequence[CodexModel]", model: str, effort: str) -> list[v1.ConfigOption]:
    known = next((each for each in models if _id(each) == model), None)
    if known is None or not known.supported_reasoning_efforts:
        return []
    levels = [(each.reasoning_effort, each.description or None) for each in known.supported_reasoning_efforts]
    usual = known.default_reasoning_effort
    return [effort_option(levels, effort, usual if usual in [level for level, _ in levels] else levels[0][0])]


def _id(model: "CodexModel") -> str:
    return model.model or model.id


_NOT_KNOWN: Final = (
    "Codex does not report how the sandbox of the workspace is configured, and without that it might allow too much"
)
_ACCEPTING: Final = frozenset({"acceptEdits", "dontAsk"})


class CodexSettings(SettingsSync):
    """Mode, model, effort and summary of one session."""

    def __init__(self, session: "AgentSession") -> None:
        super().__init__(session)
        self._models: Sequence[CodexModel] = ()
        self._summary = "auto"
        self._may_plan = True
        """Codex may be in its plan mode: a thread keeps it until it is changed, also from one server to the next."""
        self._learnt = False
        self._sent: tuple[str, str, str] = ("", "", "")
        """Mode, model and effort as they were last sent: Codex reports them, which is no change."""
        self._rights: tuple[object, object] | None = None
        """Approval and sandbox as they were last sent, where they are other than the mode's own."""
        self._own: ModeSetup | None = None
        """The user's own settings, if they match no mode and let Codex write the workspace without asking."""
        self._workspace: JsonObject | None = None
        self.has_profile = False
        """Whether the thread was opened so that a turn can be made read-only whatever Codex's own rules allow."""

    def begin(self, models: "Sequence[wire.CodexModel]", opened: "wire.ThreadOpened") -> None:
        """Show the settings that a thread was opened with."""
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
            self.mode = mode_under(self._session.host.rules, opened.approval_policy, sandbox, way == "plan")
            self._own = _writes_unasked(opened.approval_policy, sandbox)
        if MODEL not in self._chosen and model:
            self.model = model
        if EFFORT not in self._chosen and effort:
            self.effort = effort

    async def learn(self, server: "CodexServer") -> None:
        """Read the user's own configuration before the first turn, so that what we send does not undo it.

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
                    Code.INTERNAL_ERROR,
                    _NOT_KNOWN,
                    {"kind": "configuration", "details": str(error)},
                    hint="send your prompt again, or choose another mode",
                ) from error
            return  # and asked again before the next turn
        self._learnt = True
        self._workspace = self._workspace or found.workspace
        if SUMMARY not in self._chosen and found.model_reasoning_summary in SUMMARIES:
            self._summary = found.model_reasoning_summary
            await self._show_and_send()

    def follow(self, other: "CodexSettings") -> None:
        """Take over the settings of another session."""
        self.mode, self.model, self.effort, self._summary = other.mode, other.model, other.effort, other._summary
        self._chosen, self._rights, self._own = set(other._chosen), other._rights, other._own

    # For requests that are answered in the user's place.

    @property
    def accepts_edits(self) -> bool:
        """Whether the user is not asked about edits of the workspace."""
        return not self._session.host.read_only and (self.mode in _ACCEPTING or self._own_mode is not None)

    @property
    def never_asks(self) -> bool:
        """Whether the user is asked about nothing."""
        return self.mode == "dontAsk" and not self._session.host.read_only

    @property
    def also_writable(self) -> "Sequence[str]":
        """Directories that the user's own configuration counts to the workspace."""
        roots = (self._workspace or {}).get("writableRoots")
        return [root for root in roots if isinstance(root, str)] if isinstance(roots, list) else []

    # For Codex.

    @property
    def _setup(self) -> "ModeSetup | None":
        """The setup of the mode, if one was chosen."""
        setup = setup_of(self.mode) if MODE in self._chosen else None
        return None if setup is None else held(setup, self._session.host.rules)

    @property
    def _own_mode(self) -> "ModeSetup | None":
        return None if self.mode in MODES else self._own

    @property
    def _setup_of_turn(self) -> "ModeSetup | None":
        """The setup of a turn, also where no mode was chosen: the user's own configuration may let Codex do anything unasked."""
        if self._setup is not None:
            return self._setup
        rules = self._session.host.rules
        own = setup_of(self.mode) or self._own_mode
        if own is None:
            return held(MODES["default"][1], rules) if is_held(rules) else None
        sent = held(own, rules)
        if own is self._own_mode and not is_held(rules):
            sent = ModeSetup(own.approval, sent.sandbox)
        return sent if is_held(rules) or sent != own else None

    def begin_rights(self) -> "JsonObject":
        """Return approval policy and sandbox of the turn that begins now; empty if the user's configuration has them."""
        setup = self._setup_of_turn
        if setup is None:
            return {}
        usual = setup_of(self.mode) or self._own_mode
        sandbox = sandbox_policy(setup, usual, list(self._session.directories), self._workspace)
        self._rights = (setup.approval, sandbox["type"]) if setup != setup_of(self.mode) else None
        return {"approvalPolicy": setup.approval, "sandboxPolicy": sandbox}

    def for_thread(self) -> "JsonObject":
        """Return the settings that a thread is opened with: only those that were chosen here, or the user's own would not count."""
        chosen: JsonObject = {}
        setup = self._setup
        if setup is not None:
            chosen |= {"approvalPolicy": setup.approval, "sandbox": setup.sandbox}
        if MODEL in self._chosen:
            chosen["model"] = self.model
        return chosen

    def begin_turn(self) -> "JsonObject":
        """Return the settings of the turn that begins now. Codex keeps them for the turns that follow; they are sent again all the same."""
        self._sent = self.mode, self.model, self.effort
        chosen: JsonObject = {"summary": self._summary}
        setup = self._setup_of_turn
        chosen |= self.begin_rights()
        if self._session.host.read_only:
            chosen |= self._read_only(chosen)
        if MODEL in self._chosen:
            chosen["model"] = self.model
        if EFFORT in self._chosen:
            chosen["effort"] = self.effort
        if setup is not None and (setup.plans or self._may_plan) and self.model:
            chosen["collaborationMode"] = {
                "mode": "plan" if setup.plans else "default",
                "settings": {
                    "model": self.model,
                    "reasoning_effort": self.effort or None,
                    "developer_instructions": None,
                },
            }
            self._may_plan = True
        return chosen

    def _read_only(self, chosen: "JsonObject") -> "JsonObject":
        """Return the rights of a turn that changes nothing, whatever was chosen."""
        plan = MODES["plan"][1]
        if not self.has_profile:
            return {"approvalPolicy": plan.approval, "sandboxPolicy": sandbox_policy(plan, plan, [], None)}
        chosen.pop("sandboxPolicy", None)  # there is the one or the other
        return {"approvalPolicy": plan.approval, "permissions": PROFILE}

    # The client changes a setting.

    def set_option(self, name: str, value: str) -> None:
        """Change a setting from the next turn on."""
        self._chosen.add(name)
        if name == MODE:
            self.mode = value
        elif name == MODEL:
            self.model = value
        elif name == EFFORT:
            self.effort = value
        elif name == SUMMARY:
            self._summary = value
        self._show()

    # Codex changes a setting.

    async def model_is(self, model: str) -> None:
        """Codex uses this model."""
        if model and model != self.model:
            self.model = model
            await self._show_and_send()

    async def settings_are(self, now: "wire.ThreadSettings") -> None:
        """The thread has these settings. What another program has changed is taken over; what the user chose meanwhile stays."""
        mode, model, effort = self._sent
        if now.model and now.model != model:
            self.model = now.model
        if now.effort and now.effort != effort:
            self.effort = now.effort
        plans = _way_of(now.collaboration_mode) == "plan"
        self._may_plan |= plans
        approval, sandbox = now.approval_policy, now.sandbox_policy
        if approval is not None and sandbox is not None and not self._are_sent(approval, sandbox):
            found = mode_under(self._session.host.rules, approval, sandbox, plans)
            self.mode = found if found != mode else self.mode
            self._own = _writes_unasked(approval, sandbox)
        await self._show_and_send()

    def _are_sent(self, approval: object, sandbox: object) -> bool:
        return self._rights is not None and self._rights == (approval, _kind_of(sandbox))

    def shown(self) -> SettingsView:
        return shown_settings(self._models, mode=self.mode, model=self.model, effort=self.effort, summary=self._summary)


def _way_of(collaboration: object) -> str | None:
    """`plan`, `default` or what else there may be; None if the server does not report it."""
    mode = collaboration.get("mode") if isinstance(collaboration, dict) else None
    return mode if isinstance(mode, str) else None


def _kind_of(sandbox: object) -> object:
    return sandbox.get("type") if isinstance(sandbox, dict) else sandbox


def _writes_unasked(approval: object, sandbox: object) -> ModeSetup | None:
    """A combination that lets Codex write the workspace unasked; None for any other."""
    return ModeSetup(approval, WORKSPACE) if _kind_of(sandbox) == "workspaceWrite" and approval != "untrusted" else None
