"""What would be invisible, or turn the writing around, shown by its number. Tables only; they know nobody."""

from typing import Final

__all__ = ["EXACT", "PROSE", "exact"]

_CONTROLS: Final = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: "\u2421"}
_C1: Final = {code: f"<U+{code:04X}>" for code in range(0x80, 0xA0)}
# Embeddings, overrides and isolates: with them a line can be shown in another order than it is read by the shell.
_TURNING: Final = {code: f"<U+{code:04X}>" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}
_BREAKS: Final = {0x2028: "\n", 0x2029: "\n", 0x85: "\n"}
_BLANKS: Final = (0x00A0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x2800)
"""They look like a space and are none: to a shell they are a part of a word."""
_NOTHING: Final = (
    0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), *range(0x200B, 0x2010), *range(0x2060, 0x2066),
    *range(0x206A, 0x2070), 0x3164, *range(0xFE00, 0xFE0F), 0xFEFF, 0xFFA0, *range(0xFFF9, 0xFFFC), *range(0x1D173, 0x1D17B),
    *range(0xE0000, 0xE01F0),
)  # fmt: skip
"""They are shown as nothing at all. U+FE0F is not among them: it makes emoji of signs, and is in every other sentence."""
_INVISIBLE: Final = {code: f"<U+{code:04X}>" for code in (*_BLANKS, *_NOTHING)}

PROSE: Final = str.maketrans({**_CONTROLS, **_C1, **_TURNING, **_BREAKS})
"""For words: without what a terminal would obey or what turns them around."""

EXACT: Final = str.maketrans({**_CONTROLS, **_C1, **_TURNING, **_INVISIBLE, 0x2028: "<U+2028>", 0x2029: "<U+2029>"})
"""For what somebody decides by: a command, a path, an address. Nothing in it is invisible."""


def exact(text: str) -> str:
    """What somebody decides by, with its lines and tabs. A half of a surrogate pair, which no message can carry, becomes a `?`."""
    return text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8").translate(EXACT)
