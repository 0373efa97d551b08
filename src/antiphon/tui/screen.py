"""The session as lines: final ones, and below them a few that still change. Pure.

Rule 1: a line that was given out as final never changes and is never given out again.
Rule 2: what is open (the block being written, calls that run, the plan of this turn) is drawn again as a whole, and never higher than
the given height.
Rule 3: messages are final block by block. A call is final when it is finished and something came after it, or the turn is over.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from antiphon.protocol import v1
from antiphon.protocol.v1.updates import MessageChunk
from antiphon.transcript.entries import CallEntry, CompactionEntry, Entry, Message, NoticeEntry, Thought
from antiphon.transcript.presentation import engine_of, is_label
from antiphon.transcript.transcript import Transcript
from antiphon.tui.blocks import UNFOLD, Block, Splitter, TailOf, WordOf, call_texts, content_word
from antiphon.tui.display.theme import style_of_engine
from antiphon.tui.output.images import ImagePainter
from antiphon.tui.painter import Painter, clean, one_line

__all__ = ["PROMPT", "SPINNER", "ChatScreen"]

SPINNER: Final = "◐◓◑◒"
PROMPT: Final = "\u203a"
"""Stands before the user's prompts, here and on the input line: a single angle quotation mark."""

ENGINE: Final = "●"
"""Stands before the name of an engine where several answer."""

PLAN_MARKS: Final = {
    v1.PlanStatus.PENDING: ("○", "dim"),
    v1.PlanStatus.IN_PROGRESS: ("▸", "warning"),
    v1.PlanStatus.COMPLETED: ("✓", "done"),
}
SEVERITIES: Final = {
    v1.NoticeSeverity.INFO: ("i", "key"),
    v1.NoticeSeverity.WARNING: ("!", "warning"),
    v1.NoticeSeverity.ERROR: ("✗", "error"),
}
OPEN_SOURCE: Final = 3
"""Lines of the open block that are looked at for each line of the screen: the rest of it is out of sight until it is final."""


PROMPT_LINES: Final = 12
"""Lines of a prompt in the transcript."""

SUMMARY_LINES: Final = 3
"""Lines of the summary of a compaction: it is written for the model."""


def _failed(call_id: str) -> str:
    return "failed"


class OpenMessage:
    """A message or a thought that is being written."""

    def __init__(self, entry: Message | Thought) -> None:
        self.entry = entry
        self.splitter = Splitter()
        self.begun = False
        self.sender = ""
        """The name of another person who sent it."""


