"""What the terminal shows of the chat while the user looks elsewhere: its title, and a notification when it waits.

Rule 1: nothing is sent while the terminal is in front. Terminals report that (focus reporting); of one that does not, the time of the
last key is all that is known.
Rule 2: only our own words and the user's are sent, and no control characters among them.
"""

import os
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final, Literal, TypeAlias

from antiphon.tui.painter import one_line

__all__ = ["FOCUS_OFF", "FOCUS_ON", "Notifications", "Notify", "way_of"]

FOCUS_ON: Final = "\x1b[?1004h"
FOCUS_OFF: Final = "\x1b[?1004l"

_KEEP_TITLE: Final = "\x1b[22;2t"
_PUT_BACK_TITLE: Final = "\x1b[23;2t"

LONGEST: Final = 60
"""Characters of a title."""

AWAY: Final = 10.0
"""Seconds without a key after which a user may have looked away, where the terminal does not report it."""

Notify: TypeAlias = Literal["auto", "bell", "osc9", "osc777", "off"]

_OSC_9: Final = frozenset({"iTerm.app", "WezTerm", "ghostty", "kitty"})


def way_of(wanted: str, environment: Mapping[str, str] | None = None) -> str:
    """Return how this terminal is notified: `auto` looks at what it is. A terminal that is not known gets the bell."""
    env = os.environ if environment is None else environment
    if wanted != "auto":
        return wanted
    if env.get("TMUX") or env.get("STY"):  # it would keep the sequence for itself
        return "bell"
    if env.get("TERM_PROGRAM") in _OSC_9 or env.get("TERM", "").startswith(("xterm-kitty", "xterm-ghostty")):
        return "osc9"
    if env.get("VTE_VERSION") or env.get("TERM", "").startswith(("foot", "rxvt-unicode")):
        return "osc777"
    return "bell"


class Notifications:
    """The title of the terminal, and notifications. `write` sends codes to the terminal."""

    def __init__(self, write: Callable[[str], None], notify: str = "auto", directory: str = "") -> None:
        self._write = write
        self._way = way_of(notify)
        self._place = f"antiphon: {os.path.basename(directory) or directory}"
        self._working = ""  # the prompt that is being answered
        self._title = ""
        self._focused: bool | None = None
        self._pressed_at = monotonic()

    # What is known of the user.

    def focus(self, *, here: bool) -> None:
        """The terminal was brought to the front, or is not there any more."""
        self._focused = here

    def pressed(self) -> None:
        """The user pressed a key, so the terminal is in front."""
        self._pressed_at = monotonic()

    @property
    def is_away(self) -> bool:
        """Whether the user looks elsewhere."""
        return not self._focused if self._focused is not None else monotonic() - self._pressed_at > AWAY

    # What happens.

    def working(self, prompt: str) -> None:
        """A prompt was sent."""
        self._working = prompt
        self.title("…", prompt)

    def turn_over(self, prompt: str) -> None:
        """The chat is idle. With a prompt: it was answered, and the user waits for that."""
        self._working = ""
        self.title("", self._place)
        if prompt:
            self.notify(f"done: {prompt}")

    def asked(self) -> None:
        """A question waits for the user."""
        self.title("?", self._working or self._place)
        self.notify("waiting for your answer")

    def answered(self, *, more: bool) -> None:
        """A question was answered; `more` of them are open."""
        if not more:
            self.title("…" if self._working else "", self._working or self._place)

    # What is shown.

    def title(self, state: str, what: str) -> None:
        """Set the title of the terminal: `? fix the bug` while a question waits."""
        words = f"{state} {one_line(what)}".strip()
        words = words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"
        if self._way == "off" or words == self._title:
            return
        if not self._title:
            self._write(_KEEP_TITLE)
        self._title = words
        self._write(f"\x1b]2;{words}\x07")

    def notify(self, words: str) -> None:
        """Tell the user that the chat waits, unless the terminal is in front."""
        if not self.is_away:
            return
        text = one_line(words)[:LONGEST].replace(";", ",")
        codes = {"bell": "\x07", "osc9": f"\x1b]9;{text}\x07", "osc777": f"\x1b]777;notify;Antiphon;{text}\x07"}
        if (code := codes.get(self._way)) is not None:
            self._write(code)

    def close(self) -> None:
        """Put the title back that the terminal had."""
        if self._title:
            self._write(_PUT_BACK_TITLE)
            self._title = ""
