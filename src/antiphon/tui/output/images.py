"""Images of the agent in the scrollback, where the terminal can show them: by the protocols of kitty, of iTerm2, or as sixels.

The terminal is known by its variables and never asked, as everywhere in the chat. A protocol has one image format that every terminal
with it knows; for another one, and for sixels, a program makes the output: img2sixel, chafa or ImageMagick.
"""

import base64
import binascii
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from antiphon.client.attachments import kind_of

__all__ = ["ImagePainter", "ImageProtocol", "image_protocol"]

ImageProtocol: TypeAlias = Literal["kitty", "iterm", "sixel"]

LARGEST: Final = 8 << 20
"""Bytes of an image that is shown."""

ROWS: Final = 16
"""Rows of an image in the scrollback."""

CELL: Final = 20
"""Pixels of a row, in most terminals."""

CHUNK: Final = 4096
"""Characters of an image in one escape sequence of kitty."""

LIMIT: Final = 3.0
"""Seconds that a program may take for an image."""


def image_protocol(setting: str, environment: Mapping[str, str] = os.environ) -> ImageProtocol | None:
    """Return how this terminal shows images: as it is set, else by what it is. None inside of tmux, which drops them."""
    if setting in ("kitty", "iterm", "sixel"):
        return setting  # type: ignore[return-value]  # it is one of them
    if setting != "auto" or "TMUX" in environment or environment.get("TERM", "").startswith(("screen", "tmux")):
        return None
    term, program = environment.get("TERM", ""), environment.get("TERM_PROGRAM", "")
    if "KITTY_WINDOW_ID" in environment or "kitty" in term or "ghostty" in term or program == "ghostty":
        return "kitty"
    if program in ("iTerm.app", "WezTerm", "mintty") or environment.get("LC_TERMINAL") == "iTerm2":
        return "iterm"
    return "sixel" if term.startswith(("foot", "mlterm", "yaft", "contour")) or "sixel" in term else None


class ImagePainter:
    """Makes the escape sequences of images for one terminal."""

    def __init__(self, protocol: ImageProtocol | None, environment: Mapping[str, str] = os.environ) -> None:
        self._protocol = protocol
        self._environment = environment

    def line(self, data: str, columns: int) -> str | None:
        """Return an image as a line that shows it; None if it cannot be shown."""
        if self._protocol is None or len(data) > LARGEST * 4 // 3:
            return None
        try:
            image = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return None
        mime = kind_of("", image[:64])
        if not mime.startswith("image/"):
            return None
        if self._protocol == "iterm":
            head = f"inline=1;size={len(image)};height={_rows(image)};preserveAspectRatio=1"
            return f"\x1b]1337;File={head}:{base64.b64encode(image).decode()}\x07"
        if self._protocol == "kitty" and mime == "image/png":
            return "".join(_kitty(base64.b64encode(image).decode(), _rows(image)))
        return self._made(image, columns)

    def _made(self, image: bytes, columns: int) -> str | None:
        """Return what the first program makes of an image that there is for it."""
        for command in COMMANDS:
            words = command(self._protocol or "", columns)
            if words and shutil.which(words[0], path=self._environment.get("PATH")):
                try:
                    made = subprocess.run(
                        words, input=image, capture_output=True, timeout=LIMIT, check=True, env=dict(self._environment)
                    )
                except (OSError, subprocess.SubprocessError):
                    continue
                return made.stdout.decode("latin-1").rstrip("\n")
        return None


def _rows(image: bytes) -> int:
    """Return the rows for an image: a small PNG is not made larger."""
    height = int.from_bytes(image[20:24], "big") if image[12:16] == b"IHDR" else 0
    return min(max(-(-height // CELL), 1), ROWS) if height else ROWS


def _kitty(data: str, rows: int) -> "list[str]":
    chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
    head = f"a=T,f=100,q=2,r={rows},"
    return [
        f"\x1b_G{head if number == 0 else ''}m={int(number < len(chunks) - 1)};{chunk}\x1b\\"
        for number, chunk in enumerate(chunks)
    ]


def _chafa(protocol: str, columns: int) -> list[str]:
    return ["chafa", "-f", "kitty" if protocol == "kitty" else "sixels", "-s", f"{columns}x{ROWS}", "-"]


def _img2sixel(protocol: str, columns: int) -> list[str]:
    return ["img2sixel", "-h", str(ROWS * CELL), "-"] if protocol == "sixel" else []


def _magick(protocol: str, columns: int) -> list[str]:
    return ["magick", "-", "-resize", f"x{ROWS * CELL}>", "sixel:-"] if protocol == "sixel" else []


COMMANDS: "Final[tuple[Callable[[str, int], list[str]], ...]]" = (_img2sixel, _chafa, _magick)