class ChatScreen:
    """The lines of one session."""

    def __init__(
        self, painter: Painter, tail_of: TailOf = lambda id: None, cwd: str = "", word_of: WordOf = _failed
    ) -> None:
        self.painter = painter
        self.cwd = cwd
        self.transcript = Transcript()
        self.animation_frame = 0
        """The frame of the animated mark of running calls; the caller that draws counts it up."""
        self.asked_about: int | None = None
        """The call that a panel shows at this moment, so that it is not shown twice."""
        self.in_forms: set[int] = set()
        """Calls that were nothing but a form: the form and its answer are shown, and the call only if it fails."""
        self.images = ImagePainter(None)
        """Shows images, where the terminal can."""
        self.own_name = ""
        """The name that the server has for the user: messages under another one are shown with it."""
        self.titles: dict[str, str] = {}
        """What people call the engines of the agent, by their short names."""
        self._engine: str | None = None  # the one that was named last
        self.echoes = True
        """Whether what was typed is shown again; not where the terminal itself shows it."""
        self.opening: list[RenderableType] = []
        """The first screen, until it is final."""
        self._tail_of = tail_of
        self._word_of = word_of
        self._open: dict[int, OpenMessage | CallEntry | CompactionEntry] = {}
        self._final: list[str] = []
        self._last = ""  # the kind of thing that the last final line belongs to
        self._plan: list[v1.PlanEntry] = []  # as it was last shown
        self._silent: set[int] = set()  # what the user typed here is shown when it is typed

    # What comes in.

    def begin(self, cwd: str) -> None:
        """Start with another session."""
        self.end_turn()
        self.transcript, self.cwd = Transcript(), cwd
        self._open, self._plan, self._silent, self.in_forms = {}, [], set(), set()

    def settle_opening(self) -> None:
        """Make the first screen final."""
        opening, self.opening = self.opening, []
        self.note(opening, "opening")

    def show_prompt(self, text: str, blocks: "list[v1.ContentBlock] | None" = None) -> None:
        """Show a prompt of the user."""
        entry = self.transcript.add_prompt(blocks if blocks is not None else [v1.TextBlock(text)])
        self._silent.add(entry.key)
        if self.echoes:
            self._write("user", self._user_lines(text))

    def apply(self, update: v1.Update) -> None:
        """Show an update."""
        before = len(self.transcript.entries)
        entry = self.transcript.apply(update)
        if isinstance(update, v1.Plan) and all(step.status == v1.PlanStatus.COMPLETED for step in update.entries):
            self._settle_plan()
        if entry is None or entry.key in self._silent:
            return
        if len(self.transcript.entries) > before:
            self._settle(except_for=entry.key)
        self._name_engine(update, entry)
        if is_label(update):
            return  # it is named
        if isinstance(update, MessageChunk):
            self._add_text(entry, update.content)
            if isinstance(message := self._open.get(entry.key), OpenMessage):
                message.sender = message.sender or self._other_sender(update)
        elif isinstance(entry, NoticeEntry):
            mark, style = SEVERITIES[entry.severity.meaning]
            words = one_line(entry.title) + (f": {clean(entry.description)}" if entry.description else "")
            self._write("notice", self.painter.paint(Text.assemble((mark, style), " ", words)))
        elif isinstance(entry, CallEntry | CompactionEntry):
            self._open[entry.key] = entry

    def _name_engine(self, update: v1.Update, entry: Entry) -> None:
        """Show the engine that speaks or works from here on, where several do: before its words, and before its calls."""
        engine = engine_of(update)
        if engine is None or engine == self._engine:
            return
        if is_label(update) and isinstance(update, MessageChunk) and isinstance(update.content, v1.TextBlock):
            title = one_line(update.content.text.strip().strip("*"))
            self.titles[engine] = title
        else:
            title = self.titles.get(engine, "")
            if not (title and isinstance(entry, CallEntry) and entry.title.startswith(f"{title}: ")):
                return
        self._engine = engine
        self._write("engine", self.painter.paint(Text(f"{ENGINE} {title}", style_of_engine(engine))))

    def asked(self, patch: v1.ToolCallPatch) -> CallEntry:
        """Show the call of a permission request."""
        entry = self.transcript.asked(patch)
        self._open[entry.key] = entry
        self._settle(except_for=entry.key)
        return entry

    def end_turn(self) -> None:
        """Make everything final at the end of a turn."""
        self._engine = None
        self._settle(except_for=None, over=True)
        self.transcript.turn_ended()
        self._settle_plan()

    def _settle_plan(self) -> None:
        if self.transcript.plan != self._plan:
            self._plan = list(self.transcript.plan)
            self._write("plan", self._plan_lines() if self._plan else [])

    def open_calls(self) -> list[CallEntry]:
        """Return the calls that still change, but for the one that a question is about."""
        return [entry for key, entry in self._open.items() if isinstance(entry, CallEntry) and key != self.asked_about]

    def note(self, things: Iterable[RenderableType] | str, kind: str = "note") -> None:
        """Show a line of our own."""
        if kind == "user" and not self.echoes:
            return
        texts: Iterable[RenderableType] = [Text(things, "dim")] if isinstance(things, str) else things
        self._write(kind, self.painter.all(texts))

    def write(self, lines: list[str]) -> None:
        """Show lines that are painted already."""
        self._write("view", lines)

    @property
    def has_lines(self) -> bool:
        """Whether there are final lines."""
        return bool(self._last)

    # What is folded.

    @property
    def shown_entries(self) -> Sequence[Entry]:
        """What is shown, in order."""
        return self.transcript.entries

    def call_texts(self, call: CallEntry, spinner: str | None = None, *, whole: bool = False) -> list[RenderableType]:
        """Return a call, as it is shown or whole."""
        return call_texts(call, self.cwd, self._tail_of, spinner, self._word_of(call.id), whole=whole)

    def is_folded(self, entry: Message | CompactionEntry) -> bool:
        """Whether less than all of a text is shown."""
        most = SUMMARY_LINES if isinstance(entry, CompactionEntry) else PROMPT_LINES
        is_shown_whole = isinstance(entry, Message) and entry.speaker == "agent"
        return not is_shown_whole and entry.text.strip().count("\n") >= most

    # What goes out.

    def take(self) -> list[str]:
        """Return the lines that became final since the last call."""
        lines, self._final = self._final, []
        return lines

    def live(self, height: int) -> list[str]:
        """Return the open lines, at most `height` of them."""
        lines = ["", *self.painter.all(self.opening)] if self.opening else []
        last = self._last
        for key, open_one in self._open.items():
            if key == self.asked_about or self._is_in_form(key, open_one):
                continue
            kind, new = self._live_of(open_one, height)
            if not new:
                continue
            if (
                last
                and self._apart(last, kind)
                and not (isinstance(open_one, OpenMessage) and open_one.begun and not _gap(open_one))
            ):
                lines.append("")
            lines += new
            last = kind
        if self.transcript.plan != self._plan:
            lines += ["", *self._plan_lines()] if last else self._plan_lines()
        if len(lines) > height:
            lines = [f"… {len(lines) - height + 1} lines above", *lines[-height + 1 :]] if height > 1 else lines[-1:]
        return lines

    # Messages and thoughts.

    def _add_text(self, entry: Entry, content: v1.ContentBlock) -> None:
        if not isinstance(entry, Message | Thought):
            return
        message = self._open.get(entry.key)
        if not isinstance(message, OpenMessage):
            message = self._open[entry.key] = OpenMessage(entry)
        if isinstance(content, v1.TextBlock):
            self._write_blocks(message, message.splitter.feed(content.text))
        else:
            self._write_blocks(message, message.splitter.finish())
            self._write_blocks(message, [Block(content_word(content))])
            self._write_image(content)

    def _write_image(self, content: v1.ContentBlock) -> None:
        """Show an image itself below its word, where the terminal can."""
        if isinstance(content, v1.ImageBlock) and (line := self.images.line(content.data, self.painter.width)):
            self._write("image", [line], gap=False)

    def _write_blocks(self, message: OpenMessage, blocks: list[Block]) -> None:
        kind = _kind_of(message.entry)
        if kind == "user":  # of another time: shown whole, when it is
            return
        for block in blocks:
            self._write(kind, self._block_lines(kind, block.text, self.cwd), gap=block.gap if message.begun else None)
            message.begun = True

    def _block_lines(self, kind: str, text: str, cwd: str = "") -> list[str]:
        if kind == "thought":
            return self.painter.paint(Text(clean(text).strip("\n"), "thought"), indent=2)
        return self.painter.markdown(text, cwd)

    def _user_lines(self, text: str, sender: str = "") -> list[str]:
        texts = _folded_text(text.rstrip() or " ", PROMPT_LINES, "you")
        if sender:
            texts[0] = Text.assemble((f"{sender}: ", "dim"), texts[0])
        first, *rest = [line for each in texts for line in self.painter.paint(each, indent=2)]
        return [f"{PROMPT} " + first[2:], *rest]

    def _other_sender(self, chunk: MessageChunk) -> str:
        """The name of the person who sent a message of a user, unless it is the one who reads it here."""
        about = (chunk.meta or {}).get("antiphon") if isinstance(chunk, v1.UserMessageChunk) else None
        name = about.get("from") if isinstance(about, dict) else None
        return one_line(name)[:40] if isinstance(name, str) and name != self.own_name else ""

    # What is open.

    def _settle(self, except_for: int | None, *, over: bool = False) -> None:
        """Make final what will not change any more."""
        for key, open_one in list(self._open.items()):
            if key == except_for:
                continue
            if isinstance(open_one, OpenMessage):
                self._write_blocks(open_one, open_one.splitter.finish())
                if _kind_of(open_one.entry) == "user":
                    self._write("user", self._user_lines(_words(open_one.entry), open_one.sender))
            elif over or _finished(open_one):
                if not self._is_in_form(key, open_one):
                    self._write(*self._call_or_compaction(open_one, moving=False))
                for item in open_one.content if isinstance(open_one, CallEntry) else ():
                    if isinstance(item, v1.ContentItem):
                        self._write_image(item.content)
            else:
                continue
            del self._open[key]

    def _is_in_form(self, key: int, entry: "OpenMessage | CallEntry | CompactionEntry") -> bool:
        """Whether a form has shown all that there is of a call."""
        return key in self.in_forms and isinstance(entry, CallEntry) and entry.status.meaning != v1.ToolStatus.FAILED

    def _live_of(self, open_one: OpenMessage | CallEntry | CompactionEntry, height: int) -> tuple[str, list[str]]:
        if not isinstance(open_one, OpenMessage):
            return self._call_or_compaction(open_one, moving=True)
        kind, block = _kind_of(open_one.entry), open_one.splitter.open
        if kind == "user":
            return kind, self._user_lines(_words(open_one.entry), open_one.sender)
        return kind, self._block_lines(
            kind, _end_of(block.text, height, self.painter.width)
        ) if block is not None else []

    def _call_or_compaction(self, entry: CallEntry | CompactionEntry, *, moving: bool) -> tuple[str, list[str]]:
        if isinstance(entry, CallEntry):
            spinner = SPINNER[self.animation_frame % len(SPINNER)] if moving else None
            return "call", self.painter.all(self.call_texts(entry, spinner))
        words = Text.assemble(("~", "key"), f" compaction: {entry.status}".replace("_", " "))
        if entry.error:
            words.append(f": {one_line(entry.error)}", "error")
        summary = (
            [Padding(text, (0, 0, 0, 2), expand=False) for text in _folded_text(entry.text, SUMMARY_LINES, "dim")]
            if entry.text and entry.status != v1.CompactionStatus.IN_PROGRESS
            else []
        )
        return "notice", self.painter.all([words, *summary])

    def _plan_lines(self) -> list[str]:
        done = sum(step.status == v1.PlanStatus.COMPLETED for step in self.transcript.plan)
        texts = [Text(f"Plan  {done} of {len(self.transcript.plan)} done", "bold")]
        for step in self.transcript.plan:
            mark, style = PLAN_MARKS[step.status.meaning]
            faded = "dim" if step.status == v1.PlanStatus.COMPLETED else ""
            texts.append(Text.assemble("  ", (mark, style), " ", (one_line(step.content), faded)))
        return self.painter.all(texts)

    # Final lines.

    def _write(self, kind: str, lines: list[str], gap: bool | None = None) -> None:
        if not lines:
            return
        if self._last and (self._apart(self._last, kind) if gap is None else gap):
            self._final.append("")
        self._final += lines
        self._last = kind

    @staticmethod
    def _apart(before: str, kind: str) -> bool:
        """Whether an empty line belongs between two entries."""
        return before != kind or kind in ("message", "thought", "user", "note", "plan", "form", "view")


