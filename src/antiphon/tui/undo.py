"""Undo in the chat: a snapshot before and after each turn, the way back to an earlier prompt, and the way forward again.

Rule 1: what turns changed is brought back. What changed only between them is the user's own work and stays; where both changed a file, the
user is asked.
Rule 2: the session is forked before the prompt. An agent that cannot do that gets a new session, and with its next prompt the transcript.
Rule 3: until the next prompt `/redo` takes all of it back: the files from a snapshot, and the earlier session, which is still open.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec
from rich.console import RenderableType
from rich.text import Text

from antiphon.errors import AcpError, RequestRefused
from antiphon.protocol import v1
from antiphon.snapshots.entries import DIRECTORY, differences
from antiphon.snapshots.plan import RestorePlan, RestoreStep, TreeTurn, restore_plan
from antiphon.snapshots.restore import Interrupted, Restored, forget_interrupted, interrupted, restore
from antiphon.snapshots.store import SnapshotStore, UndoPoint, WorkspaceSnapshot, sweep_stores
from antiphon.snapshots.walk import TreeTooLarge
from antiphon.text import prose
from antiphon.transcript.entries import Entry, Message, lines_of
from antiphon.transcript.fork_point import CUTS_FORKS, cut_point, fork_meta, text_in
from antiphon.tui.output.session_diff import SessionChange, session_changes
from antiphon.tui.painter import Painter, exact, one_line
from antiphon.tui.panels import KeyPanel, MenuPanel, fit, key_lines

if TYPE_CHECKING:
    from antiphon.client.session import ClientSession
    from antiphon.tui.chat import Chat

__all__ = ["ChatUndo", "UndoPanel", "context_of"]

WARM_TIME: Final = 30.0
"""Seconds for the first look, which runs while the user reads and types. A prompt ends it early."""

AFTER_TIME: Final = 10.0
"""Seconds for a look after a turn, when nothing waits for it."""

TURN_END_TIME: Final = 1.0
"""Seconds that the end of a turn is shown later, at most, until its changes are known. 20,000 files take 0.2."""

CLOSE_TIME: Final = 2.0
"""Seconds for it when the chat ends."""

OFFERED: Final = 9
"""Prompts in the menu, each with a digit. `/undo 12` reaches further."""

NAMED: Final = 200
"""Files of a turn that are noted with it."""

SHOWN: Final = 8
"""Files that are listed afterwards."""

PROMPT_LENGTH: Final = 48
"""Characters of a prompt that are shown: with the number of files it fits into a line of 80."""

REMOTE: Final = "the agent works on another machine"

CONTEXT_LIMIT: Final = 24_000
"""Characters of the transcript that a new session gets: its last ones."""

_log = logging.getLogger(__name__)

Choice: TypeAlias = Literal["all", "keep", "conversation", "files"]


@dataclass
class _Redo:
    """What takes an undo back."""

    plans: list[RestorePlan]
    prompt: str
    session: "ClientSession | None" = None
    """The session that was left; None: it was not."""
    points: list[UndoPoint] = field(default_factory=list)
    context: str = ""


class UndoPanel(KeyPanel[Choice | None]):
    """The question before an undo: which files it touches, and which of them changed since."""

    def __init__(self, prompt: str, plans: Sequence[RestorePlan], why: str = "") -> None:
        super().__init__(None)
        self._prompt = prompt
        self._plans = plans
        self._why = why
        """Why no file can be brought back; empty: they can."""
        self._changed = any(plan.changed_since for plan in plans)
        self._steps = any(plan.steps for plan in plans)

    def lines(self, painter: Painter, height: int) -> list[str]:
        """Return what happens to each file, and the keys."""
        above: list[RenderableType] = [
            Text.assemble(("Go back to before ", "question"), (f"“{_short(self._prompt)}”", "bold"))
        ]
        if self._why:
            above.append(Text(f"Files stay as they are: {self._why}", "warning"))
        if self._changed:
            above.append(Text("Files marked with ! were also changed outside of the turns.", "warning"))
        return fit(painter, above, painter.all(self._rows()), key_lines(self._keys(), painter.width), height)[0]

    def _rows(self) -> list[RenderableType]:
        rows: list[RenderableType] = []
        for plan in self._plans:
            changed, name = set(plan.changed_since), _names(self._plans[0].root, plan.root)
            # What changed since comes first: it is what the question is about.
            for step in sorted(plan.files, key=lambda each: each.path not in changed):
                mark = ("! ", "question") if step.path in changed else ("  ", "")
                rows.append(Text.assemble(mark, (f"{_verb(step):<11}", "dim"), name(step.path)))
            rows += [Text(f"  not covered: {name(path)} ({why})", "dim") for path, why in plan.lost.items()]
        return rows

    def _keys(self) -> list[tuple[str, str]]:
        if not self._steps:
            return [("y", "yes, the conversation"), ("n", "no")]
        keys = [("y", "all of it" if self._changed else "files and conversation")]
        keys += [("k", "keep those with !")] if self._changed else []
        return [*keys, ("c", "conversation only"), ("f", "files only"), ("n", "no")]

    def answers(self, key: str) -> bool:
        """Return whether the key is one of those that are shown."""
        return key in {shown for shown, _ in self._keys()}

    def denies(self, key: str) -> bool:
        """Return whether the key leaves everything as it is."""
        return key == "n"

    def take(self, key: str) -> None:
        """Take the answer."""
        answers: dict[str, Choice] = {
            "y": "all" if self._steps else "conversation",
            "k": "keep",
            "c": "conversation",
            "f": "files",
        }
        self.give(answers.get(key))


def _names(first: bytes, root: bytes) -> Callable[[bytes], str]:
    """How a path of a directory is shown: those of the first one without it."""
    return lambda path: exact(os.fsdecode(path if root == first else os.path.join(root, path)))


def _verb(step: RestoreStep) -> str:
    if step.then is None:
        return "remove"
    if step.now is None:
        return "bring back"
    if (step.now.kind, step.now.digest) == (step.then.kind, step.then.digest):
        return "mode"
    return "restore"


class ChatUndo:
    """The undo of one chat."""

    def __init__(self, chat: "Chat", *, keeps_files: bool = True) -> None:
        self._chat = chat
        self._keeps_files = keeps_files
        self._store: SnapshotStore | None = None
        self._why = ""
        """Why files cannot be brought back here."""
        self._points: list[UndoPoint] = []
        self._before: WorkspaceSnapshot | None = None
        self._next: UndoPoint | None = None
        """The prompt that is about to be sent."""
        self._context = ""
        """The transcript that the next prompt has to bring."""
        self._redo: _Redo | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._warned = False

    # What the chat reports.

    def entered(self, session: "ClientSession") -> None:
        """A session was opened: look at its directories in the background, so that the first prompt need not wait."""
        if self._chat.opened is None or not self._chat.opened.local:
            self._why = REMOTE
            return
        self._redo, self._context = None, ""
        if not self._keeps_files:
            self._why, self._points = "`chat.undo` is off in your config file", []
            return
        roots = _roots([session.cwd, *session.directories])
        if self._store is None or self._store.roots != roots:
            self._store, self._why, self._warned = SnapshotStore(roots), "", False
            self._begin(self._warm_up(self._store))
        self._points = self._store.points(session.id)

    async def _warm_up(self, store: SnapshotStore) -> None:
        if await asyncio.to_thread(interrupted, store) is not None:
            self._chat.note("An undo was interrupted here: `/undo finish` completes it, `/undo back` takes it back.")
        await asyncio.to_thread(sweep_stores)
        await self._look(store, WARM_TIME)

    async def before(self, text: str, blocks: "list[v1.ContentBlock]") -> "list[v1.ContentBlock]":
        """A prompt is about to be sent: remember how the files look. Return the prompt, with what the agent has to be given besides."""
        if self._context:
            blocks = [v1.TextBlock(self._context), *blocks]
        if (redo := self._redo) is not None and redo.session is not None:
            self._begin(_closed(redo.session))
        self._redo, self._context = None, ""
        self._before = None if self._store is None else await self._look(self._store)
        number = 0 if self._before is None else self._before.number
        self._next = UndoPoint(self._chat.session.id, text, time.time(), number, sent=text_in(blocks))
        return blocks

    def sent(self) -> None:
        """The prompt was sent, so there is something to go back to."""
        if self._next is not None:
            self._points.append(self._next)
            self._begin(self._save([self._next]))
            self._next = None

    async def after(self) -> None:
        """Look at the files when a turn is over. What the user changes from then on is the user's, so that is waited for a moment."""
        if self._points and self._store is not None and self._before is not None:
            is_seen = asyncio.Event()
            self._begin(self._look_after(self._store, self._points[-1], self._before, is_seen))
            with suppress(TimeoutError):
                async with asyncio.timeout(TURN_END_TIME):
                    await is_seen.wait()

    async def _look_after(
        self, store: SnapshotStore, point: UndoPoint, before: WorkspaceSnapshot, is_seen: asyncio.Event
    ) -> None:
        try:
            taken = await self._look(store, AFTER_TIME)
        finally:
            is_seen.set()
        if taken is None:
            return
        changed = [
            os.fsdecode(each.path)
            for old, new in zip(before.trees, taken.trees, strict=True)
            for each in differences(old, new)
            if DIRECTORY not in (each.old and each.old.kind, each.new and each.new.kind)
        ]
        point.after, point.changed, point.changed_count = taken.number, _texts(changed[:NAMED]), len(changed)
        await self._save([point])

    async def close(self) -> None:
        """Wait for looks that run."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=CLOSE_TIME)

    def _begin(self, work: "Coroutine[None, None, None]") -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("undo: %s", error, exc_info=error)

    async def _look(self, store: SnapshotStore, seconds: float | None = None) -> WorkspaceSnapshot | None:
        """Take a snapshot. That it cannot be taken is shown once, and keeps no prompt from being sent."""
        if self._why:
            return None
        try:
            return await (store.take() if seconds is None else store.take(seconds))
        except TreeTooLarge as error:
            self._why = str(error)  # and is not tried again: it would take as long each time
            self._warn(self._why)
        except OSError as error:
            _log.info("no snapshot: %s", error)
            self._warn(error.strerror or str(error))
        except Exception as error:
            _log.exception("no snapshot")
            self._warn(str(error))
        return None

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            self._chat.note(f"Undo will not bring files back: {why}.")

    async def _save(self, points: Sequence[UndoPoint]) -> None:
        """Store prompts. A label stands for pasted text in this chat alone, so the text itself is stored."""
        if self._store is None:
            return
        unfolded = self._chat.window.line.unfolded
        whole = [msgspec.structs.replace(point, prompt=unfolded(point.prompt)) for point in points]
        try:
            await asyncio.to_thread(self._store.add_points, whole)
        except (OSError, UnicodeError) as error:
            _log.info("the prompts for undo are not stored: %s", error)

    # The way back.

    async def undo(self, rest: str) -> None:
        """Go back to before an earlier prompt: the one that the user chooses, or the Nth from the end."""
        word = rest.strip()
        if word in ("finish", "back"):
            await self._complete(word)
            return
        if self._why == REMOTE:
            raise AcpError("there is no undo with a remote agent: its files are on another machine")
        if not self._points:
            raise AcpError("there is no prompt to go back to", hint="undo knows prompts that were sent in a chat here")
        number = await self._chosen(word)
        if number is not None:
            await self._go_back(len(self._points) - number)

    async def changes(self) -> list[SessionChange] | None:
        """Return what the turns of this session changed in files, as far back as snapshots are kept; None: that is not known."""
        if self._store is None or not self._points:
            return None
        await self._settled()
        kept = {0, *await asyncio.to_thread(self._store.numbers)}
        first = next((place for place, point in enumerate(self._points) if point.before in kept), 0)
        if first:
            self._chat.note(f"From “{_short(self._points[first].prompt)}” on: earlier snapshots are not kept any more.")
        plans, why = await self._plans(first)
        return None if why else await session_changes(self._store, plans)

    async def _chosen(self, word: str) -> int | None:
        points = self._points
        if word:
            if not (word.isascii() and word.isdigit() and 0 < int(word) <= len(points)):
                there = "is 1 prompt" if len(points) == 1 else f"are {len(points)} prompts"
                raise AcpError(f"`/undo {word}` means no prompt", hint=f"there {there} to go back to, 1 is the last")
            return int(word)
        await self._settled()
        rows: list[tuple[str, str, str | None]] = [
            (str(number), _short(point.prompt), _changes(points[-number:]))
            for number, point in enumerate(reversed(points[-OFFERED:]), 1)
        ]
        menu = MenuPanel("Go back to before which prompt?", rows)
        await self._chat.window.ask(menu)
        return None if menu.answer is None else int(menu.answer)

    async def _settled(self) -> None:
        if self._tasks:
            await asyncio.wait(tuple(self._tasks), timeout=AFTER_TIME)

    async def _go_back(self, index: int) -> None:
        point = self._points[index]
        plans, why = await self._plans(index)
        choice: Choice | None = "all"
        if why or any(plan.steps or plan.lost for plan in plans):
            panel = UndoPanel(point.prompt, plans, why)
            await self._chat.window.ask(panel)
            choice = panel.answer
        if choice is None:
            self._chat.note("Nothing was changed.")
            return
        if choice == "keep":
            plans = [plan.without(set(plan.changed_since)) for plan in plans]
        redo = _Redo([], point.prompt)
        forked = None
        if choice != "files":
            redo = _Redo([], point.prompt, self._chat.session, self._points, self._context)
            forked = await self._fork(index)
        try:
            results = [] if choice == "conversation" else await self._restored(plans, redo)
        except AcpError:
            if forked is not None:
                self._begin(_closed(forked.session))
            raise
        if forked is not None:
            await self._enter(forked, index)
        self._redo = redo
        self._show_outcome(point, plans if choice != "conversation" else [], results, forked)

    async def _plans(self, index: int) -> tuple[list[RestorePlan], str]:
        """What has to be done to the files, and why nothing can be; empty: it can."""
        await self._settled()
        store, points = self._store, self._points[index:]
        if store is None or not points[0].before:
            return [], self._why or "they were not looked at before this prompt"
        now = await self._look(store, AFTER_TIME)
        if now is None:
            return [], self._why or "they cannot be looked at now"
        numbers = {number for point in points for number in (point.before, point.after) if number}
        loaded = {number: await asyncio.to_thread(store.load, number) for number in numbers}
        if loaded.get(points[0].before) is None:
            return [], "the snapshot is not kept any more"
        plans = []
        for place, tree in enumerate(now.trees):
            turns: list[TreeTurn] = []
            for point in points:
                before, after = loaded.get(point.before), loaded.get(point.after)
                if before is None:  # nothing is known of this turn: it counts to the one before
                    turns[-1] = TreeTurn(turns[-1].before, None)
                    continue
                turns.append(TreeTurn(before.trees[place], None if after is None else after.trees[place]))
            plans.append(await asyncio.to_thread(restore_plan, turns, tree))
        return plans, ""

    async def _restored(self, plans: Sequence[RestorePlan], redo: _Redo) -> list[Restored]:
        if self._store is None or not any(plan.steps for plan in plans):
            return []
        try:
            results = await restore(self._store, plans)
        except OSError as error:
            raise AcpError(f"no file was changed: {error.strerror or error}", hint="/undo tries it again") from error
        redo.plans = [
            RestorePlan(plan.root, result.done, [], {}).reversed() for plan, result in zip(plans, results, strict=True)
        ]
        return results

    # The session.

    async def _fork(self, index: int) -> "_Forked":
        """Open a session that ends before a prompt, by the best means of the agent."""
        chat, opened = self._chat, self._chat.opened
        assert opened is not None  # noqa: S101 - there is a session
        session, dropped = chat.session, [point.sent or point.prompt for point in self._points[index:]]
        entries = session.transcript.entries
        users = [place for place, each in enumerate(entries) if isinstance(each, Message) and each.speaker == "user"]
        cut = cut_point([str(getattr(entries[place], "text", "")) for place in users], dropped)
        kept = entries[: users[cut]] if cut is not None else []
        support = chat.agent.capabilities.session_capabilities.fork
        if (
            opened.fork is not None
            and support is not None
            and (support.meta or {}).get("antiphon") == CUTS_FORKS["antiphon"]
        ):
            fork = opened.fork
            try:
                forked = await chat.sessions.open(lambda on_update: fork(session.id, fork_meta(dropped), on_update))
                return _Forked(forked, kept)
            except RequestRefused as error:
                _log.info("the fork was refused: %s", error)
        forked = await chat.sessions.open(opened.new)
        await _choose_as_before(forked, session)
        return _Forked(forked, kept, context_of(kept), is_new=True)

    async def _enter(self, forked: "_Forked", index: int) -> None:
        points = [
            UndoPoint(forked.session.id, *_fields(point)) for point in self._points[:index]
        ]  # the earlier prompts are also those of the fork
        await self._save(points)
        redo = self._redo
        await self._chat.sessions.switch_to(forked.session, forked.kept)
        self._points, self._context, self._redo = points, forked.context, redo

    def _show_outcome(
        self, point: UndoPoint, plans: Sequence[RestorePlan], results: Sequence[Restored], forked: "_Forked | None"
    ) -> None:
        chat = self._chat
        done: list[str] = []
        problems: list[str] = []
        for place, plan in enumerate(plans):
            name, result = _names(plans[0].root, plan.root), results[place] if results else Restored()
            restored = RestorePlan(plan.root, result.done, [], {})
            done += [f"{_verb(step):<11}{name(step.path)}" for step in restored.files]
            problems += [f"{name(path)} ({why})" for path, why in (result.failed | plan.lost).items()]
        rows: list[RenderableType] = [Text(f"Back to before “{_short(point.prompt)}”", "bold")]
        rows += [Text(f"  {line}", "dim") for line in done[:SHOWN]]
        if len(done) > SHOWN:
            rows.append(Text(f"  … {len(done) - SHOWN} more files", "dim"))
        rows += [Text.assemble(("  ! ", "warning"), f"not restored: {line}") for line in problems[:SHOWN]]
        if len(problems) > SHOWN:
            rows.append(Text(f"  … {len(problems) - SHOWN} more", "dim"))
        if forked is not None and forked.is_new:
            first = f"{chat.agent.name} cannot go back in a session, so this is a new one"
            rest = "; its first prompt brings the transcript so far" if forked.context else ""
            rows.append(Text(f"{first}{rest}.", "warning"))
        rows.append(Text("/redo takes this back, until the next prompt is sent.", "dim"))
        chat.note(rows)
        if forked is not None and not chat.window.input.text:
            chat.window.input.text = point.prompt
            chat.window.input.cursor_position = len(point.prompt)

    # The way forward again.

    async def redo(self) -> None:
        """Take the last undo back."""
        redo, chat = self._redo, self._chat
        if redo is None:
            raise AcpError("there is no undo to take back", hint="it can be taken back until the next prompt is sent")
        results: list[Restored] = []
        if self._store is not None and any(plan.steps for plan in redo.plans):
            results = await restore(self._store, redo.plans)
        if redo.session is not None:
            left = chat.session
            await chat.sessions.switch_to(redo.session, redo.session.transcript.entries)
            self._begin(_closed(left))
            self._points, self._context = redo.points, redo.context
            if chat.window.input.text == redo.prompt:
                chat.window.input.reset()
        self._redo = None
        rows: list[RenderableType] = [Text("The undo was taken back.", "bold")]
        rows += [
            Text.assemble(("  ! ", "warning"), f"not restored: {exact(os.fsdecode(path))} ({why})")
            for result in results
            for path, why in result.failed.items()
        ]
        chat.note(rows)

    async def _complete(self, word: str) -> None:
        """Finish an undo that was interrupted, or take it back."""
        store = self._store
        left: Interrupted | None = None if store is None else await asyncio.to_thread(interrupted, store)
        if store is None or left is None:
            raise AcpError("no undo was interrupted here")
        plans = left.plans if word == "finish" else [plan.reversed() for plan in left.plans]
        results = await restore(store, plans, again=True)
        await asyncio.to_thread(forget_interrupted, store)
        failed = [os.fsdecode(path) for result in results for path in result.failed]
        rest = f" Not restored: {exact(', '.join(failed))}" if failed else ""
        self._chat.note(f"The undo was {'completed' if word == 'finish' else 'taken back'}.{rest}")


@dataclass(frozen=True)
class _Forked:
    session: "ClientSession"
    kept: "list[Entry]"
    context: str = ""
    is_new: bool = False


def context_of(entries: "Sequence[Entry]") -> str:
    """The transcript for a new session, quoted: no line of it can pass for one of ours, or for the user's prompt."""
    text = "\n".join(line for entry in entries for line in lines_of(entry)).strip()
    if not text:
        return ""
    clipped = text if len(text) <= CONTEXT_LIMIT else f"[… earlier parts left out …]\n{text[-CONTEXT_LIMIT:]}"
    quoted = "\n".join(f"| {line}".rstrip() for line in prose(clipped).splitlines())
    return (
        "This session goes on where an earlier one was at a point to which the user went back. Lines that begin with `|` are the "
        f"transcript up to there, for you to know and not to answer:\n{quoted}\n\nThe user goes on:\n"
    )


