"""Text for people: invisible characters made visible, ANSI codes removed, lines cut to a width, Markdown fences, halves of characters.

Pure, and light: every command imports it. There are two measures of what is made visible:

- `exact`, for what a person decides by (a command, a path, an address): nothing is invisible.
- `prose`, for everything else: an invisible character is kept only where it is needed to write something. That is a joiner
  inside an emoji or between letters of a script that joins them, one variation selector behind a character that has forms,
  a direction mark beside a right-to-left letter, the tags of a flag. Elsewhere it can only hide something, so its number is shown.
"""

import re
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "CODES", "EXACT", "PROSE", "TAGS", "Paint", "Style", "cut", "exact", "exact_line", "fenced", "one_line", "prose", "repaired_json", "replace_surrogates", "size_in_words", "strip_ansi", "table", "width_of", "xml_text",
]  # fmt: skip

_CONTROLS: Final = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: "\u2421"}
_C1: Final = {code: f"<U+{code:04X}>" for code in range(0x80, 0xA0)}
# Embeddings, overrides and isolates: with them a line can be shown in another order than it is read by the shell.
_TURNING: Final = {code: f"<U+{code:04X}>" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_BREAKS: Final = {0x2028: "\n", 0x2029: "\n", 0x85: "\n"}
_BLANKS: Final = (0x00A0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x2800)
"""Characters that look like a space and are not: to a shell they are part of a word."""
_NOTHING: Final = (
    0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x2060, 0x2066),
    *range(0x206A, 0x2070), 0x3164, *range(0xFE00, 0xFE0F), 0xFEFF, 0xFFA0, *range(0xFFF0, 0xFFFC), *range(0x13430, 0x13440),
    *range(0x1BCA0, 0x1BCA4), *range(0x1D173, 0x1D17B),
)  # fmt: skip
"""Characters that are shown as nothing at all. U+FE0F is not among them: it makes emoji of signs, and is in many sentences."""
TAGS: Final = range(0xE0000, 0xE1000)
"""Tags, variation selectors and what is reserved for more of them: a whole plane of Unicode that shows nothing."""

PROSE: Final = str.maketrans({**_CONTROLS, **_C1, **_TURNING, **_BREAKS})
"""What is never shown as it is in words: what a terminal would obey, or what turns them around. `prose` does more."""

EXACT: Final = str.maketrans(
    {
        **_CONTROLS,
        **_C1,
        **_TURNING,
        **{code: f"<U+{code:04X}>" for code in (*_BLANKS, *_NOTHING)},
        0x2028: "<U+2028>",
        0x2029: "<U+2029>",
    }
)
"""What is never shown as it is in a command, a path or an address. `exact` does more."""

_JOINING: Final = (
    "\u0620-\u109f\u1780-\u17b3\u17b6-\u17ff\u1820-\u18af\ua840-\uabff\ufb50-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff"
)
"""Scripts that join letters, or keep them apart, by characters that show nothing: Arabic, the scripts of India, Khmer, Mongolian …"""
_LEFTWARDS: Final = "\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_EMOJI: Final = "\u00a9\u00ae\u203c-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_IDEOGRAPHS: Final = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_VARYING: Final = f"\u1000-\u109f\u2200-\u2aff\u3000-\u303f\ua840-\ua87f\uff00-\uff9f\uffa1-\uffef{_IDEOGRAPHS}"
"""What has forms to choose from by the selectors 1 to 14: signs of mathematics, punctuation of full width, ideographs …

Not U+FFA0 among them, which shows nothing itself: it is written as a number, and a selector behind that has nothing to choose."""


def exact(text: str) -> str:
    """Text that a person decides by, with its lines and tabs. A half of a surrogate pair, which no message can carry, becomes a `?`."""
    text = text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8").translate(EXACT)
    return text if text.isascii() else _exactly(text)


def _exactly(text: str) -> str:
    """Show what no table has: tags, and a selector for emoji that stands behind something else."""
    return re.sub(rf"[\U000e0000-\U000e0fff]|(?<![{_EMOJI}])\ufe0f", lambda found: _number(found.group()), text)


def prose(text: str, before: str = "") -> str:
    """Words, with their lines and tabs. `before` is what was shown just before them: words come in pieces, also emoji."""
    text = text.replace("\r\n", "\n").translate(PROSE)
    return text if text.isascii() else _shown(text, before)


def _shown(text: str, before: str) -> str:
    whole = before[-2:] + text
    written, place = [], len(whole) - len(text)
    for found in _hidden().finditer(whole, place):
        if found.lastgroup is None:  # needed where it stands
            continue
        written += [whole[place : found.start()], "".join(map(_number, found.group()))]
        place = found.end()
    return "".join([*written, whole[place:]])


def _number(sign: str) -> str:
    return f"<U+{ord(sign):04X}>"


@cache
def _hidden() -> re.Pattern[str]:
    """Match characters that show nothing. The group `needless` is set where the character is not needed to write something."""
    nothing = "".join(map(chr, (*_NOTHING, 0xFE0F)))
    letters = f"[{_JOINING}]"
    return re.compile(
        rf"(?<=[{_EMOJI}])\ufe0f?\u200d(?=[{_EMOJI}]|\Z)"  # parts of an emoji
        rf"|(?<=[{_EMOJI}]\ufe0f)\u200d(?=[{_EMOJI}]|\Z)"
        rf"|(?<={letters})[\u200c\u200d](?={letters}|\Z)"
        rf"|(?<=[{_LEFTWARDS}])[\u200e\u200f\u061c]|[\u200e\u200f\u061c](?=[{_LEFTWARDS}])"
        r"|(?<=[\u1820-\u18af])[\u180b-\u180d\u180f]"
        rf"|(?<=[{_EMOJI}0-9#*])[\ufe0e\ufe0f]"  # one selector behind a character that has forms to choose from
        rf"|(?<=[{_VARYING}])[\ufe00-\ufe0d]|(?<=[{_IDEOGRAPHS}])[\U000e0100-\U000e01ef]"
        r"|(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,6}\U000e007f"  # the flag of a region
        rf"|(?P<needless>[{nothing}\U000e0000-\U000e0fff])"
    )


