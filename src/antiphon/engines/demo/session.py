"""A session of the demo: its stored state, its permissions, and the command that answers a prompt."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from antiphon.agent.session import watch_updates
from antiphon.engines.base import EngineSession
from antiphon.engines.demo.commands import all_commands
from antiphon.engines.demo.store import DemoState
from antiphon.engines.demo.workspace import describe
from antiphon.errors import Code, RequestError, RequestRefused, sentence_and_hint
from antiphon.protocol import v1
from antiphon.store.errors import UNSAVED, StoreError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from antiphon.agent.agent import Outcome
    from antiphon.agent.session import AgentSession
    from antiphon.agent.tools import LiveCall
    from antiphon.agent.turn import AgentTurn
    from antiphon.engines.demo.store import DemoStore

__all__ = ["MODELS", "MODES", "OPTIONS", "DemoSession", "UpdateMerger"]

_TEXTS: Final = (v1.AgentMessageChunk, v1.AgentThoughtChunk, v1.UserMessageChunk)


class UpdateMerger:
    """The updates of a session that are worth storing, with the pieces of one text as one piece."""

    def __init__(self, write: "Callable[[list[v1.Update]], None]") -> None:
        self._write = write
        self._kind: type | None = None
        self._pieces: list[str] = []

    def note(self, update: "v1.Update") -> None:
        """Count one more update that was sent."""
        if isinstance(update, v1.SettingsUpdate | v1.Unknown):
            return
        if isinstance(update, _TEXTS) and isinstance(update.content, v1.TextBlock) and update.message_id is None:
            if type(update) is not self._kind:
                self.flush()
                self._kind = type(update)
            self._pieces.append(update.content.text)
            return
        self.flush()
        self._write([update])

    def flush(self) -> None:
        """Hand on what was gathered."""
        if self._kind is not None:
            whole = v1.TextBlock("".join(self._pieces))
            self._write([self._kind(whole)])
        self._kind, self._pieces = None, []


# What can be chosen in a session of the demo: modes, models, and one setting of every category.

MODES: Final = v1.ModeState(
    "default",
    [
        v1.Mode("default", "Ask first", "Asks before it writes or runs anything"),
        v1.Mode("plan", "Only look", "Writes nothing and runs nothing"),
    ],
)

MODELS: Final = v1.ModelState(
    [v1.SessionModel("echo", "Echo", "Answers at once"), v1.SessionModel("canon", "Canon", "Answers twice")], "echo"
)


OPTIONS: Final[tuple[v1.ConfigOption, ...]] = (
    v1.SelectConfig(
        id="mode",
        name="Mode",
        category=v1.ConfigCategory.MODE,
        current_value="default",
        options=[v1.SelectOption(mode.id, mode.name, mode.description) for mode in MODES.available_modes],
    ),
    v1.SelectConfig(
        id="model",
        name="Model",
        category=v1.ConfigCategory.MODEL,
        current_value="echo",
        options=[
            v1.SelectGroup("one", "One voice", [v1.SelectOption("echo", "Echo")]),
            v1.SelectGroup("two", "Two voices", [v1.SelectOption("canon", "Canon")]),
        ],
    ),
    v1.SelectConfig(
        id="length",
        name="Length of answers",
        category=v1.ConfigCategory.MODEL_CONFIG,
        current_value="long",
        options=[v1.SelectOption("short", "Short"), v1.SelectOption("long", "Long")],
    ),
    v1.SelectConfig(
        id="thinking",
        name="Thinking",
        category=v1.ConfigCategory.THOUGHT_LEVEL,
        current_value="off",
        options=[v1.SelectOption("off", "Off"), v1.SelectOption("on", "Aloud")],
    ),
    v1.BooleanConfig(id="greeting", name="Greet", description="Greet before answering", current_value=False),
)
"""One setting of every category, and one that is on or off. They are frozen, so all sessions share them."""


TITLE_LENGTH = 60

_log = logging.getLogger(__name__)


class DemoSession(EngineSession):
    """A session of the demo."""

    def __init__(self, session: "AgentSession", store: "DemoStore") -> None:
        self.session = session
        self.state = DemoState()
        self._store = store
        self._is_stored = True
        self._journal = UpdateMerger(self._append)
        self._commands = all_commands()
        self._changed = False
        self._creating: asyncio.Future[object] | None = None

    # Opening.

    async def create(self) -> None:
        """Create a new session. The client does not wait for the disk, which takes longer than all the rest; the first prompt does."""
        self._creating = self._store.create(self.session)
        await self._begin()

    async def _created(self) -> None:
        creating, self._creating = self._creating, None
        if creating is not None:
            try:
                await creating
            except StoreError as error:
                await self._keep_nothing(error)

    async def restore(self) -> None:
        """Restore a session as it was left; what ran then is marked as ended."""
        self.state = await self._store.find(self.session.id, self.session.cwd)
        if calls := await self._store.open_calls(self.session.id):
            self._append([v1.ToolCallUpdate(id, status=v1.ToolStatus.FAILED) for id in calls])
        await self._begin()

    async def copy(self, source: str) -> None:
        """Fork another session."""
        self.state = await self._store.fork(self.session, source)
        await self._begin()

    async def replay(self) -> None:
        """Send the history again."""
        watch_updates(self.session, None)
        async for update in self._store.history(self.session.id):
            await self.session.update(update)
        watch_updates(self.session, self._journal.note)

    async def _begin(self) -> None:
        session, state = self.session, self.state
        session.host.id_count = state.numbers
        session.modes, session.models, session.config_options = MODES, MODELS, OPTIONS
        session.host.settings.choose_mode(state.mode)
        for key, value in state.options.items():
            session.host.settings.choose_option(key, value)
        await session.offer(
            *(
                v1.Command(act.name, act.description, v1.CommandInput(act.hint) if act.hint else None)
                for act in self._commands.values()
            )
        )
        watch_updates(session, self._journal.note)

    # Working.

    async def prompt(self, turn: "AgentTurn") -> "Outcome":
        await self._created()
        self.state.prompts += 1
        for block in turn.prompt:  # with an id, or two prompts in a row would be replayed as one
            self._journal.note(
                v1.UserMessageChunk(block, message_id=f"prompt-{self.session.host.id_prefix}{self.state.prompts}")
            )
        try:
            if self.state.title is None:
                await self.entitle(_title(turn))
            return await self._answer(turn)
        finally:
            await self.remember()

    async def _answer(self, turn: "AgentTurn") -> "Outcome":
        if turn.command is None:
            return await describe(self, turn)
        name, rest = turn.command
        act = self._commands.get(name)
        if act is None:
            await turn.say(f"I do not know `/{name}`. `/help` lists what I know.")
            return None
        try:
            return await act.run(self, turn, rest)
        except RequestRefused as error:  # a refusal of the client is for the user, and no error of the turn
            await turn.say(f"Your client refused: {error.reason}")
            return None

    async def allowed(self, turn: "AgentTurn", call: "LiveCall", kind: v1.ToolKind, what: str) -> bool:
        """Whether a call that changes something may run: never in the read-only mode, else as the user decides or has decided.

        "Always" is for this very command or file, in this directory.
        """
        key = f"{kind} {what}"
        if self.setting("mode") == "plan":
            call.fail()
            await turn.say("I only look in this mode: switch it to “Ask first” (`/mode default`) and I will ask you.")
            return False
        always = self.state.always.get(key)
        if always is None:
            answer = await call.permitted()
            always = bool(answer)
            if answer.always:
                self.state.always[key] = always
        if always:
            await call.start()
        else:
            call.fail()
            await turn.say("You did not allow it, so nothing was done.")
        return always

    def inside(self, turn: "AgentTurn", path: str) -> Path:
        """A path of the workspace, with no way out of it. The last part is taken as it is: a link is a thing to delete or move, too."""
        from antiphon.local.problems import FileProblem
        from antiphon.local.roots import Roots

        try:
            place = Path(turn.path(path))
            return Roots([self.session.cwd, *self.session.directories]).resolve(place.parent) / place.name
        except FileProblem as error:
            raise RequestError(Code.INVALID_PARAMS, "Invalid params", str(error)) from error

    def setting(self, key: str) -> bool | str | None:
        """The value of a setting."""
        for option in self.session.config_options:
            if isinstance(option, v1.SelectConfig | v1.BooleanConfig) and option.id == key:
                return option.current_value
        return None

    # Storing.

    async def entitle(self, title: str) -> None:
        """Give the session a title, and keep it."""
        self.state.title = title
        await self.session.entitle(title)
        if self._is_stored:
            try:
                await self._store.rename(self.session.id, title)
            except StoreError as error:
                await self._keep_nothing(error)

    async def remember(self) -> None:
        """Keep what has happened and how things stand."""
        self._changed = False
        self._journal.flush()
        self.state.mode = self.session.modes.current_mode_id if self.session.modes else "default"
        self.state.options = {
            option.id: option.current_value
            for option in self.session.config_options
            if isinstance(option, v1.SelectConfig | v1.BooleanConfig)
        }
        self.state.numbers = self.session.host.id_count
        if self._is_stored:
            try:
                await self._store.save(self.session.id, self.state)
            except StoreError as error:
                await self._keep_nothing(error)

    def _append(self, updates: "list[v1.Update]") -> None:
        if self._is_stored:
            self._store.append(self.session.id, updates)

    async def _keep_nothing(self, error: StoreError) -> None:
        """Go on without storing the session, and show one notice."""
        _log.warning("the session is not kept: %s", error)
        self._is_stored = False
        sentence, hint = sentence_and_hint(error)
        description = f"{sentence}: {hint}" if hint else sentence
        await self.session.notice("This session is not kept", description, v1.NoticeSeverity.WARNING, meta=UNSAVED)

    def set_mode(self, mode_id: str) -> None:
        self._changed = True

    def set_model(self, model_id: str) -> None:
        self._changed = True

    def set_config_option(self, config_id: str, value: bool | str) -> None:
        self._changed = True

    async def close(self) -> None:
        await self._created()
        if self._changed:  # a thousand unused sessions close without a thousand waits for the disk
            await self.remember()
        await self._store.release(self.session.id)


def _title(turn: "AgentTurn") -> str:
    line = " ".join(turn.text.split())
    return (line[: TITLE_LENGTH - 1] + "…" if len(line) > TITLE_LENGTH else line) or "Without words"
