"""The image in the clipboard, read with the program that this desktop has for it."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from antiphon.client.attachments import MEDIA_LIMIT, kind_of
from antiphon.config.directories import make_private_directory
from antiphon.errors import AcpError

__all__ = ["clipboard_image", "clipboard_programs"]

LIMIT: Final = 10.0
"""Seconds that the program may take: a clipboard whose owner hangs never answers."""

_SUFFIXES: Final = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}


def clipboard_programs(environment: Mapping[str, str], platform: str = sys.platform) -> list[list[str]]:
    """Return the commands that write the image of the clipboard to stdout, the likeliest first."""
    if platform == "darwin":
        return [["pngpaste", "-"]]
    wayland, x11 = (
        ["wl-paste", "--no-newline", "--type", "image/png"],
        ["xclip", "-selection", "clipboard", "-t", "image/png", "-o"],
    )
    found = [wayland] if environment.get("WAYLAND_DISPLAY") else []
    return [*found, x11] if environment.get("DISPLAY") else found


def clipboard_image(directory: Path, environment: Mapping[str, str] = os.environ) -> Path:
    """Store the image of the clipboard in a file of its own, and return the path.

    Raises:
        AcpError: there is no image, or no program that reads the clipboard.
    """
    programs = clipboard_programs(environment)
    there = [words for words in programs if shutil.which(words[0], path=environment.get("PATH"))]
    if not there:
        wanted = " or ".join(words[0] for words in programs) or "a desktop: this terminal has none"
        raise AcpError(
            f"the clipboard cannot be read here: that needs {wanted}", hint="write `@` and the path of the image"
        )
    for words in there:
        try:
            data = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT, check=True, env=dict(environment)
            ).stdout
        except (OSError, subprocess.SubprocessError):
            continue
        suffix = _SUFFIXES.get(kind_of("", data[:64]))
        if suffix is not None and len(data) <= MEDIA_LIMIT:
            make_private_directory(directory)
            descriptor, name = tempfile.mkstemp(suffix, "pasted-", directory)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            return Path(name)
    raise AcpError("there is no image in the clipboard", hint="copy one, or write `@` and its path")
