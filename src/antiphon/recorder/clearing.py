"""A recording that was made without redaction, written once more with it."""

import os

import msgspec

from antiphon.recorder.lines import note
from antiphon.recorder.redaction import Redactor
from antiphon.recorder.shelf import Shelf

__all__ = ["rewrite"]


def rewrite(source: str, target: str, what: frozenset[str]) -> tuple[int, int]:
    """Write the recording `source` redacted to `target`: how many lines were written, and how many were no JSON and left out.

    It is read twice: a secret that gives itself away only at the end is hidden in the beginning too.

    Raises:
        OSError: one of them cannot be read or written.
    """
    redactor = Redactor(what)
    shelf = Shelf(target)
    written = left_out = 0
    with open(source, "rb") as file:
        if os.path.exists(target) and os.path.samefile(source, target):
            raise ValueError("a recording cannot be rewritten onto itself")
        for line in file:
            if _is_json(line):
                redactor.line(line)
        file.seek(0)
        shelf.open()
        try:
            for line in file:
                if not line.strip():
                    continue
                written += 1
                if _is_json(line):
                    shelf.write(redactor.line(line.rstrip(b"\r\n")) + b"\n")
                else:
                    left_out += 1
                    shelf.write(note(0, "a line that is no JSON was left out", bytes=len(line)))
        finally:
            shelf.close()
    return written, left_out


def _is_json(line: bytes) -> bool:
    try:
        line.decode()
        msgspec.json.decode(line, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
