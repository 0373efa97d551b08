"""What the model of the tests of Claude Code is told to say, beside what every model can say."""

from dataclasses import dataclass, field
from typing import TypeAlias

from tests.engines.model.steps import PATIENCE, Cut, Gate, Header, Json, Stop, Text, Think, Used, Wait

__all__ = [
    "PATIENCE", "Answer", "Call", "Cut", "Fail", "Gate", "Header", "Json", "Step", "Stop", "Text", "Think", "Used", "Wait",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """A tool is to be used. Its input comes in deltas of so many characters; without an id it gets one."""

    name: str
    input: Json = field(default_factory=dict)
    id: str = ""
    size: int = 16


@dataclass(frozen=True, slots=True)
class Fail:
    """An error instead of an answer, so it stands alone."""

    status: int
    kind: str = "api_error"
    message: str = "out of tune"
    headers: tuple[tuple[str, str], ...] = ()


Step: TypeAlias = Text | Think | Call | Wait | Fail | Cut | Header | Stop | Used
Answer: TypeAlias = tuple[Step, ...]