async def _choose_as_before(session: "ClientSession", earlier: "ClientSession") -> None:
    """Give a new session the mode and the model of an earlier one."""
    wanted: list[tuple[Callable[[str], Coroutine[None, None, None]], str | None, str | None]] = [
        (session.set_mode, _mode(earlier), _mode(session)),
        (session.set_model, _model(earlier), _model(session)),
    ]
    for choose, before, now in wanted:
        if before is not None and before != now:
            try:
                await choose(before)
            except AcpError as error:
                _log.info("the new session is set otherwise: %s", error)


def _mode(session: "ClientSession") -> str | None:
    return None if session.modes is None else session.modes.current_mode_id


def _model(session: "ClientSession") -> str | None:
    return None if session.models is None else session.models.current_model_id


async def _closed(session: "ClientSession") -> None:
    try:
        await session.close()
    except AcpError as error:
        _log.info("a session that was left could not be closed: %s", error)


def _roots(directories: Sequence[str]) -> tuple[str, ...]:
    """The directories, each once, and none that stands in another."""
    found: list[str] = []
    for path in dict.fromkeys(os.path.realpath(each) for each in directories):
        if os.path.isdir(path) and not any(_inside(path, each) for each in found):
            found = [*(each for each in found if not _inside(each, path)), path]
    return tuple(found)


def _inside(path: str, directory: str) -> bool:
    return path.startswith(directory.rstrip("/") + "/")


def _short(prompt: str) -> str:
    line = one_line(prompt)
    return line if len(line) <= PROMPT_LENGTH else f"{line[: PROMPT_LENGTH - 1].rstrip()}…"


def _changes(points: Sequence[UndoPoint]) -> str:
    files = {name for point in points for name in point.changed}
    count = max([len(files), *(point.changed_count for point in points)])
    return "no files" if not count else "1 file" if count == 1 else f"{count} files"


def _texts(names: Sequence[str]) -> list[str]:
    """Names as they can be stored: what is no text is replaced."""
    return [os.fsencode(name).decode("utf-8", "replace") for name in names]


def _fields(point: UndoPoint) -> tuple[str, float, int, int, str, list[str], int]:
    return (point.prompt, point.at, point.before, point.after, point.sent, point.changed, point.changed_count)
