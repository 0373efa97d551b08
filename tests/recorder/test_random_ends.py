"""Whatever the disk and the redactor do: recording ends, what was sent is written or counted as missing, and the user is shown once."""

import json
import random
from pathlib import Path
from typing import Any, Final

import pytest

from antiphon.recorder.redaction import RecordingRedactor
from antiphon.recorder.writer import RecordingFiles, RecordingWriter, WriteQueue
from tests.schedules import SCHEDULES, Schedule, World, run

POISON: Final = b"poison"
"""What the redactor cannot bear."""

ERRORS: Final = (RecursionError("too deep"), ValueError("odd"), KeyError("x"), MemoryError())


class Disk(RecordingFiles):
    """A disk that is full for some writes, or that fails in the middle of one."""

    def __init__(self, path: str, world: World, *, fails: float) -> None:
        super().__init__(path, limit=world.random.choice([None, 2000]))
        self.rng = random.Random(world.schedule.seed)
        self.fails = fails

    def _put(self, lines: bytes) -> None:
        if lines and self.rng.random() < self.fails:
            raise OSError(28, "No space left on device")
        super()._put(lines)


class Recorded:
    """One recording."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.number = 0
        self.bearing: list[Exception] = []

    def __call__(self, world: World) -> None:
        rng, printed = world.random, list[str]()
        self.number += 1
        path = self.folder / f"{self.number}.jsonl"
        self.bearing = rng.sample(ERRORS, 2)
        disk = Disk(str(path), world, fails=rng.choice([0, 0, 0.2, 1]))
        disk.open()
        queue = WriteQueue(("c2a", "a2c", "stderr"))
        writer = RecordingWriter(queue, disk, printed.append)
        writer.start(["agent"], frozenset({"text"}) if rng.random() < 0.8 else frozenset(), quiet=True)
        sent: dict[str, list[int]] = {"c2a": [], "a2c": []}
        poisoned = 0
        for number in range(rng.randint(0, 30)):
            direction = rng.choice(("c2a", "a2c"))
            bad = rng.random() < 0.15
            poisoned += bad
            sent[direction].append(number)
            line = json.dumps(
                {"n": number, "text": "x" * rng.choice((1, 3000)), **({"p": POISON.decode()} if bad else {})}
            )
            cut = rng.randint(0, len(line))
            queue.put(direction, line[:cut].encode())
            queue.put(direction, line[cut:].encode() + b"\n") if cut or line else None
            if rng.random() < 0.2:
                writer._queue.ring()
        for direction in sent:
            if rng.random() < 0.5:
                queue.put(direction, b"")
        writer.finish()
        self.check(path, sent, printed)

    def check(self, path: Path, sent: dict[str, list[int]], texts: list[str]) -> None:
        """All that was sent is there in its order, or counted."""
        lines = [json.loads(line) for file in files(path) for line in file.read_bytes().splitlines() if is_json(line)]
        found: dict[str, list[int]] = {"c2a": [], "a2c": []}
        missing = 0
        for line in lines:
            if line.get("note") == "lines could not be written":
                missing += line["lines"]
            elif line["dir"] in found:
                found[line["dir"]].append(line["msg"]["n"])
        for direction, numbers in found.items():
            assert numbers == sorted(set(numbers)) and set(numbers) <= set(sent[direction])
        total, kept = sum(map(len, sent.values())), sum(map(len, found.values()))
        assert len(texts) == len({each.partition("(")[0] for each in texts}) and "does not answer" not in "".join(texts)
        if not texts:
            assert kept == total
        elif kept + missing < total:  # the last count could not be written either
            assert "cannot be written" in "".join(texts)


def files(path: Path) -> list[Path]:
    """The parts of a recording, the oldest first."""
    older = sorted(path.parent.glob(f"{path.name}.*"), key=lambda each: -int(each.suffix[1:]))
    return [*older, path]


def is_json(line: bytes) -> bool:
    """Whether a line is whole: a disk that fails cuts one."""
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def test_whatever_fails_a_recording_ends_and_notes_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = Recorded(tmp_path)
    block = RecordingRedactor.block

    def bearing(self: RecordingRedactor, lines: bytes) -> bytes:
        if POISON in lines:
            raise recorded.bearing[lines.count(POISON) % 2]
        return block(self, lines)

    monkeypatch.setattr(RecordingRedactor, "block", bearing)
    recording: Any = recorded.__call__
    for seed in range(SCHEDULES // 2):
        run(recording, Schedule(seed), limit=30)
        for path in tmp_path.iterdir():
            path.unlink()