def one_line(text: str) -> str:
    """Return prose on one line, with single spaces."""
    return " ".join(prose(text).split())


def exact_line(text: str) -> str:
    """Return a command, a path or an address on one line, with single spaces and nothing invisible."""
    return " ".join(exact(text).split())


# --- terminals ------------------------------------------------------------------------------------------------------

_ANSI: Final = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links, whole strings
    r"|\x1b[ -/]*[0-~]"
)


def strip_ansi(text: str) -> str:
    """Remove the escape sequences that only a terminal understands."""
    return re.sub(_ANSI, "", text) if "\x1b" in text else text


def width_of(text: str) -> int:
    """Return the number of terminal columns of a text."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def cut(text: str, columns: int) -> str:
    """Cut a text to a number of terminal columns, with an ellipsis for what is missing."""
    used, fits = 0, 0  # `fits`: how many characters leave a column for the ellipsis
    for position, character in enumerate(text):
        used += _columns(character)
        if used > columns:
            return f"{text[:fits]}…"
        if used < columns:
            fits = position + 1
    return text


def _columns(character: str) -> int:
    from unicodedata import combining, east_asian_width

    return 0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1


Style = Literal["", "bold", "dim", "red", "green", "yellow", "cyan"]

CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

NARROWEST: Final = 12
"""Columns that a cell keeps which is cut where a terminal is too narrow."""


class Paint:
    """The colours and the width of a stream. Without a width nothing is cut: a program reads it."""

    def __init__(self, *, coloured: bool = False, columns: int | None = None) -> None:
        self.coloured = coloured
        self.columns = columns

    def __call__(self, text: str, style: Style) -> str:
        """Return the text in a colour, where there are any."""
        return f"\x1b[{CODES[style]}m{text}\x1b[0m" if self.coloured and style and text else text

    def fit(self, text: str, beside: str = "") -> str:
        """Cut a line to the width of the stream, with something beside it."""
        return text if self.columns is None else cut(text, max(self.columns - 1 - width_of(beside), NARROWEST))


def table(
    header: "Sequence[str]", rows: "Sequence[Sequence[str]]", styles: "Sequence[Style]", giving: int, paint: Paint
) -> list[str]:
    """Return lines with every column as wide as it has to be. The one at `giving` is cut where the stream is too narrow."""
    every = [tuple(header), *map(tuple, rows)]
    widths = [max(width_of(row[column]) for row in every) for column in range(len(header))]
    if paint.columns is not None:
        beyond = sum(widths) + 2 * (len(widths) - 1) - (paint.columns - 1)
        widths[giving] = max(min(NARROWEST, widths[giving]), widths[giving] - max(beyond, 0))
    lines = []
    for number, row in enumerate(every):
        cells = []
        for column, cell in enumerate(row):
            text = cut(cell, widths[column]) if column == giving else cell
            padding = " " * (widths[column] - width_of(text)) if column < len(row) - 1 else ""
            cells.append(paint(text, "dim" if number == 0 else styles[column]) + padding)
        lines.append("  ".join(cells).rstrip())
    return lines


# --- Markdown and numbers -------------------------------------------------------------------------------------------


def fenced(text: str, language: str = "") -> str:
    """Put a text between Markdown fences that are longer than any run of backticks in it."""
    fence = "`" * max((len(run) + 1 for run in re.findall("`{3,}", text)), default=3)
    return f"{fence}{language}\n{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"


def size_in_words(size: int) -> str:
    """Return a number of bytes as people read it: `39.1 KiB`."""
    if size < 1024:
        return "1 byte" if size == 1 else f"{size} bytes"
    unit, name = (1 << 20, "MiB") if size >= 1000 << 10 else (1 << 10, "KiB")
    return f"{(size + unit // 2) // unit} {name}" if size >= 100 * unit else f"{size / unit:.3g} {name}"


@cache
def _escapes() -> re.Pattern[bytes]:
    """Halves of surrogate pairs in JSON; also whole pairs and escaped backslashes, so that `\\\\ud800` is not taken for a half."""
    return re.compile(rb"(?i)(?:\\\\)+|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(\\ud[89a-f][0-9a-f]{2})")


def replace_surrogates(json: bytes) -> bytes:
    """Replace halves of surrogate pairs in JSON by U+FFFD: programs that cut UTF-16 text in two send them. Without any, `json` itself."""
    if b"\\u" not in json:
        return json
    repaired = _escapes().sub(lambda found: rb"\ufffd" if found[1] else found[0], json)
    return json if repaired == json else repaired


def repaired_json(line: bytes) -> bytes:
    """Replace what is no text in a line of JSON by U+FFFD: halves of surrogate pairs, and bytes that are not UTF-8. Without any, `line` itself."""
    repaired = replace_surrogates(line)
    try:
        repaired.decode()
    except UnicodeDecodeError:
        return repaired.decode(errors="replace").encode()
    return repaired


_FORBIDDEN_IN_XML: Final = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 65534, 65535), 65533)
"""Characters that XML has no way to write."""


def xml_text(text: str) -> str:
    """Return a text as XML can hold it. It still has to be escaped."""
    return text.encode("utf-8", "replace").decode().translate(_FORBIDDEN_IN_XML)
