"""The text on the input line: what its labels stand for, its history, and the line as a picker."""

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.document import Document

from antiphon.tui.line.pastes import Pastes

__all__ = ["InputLine"]


class InputLine:
    """The input line of one chat."""

    def __init__(self, buffer: Buffer, completer: Completer) -> None:
        self.buffer = buffer
        self.pastes = Pastes()
        """Labels that stand for long text."""
        self.images = Pastes()
        """Labels that stand for images."""
        self.can_pick = True
        """Whether rows can be shown to pick from."""
        self._picked_for = ""
        """The beginning of the line while it is a picker."""
        self._completer = completer
        buffer.on_text_changed += lambda _: self._check_picking()

    def complete(self) -> None:
        """Find completions without waiting for a thread: a Tab that is typed fast counts as well as a slow one."""
        self.buffer.cancel_completion()
        found = list(self._completer.get_completions(self.buffer.document, CompleteEvent(completion_requested=True)))
        if found:
            # start_completion does the same, but not while another one is under way.
            self.buffer._set_completions(found)

    @property
    def picking(self) -> bool:
        """Whether the line is a picker: Enter takes the first or chosen row."""
        return bool(self._picked_for)

    def reset(self) -> None:
        """Empty the line, which is no picker any more."""
        self._picked_for = ""
        self.buffer.reset()

    def _check_picking(self) -> None:
        """Make the line an ordinary one again if its beginning was erased."""
        if self._picked_for and not self.buffer.text.startswith(self._picked_for):
            self._picked_for = ""

    @property
    def has_menu(self) -> bool:
        """Whether completions are shown. While they are looked for there is a state without any."""
        state = self.buffer.complete_state
        return state is not None and bool(state.completions)

    @property
    def label_before_cursor(self) -> str:
        """The label of a paste or an image before the cursor; empty if there is none."""
        text = self.buffer.document.text_before_cursor
        return self.pastes.label_before(text) or self.images.label_before(text)

    def unfolded(self, text: str) -> str:
        """Return a line with everything that its labels stand for."""
        return self.pastes.unfold(self.images.unfold(text))

    def remember(self, text: str) -> None:
        """Add a line to the history."""
        whole = self.unfolded(text)
        if self.buffer.history.get_strings()[-1:] != [whole]:
            self.buffer.history.append_string(whole)

    def put(self, text: str) -> None:
        """Put a text on the input line, with the cursor behind it."""
        self.buffer.text = text
        self.buffer.cursor_position = len(text)

    def pick(self, beginning: str) -> bool:
        """Make the input line a picker of what may follow; False if there is nothing to pick, or something was typed."""
        if self.buffer.text or not self.can_pick:
            return False
        self.put(beginning)
        self.complete()
        if self.buffer.complete_state is None:
            self.buffer.reset()
            return False
        self._picked_for = beginning
        return True

    def picked(self) -> str | None:
        """Return the line with the chosen row, or the first one; None if no row fits."""
        state = self.buffer.complete_state
        if not self._is_whole:
            if state is None or not state.completions:
                self.complete()
                state = self.buffer.complete_state
            if state is not None and state.current_completion is None:
                self.buffer.apply_completion(state.completions[0])
            elif state is None and self.buffer.text.endswith(" "):
                return None
        text = self.buffer.text
        self.reset()
        return text

    @property
    def _is_whole(self) -> bool:
        """Whether one of the rows was typed whole. It is no completion any more, but others may have it in their description."""
        rows = self._completer.get_completions(Document(self._picked_for), CompleteEvent(completion_requested=True))
        return self.buffer.text.removeprefix(self._picked_for) in {row.text for row in rows}