def _kind_of(entry: Message | Thought) -> str:
    if isinstance(entry, Thought):
        return "thought"
    return "user" if entry.speaker == "user" else "message"


def _words(entry: Message | Thought) -> str:
    return "".join(content_word(block) for block in entry.blocks)


def _folded_text(text: str, most: int, style: str) -> list[Text]:
    """Return the first lines of a text, and how many there are besides."""
    lines = clean(text).strip("\n").split("\n")
    shown = Text("\n".join(lines if len(lines) <= most else lines[: most - 1]), style)
    more = len(lines) - most + 1
    return [shown, Text(f"… {more} more lines{UNFOLD}", "dim")] if len(lines) > most else [shown]


def _finished(entry: CallEntry | CompactionEntry) -> bool:
    return entry.finished if isinstance(entry, CallEntry) else entry.status != v1.CompactionStatus.IN_PROGRESS


def _gap(message: OpenMessage) -> bool:
    return message.splitter.open is not None and message.splitter.open.gap


def _end_of(text: str, height: int, width: int) -> str:
    """Return the visible end of an open block; a fence keeps its first line."""
    lines = text.split("\n")
    most = height * OPEN_SOURCE
    if len(lines) > most:
        first = [lines[0]] if lines[0].lstrip().startswith(("```", "~~~")) else []
        lines = [*first, *lines[-most:]]
    if len(lines) == 1 and len(text) > (longest := height * width * 2):
        return text[-longest:].partition(" ")[2] or text[-longest:]
    return "\n".join(lines)
