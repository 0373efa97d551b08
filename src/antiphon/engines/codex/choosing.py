"""What is chosen in a session. Codex takes it with every turn, so a choice counts from the next prompt on, and is sent again after a restart."""

from typing import TYPE_CHECKING, Any

from antiphon.engines.codex import settings
from antiphon.engines.codex.configured import configured
from antiphon.engines.codex.modes import mode_of, sandbox_policy, setup_of
from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Sequence

    from antiphon.agent.session import Session
    from antiphon.engines.codex import wire
    from antiphon.engines.codex.server import Server

__all__ = ["Choosing"]


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
        self._planned = False
        self._learnt = False
        self._sent: tuple[str, str, str] = ("", "", "")
        """Mode, model and effort as they were last sent: that Codex has taken them over is no news."""
        self._workspace: dict[str, Any] | None = None

    def begin(self, models: "Sequence[wire.Model]", opened: "wire.ThreadOpened") -> None:
        """Show how a thread was opened."""
        self._models = models
        self._take(opened.model, opened.reasoning_effort, opened.approval_policy, opened.sandbox)
        self._show()

    def _take(self, model: str | None, effort: str | None, approval: object, sandbox: object) -> None:
        if isinstance(sandbox, dict) and sandbox.get("type") == "workspaceWrite" and self._workspace is None:
            self._workspace = sandbox  # as the user's own configuration has it
        if settings.MODE not in self._chosen:
            self.mode = mode_of(approval, sandbox)
        if settings.MODEL not in self._chosen and model:
            self.model = model
        if settings.EFFORT not in self._chosen and effort:
            self._effort = effort

    async def learn(self, server: "Server") -> None:
        """Before the first turn: what the user has set up for Codex, so that our own words for it do not undo that."""
        if self._learnt:
            return
        self._learnt = True
        found = await configured(server, self._session.cwd)
        self._workspace = self._workspace or found.workspace
        if settings.SUMMARY not in self._chosen and found.model_reasoning_summary in settings.SUMMARIES:
            self._summary = found.model_reasoning_summary
            await self._show_and_tell()

    def follow(self, other: "Choosing") -> None:
        """Choose what was chosen in another session."""
        self.mode, self.model, self._effort, self._summary = other.mode, other.model, other._effort, other._summary
        self._chosen = set(other._chosen)

    # For Codex.

    def for_thread(self) -> dict[str, Any]:
        """What a thread is opened with: only what was chosen here, or the user's own configuration would not count."""
        chosen: dict[str, Any] = {}
        setup = setup_of(self.mode) if settings.MODE in self._chosen else None
        if setup is not None:
            chosen |= {"approvalPolicy": setup.approval, "sandbox": setup.sandbox}
        if settings.MODEL in self._chosen:
            chosen["model"] = self.model
        return chosen

    def for_turn(self) -> dict[str, Any]:
        """What a turn is started with. Codex keeps it for the turns that follow; it is sent again all the same."""
        self._sent = self.mode, self.model, self._effort
        chosen: dict[str, Any] = {"summary": self._summary}
        setup = setup_of(self.mode) if settings.MODE in self._chosen else None
        if setup is not None:
            roots = list(self._session.directories)
            chosen |= {"approvalPolicy": setup.approval, "sandboxPolicy": sandbox_policy(setup, roots, self._workspace)}
        if settings.MODEL in self._chosen:
            chosen["model"] = self.model
        if settings.EFFORT in self._chosen:
            chosen["effort"] = self._effort
        plans = setup is not None and setup.plans
        if (plans or self._planned) and self.model:
            chosen["collaborationMode"] = {
                "mode": "plan" if plans else "default",
                "settings": {
                    "model": self.model,
                    "reasoning_effort": self._effort or None,
                    "developer_instructions": None,
                },
            }
            self._planned = plans
        return chosen

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
        plans = isinstance(now.collaboration_mode, dict) and now.collaboration_mode.get("mode") == "plan"
        if now.approval_policy is not None and now.sandbox_policy is not None:
            found = mode_of(now.approval_policy, now.sandbox_policy, plans)
            self.mode = found if found != mode else self.mode
        await self._show_and_tell()

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
