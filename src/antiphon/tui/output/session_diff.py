"""What the turns of a session changed in files, from snapshots: also what a command changed, which no agent reports."""

import os
from collections.abc import Iterable
from typing import Final, NamedTuple

from rich.console import RenderableType
from rich.text import Text

from antiphon.snapshots.entries import FILE, LINK, TreeEntry
from antiphon.snapshots.plan import RestorePlan
from antiphon.snapshots.store import SnapshotStore
from antiphon.tui.output.diff import change_of, diff_texts, indented
from antiphon.tui.output.links import file_link
from antiphon.tui.painter import exact

__all__ = ["SessionChange", "change_texts", "session_changes"]

LARGEST: Final = 1 << 20
"""Bytes of a file that is shown as a diff. Of a larger one the sizes are named."""


class SessionChange(NamedTuple):
    """One file, as it was before the first turn and as it is; None: it was not there, or is not text."""

    path: str
    """Relative to the first directory of the session, else absolute."""
    old: str | None
    new: str | None
    notes: tuple[str, ...]
    """What the texts do not show: that it is new, deleted, binary, or has another mode."""


async def session_changes(store: SnapshotStore, plans: Iterable[RestorePlan]) -> list[SessionChange]:
    """Return the files that plans would bring back, as they were and as they are."""
    found: list[SessionChange] = []
    first = b""
    for plan in plans:
        first = first or plan.root
        steps = [step for step in plan.files if _is_shown(step.now) or _is_shown(step.then)]
        entries = [each for step in steps for each in (step.then, step.now) if each is not None]
        texts = {
            digest: _text(data)
            for digest, data in (
                await store.contents(plan.root, [entry for entry in entries if entry.size <= LARGEST])
            ).items()
        }
        for step in steps:
            path = step.path if plan.root == first else os.path.join(plan.root, step.path)
            found.append(_change(os.fsdecode(path), step.then, step.now, texts))
    return found


def _is_shown(entry: TreeEntry | None) -> bool:
    return entry is not None and entry.kind in (FILE, LINK)


def _change(path: str, then: TreeEntry | None, now: TreeEntry | None, texts: dict[bytes, str | None]) -> SessionChange:
    notes = ["new"] if then is None else ["deleted"] if now is None else []
    if then is not None and now is not None and then.kind == now.kind == FILE and then.mode != now.mode:
        notes.append(f"mode {then.mode:o} → {now.mode:o}")
    last = then if now is None else now
    if last is not None and last.kind == LINK:
        notes.append(f"link to {exact(os.fsdecode(last.digest))}")
    files = [each for each in (then, now) if each is not None and each.kind == FILE]
    if any(texts.get(each.digest) is None for each in files):
        same = len(files) == 2 and files[0].digest == files[1].digest != b""
        notes += [] if same else ["not text, or too large: " + " → ".join(f"{each.size:,} bytes" for each in files)]
        return SessionChange(path, None, None, tuple(notes))
    old, new = (texts[each.digest] if each is not None and each.kind == FILE else None for each in (then, now))
    return SessionChange(path, old, new, tuple(notes))


def _text(data: bytes) -> str | None:
    if b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def change_texts(changes: Iterable[SessionChange], cwd: str) -> list[RenderableType]:
    """Return the changes as `/diff` shows them."""
    rows: list[RenderableType] = []
    for each in changes:
        change = change_of(each.old or "", each.new or "")
        counts = f"  +{change.added} -{change.removed}" if change.rows else ""
        notes = "".join(f"  {note}" for note in each.notes)
        rows.append(Text.assemble((exact(each.path), file_link(each.path, cwd, "bold")), (counts + notes, "dim")))
        rows += map(indented, diff_texts(change, path=each.path, first=1))
    return rows
