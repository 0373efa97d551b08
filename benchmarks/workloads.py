"""The workloads and their targets, as data. Knows neither processes nor SDKs."""

from dataclasses import dataclass, replace
from typing import Final, Literal, get_args

from benchmarks.commands import BARE_ASYNCIO, CLAUDE_AGENT_ACP, CODEX_ACP, OURS, PYTHON_SDK, RIVALS, TYPESCRIPT_SDK

MIB: Final = 1 << 20
BARE_IMPORT: Final = "bare import"
"""The contestant that is only `python -c "import asyncio, msgspec"`."""

Facing = Literal["neutral agent", "neutral client", "both neutral", "itself"]
"""Who is at the other end; `both neutral` is a relay, with a neutral peer at each end."""
Engine = Literal["claude", "codex"]
BridgeMeasure = Literal[
    "new_home", "new", "new_paused", "start_to_new_home", "start_to_new",
    "first", "new_to_first", "start_to_first", "later", "warm",
    "cpu_deltas", "cpu_deltas_again", "rss_idle", "rss_after", "pss_idle", "pss_after",
]  # fmt: skip
Measure = (
    Literal["cpu", "cpu_rusage", "wall", "wall_total", "p50", "p99", "memory", "start", "idle", "session"]
    | BridgeMeasure
)

UNITS: Final[dict[str, str]] = {
    "cpu": "CPU µs/message",
    "cpu_rusage": "CPU µs/message, by rusage",
    "wall": "wall µs/message",
    "wall_total": "wall ms",
    "p50": "p50 µs",
    "p99": "p99 µs",
    "memory": "peak above idle ÷ message",
    "start": "ms",
    "idle": "MB resident, idle",
    "session": "KB resident per idle session",
    "new_home": "ms, new, first ever",
    "new": "ms, new",
    "new_paused": "ms, new, after a pause",
    "start_to_new_home": "ms, start to new, first ever",
    "start_to_new": "ms, start to new",
    "first": "ms, prompt to words, at once",
    "new_to_first": "ms, new to words",
    "start_to_first": "ms, start to words",
    "later": "ms, prompt to words, later",
    "warm": "ms, prompt to words, warm",
    "cpu_deltas": "CPU ms/10,000 deltas",
    "cpu_deltas_again": "the same, once more",
    "rss_idle": "MB resident, idle",
    "rss_after": "MB resident, after deltas",
    "pss_idle": "MB PSS, idle",
    "pss_after": "MB PSS, after deltas",
}


@dataclass(frozen=True, slots=True)
class Goal:
    """A promise about one measure.

    Against a rival it bounds `theirs / ours` from below; against `BARE_IMPORT` it bounds `ours / theirs` from above;
    without a rival it bounds our own value from above.
    """

    measure: Measure
    bound: float
    against: str | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """One line of the table: who talks to whom, about how much."""

    name: str
    title: str
    kind: str
    facing: Facing
    measures: tuple[Measure, ...]
    goals: tuple[Goal, ...] = ()
    count: int = 0
    sessions: int = 1
    size: int = 0
    repeat: int = 1
    """How many times a round is repeated: short measurements need more samples."""
    among: tuple[str, ...] = (OURS, *RIVALS)
    """Who plays it."""
    engine: Engine | None = None
    """Which CLI is bridged, if one is."""

    def arguments(self) -> tuple[str, ...]:
        """Make the command-line arguments both programs get."""
        return (self.kind, str(self.count), str(self.sessions), str(self.size))

    def idle(self) -> "Workload":
        """Make the same conversation about nothing: what start-up and handshake cost. A big message becomes an empty one."""
        return replace(self, size=0) if self.size else replace(self, count=0)


def both(measure: Measure, python: float, typescript: float) -> tuple[Goal, Goal]:
    """Promise something against each rival."""
    return Goal(measure, python, PYTHON_SDK), Goal(measure, typescript, TYPESCRIPT_SDK)


def _streams(count: int, label: str) -> tuple[Workload, ...]:
    cpu: tuple[Measure, ...] = ("cpu", "cpu_rusage")
    return (
        Workload(
            f"receive-{label}",
            f"{count:,} updates received",
            "stream",
            "neutral agent",
            cpu,
            both("cpu", 20, 10),
            count,
        ),
        Workload(
            f"send-{label}",
            f"{count:,} updates sent",
            "stream",
            "neutral client",
            cpu,
            both("cpu", 35, 10),
            count,
        ),
        Workload(
            f"end-to-end-{label}",
            f"{count:,} updates, own agent to own client",
            "stream",
            "itself",
            ("wall",),
            both("wall", 20, 10),
            count,
        ),
    )


def workloads(*, quick: bool = False) -> tuple[Workload, ...]:
    """List every workload; `quick` makes the long ones short enough for a look."""
    many = 40_000 if quick else 200_000
    asks = 1_000 if quick else 5_000
    drips = 500 if quick else 2_000
    return (
        *_everyday(many, "40k" if quick else "200k", drips),
        *_streams(20_000, "20k"),
        *_streams(many, "40k" if quick else "200k"),
        Workload(
            "sessions-100",
            "20,000 updates received, dealt to 100 sessions",
            "stream",
            "neutral agent",
            ("cpu", "cpu_rusage"),
            both("cpu", 15, 15),
            20_000,
            100,
        ),
        Workload(
            "sessions-100-end-to-end",
            "100 prompts at once, 200 updates each, own agent to own client",
            "stream",
            "itself",
            ("wall",),
            both("wall", 15, 15),
            20_000,
            100,
        ),
        Workload(
            "permission",
            f"{asks:,} permission round trips, own agent to own client",
            "permission",
            "itself",
            ("p50", "p99"),
            both("p50", 2, 1.1),
            asks,
            repeat=2,
        ),
        Workload(
            "permission-client",
            f"{asks:,} permissions answered, as a neutral agent sees it",
            "permission",
            "neutral agent",
            ("p50", "p99", "cpu"),
            (),
            asks,
        ),
        Workload(
            "permission-agent",
            f"{asks:,} permissions asked of a neutral client",
            "permission",
            "neutral client",
            ("p50", "p99", "cpu"),
            (),
            asks,
        ),
        Workload(
            "drip",
            f"{drips:,} updates received, one per wake-up",
            "drip",
            "neutral agent",
            ("cpu", "cpu_rusage"),
            both("cpu", 2, 2),
            drips,
        ),
        *_relays(many, "40k" if quick else "200k", asks),
        *_other_ways(many, "40k" if quick else "200k"),
        *_big(),
        Workload(
            "start-up",
            "minimal agent, spawn to `initialize` answer",
            "start",
            "itself",
            ("start",),
            (Goal("start", 1.1, BARE_IMPORT), *both("start", 6, 2.2)),
            repeat=4,
        ),
        Workload(
            "start-up-agent",
            "the installed demo agent and the rivals' echo agents, spawn to `initialize` answer",
            "start_agent",
            "itself",
            ("start",),
            (Goal("start", 1.15, BARE_IMPORT), *both("start", 6, 2.2)),
            repeat=4,
        ),
        Workload(
            "start-up-file",
            "an agent file that imports `Agent`, `AgentTurn` and `v1`, and the rivals' echo agents, spawn to `initialize` answer",
            "start_file",
            "itself",
            ("start",),
            (Goal("start", 1.2, BARE_IMPORT), *both("start", 6, 2.2)),
            repeat=4,
        ),
        Workload(
            "idle-agent",
            "the same agents after `initialize`, then with sessions that are not used",
            "idle",
            "itself",
            ("idle", "session"),
            (Goal("idle", 25.0),),
            sessions=1000,
        ),
        _bridges("claude", CLAUDE_AGENT_ACP, 2_000 if quick else 10_000, ("new_home", "new", "new_to_first")),
        _bridges("codex", CODEX_ACP, 2_000 if quick else 10_000),
    )


def _everyday(count: int, label: str, drips: int) -> tuple[Workload, ...]:
    """What a user of the client SDK writes: `antiphon.connect` and `async for update in session.prompt(…)`."""
    cpu: tuple[Measure, ...] = ("cpu", "cpu_rusage")
    return (
        Workload(
            f"everyday-{label}",
            f"{count:,} updates received, ours by `connect` and `async for`",
            "everyday",
            "neutral agent",
            cpu,
            both("cpu", 20, 12),
            count,
        ),
        Workload(
            "everyday-sessions-100",
            "20,000 updates received, dealt to 100 sessions, ours by `connect` and `async for`",
            "everyday",
            "neutral agent",
            cpu,
            both("cpu", 15, 10),
            20_000,
            100,
        ),
        Workload(
            "everyday-drip",
            f"{drips:,} updates received, one per wake-up, ours by `connect` and `async for`",
            "everyday_drip",
            "neutral agent",
            cpu,
            both("cpu", 3, 3),
            drips,
            among=(OURS, *RIVALS, BARE_ASYNCIO),
        ),
    )


def _bridges(engine: Engine, rival: str, count: int, also: tuple[Measure, ...] = ()) -> Workload:
    """Ours beside the rival, in front of one CLI: no worse in any time, and a third of the CPU and memory.

    `also`: times that begin with `session/new`. They say something where no rival starts its CLI before it answers `initialize`.
    """
    no_worse: tuple[Measure, ...] = (
        "new_paused",
        "start_to_new_home",
        "start_to_new",
        "start_to_first",
        "later",
        "warm",
    )
    a_third: tuple[Measure, ...] = ("cpu_deltas", "cpu_deltas_again", "rss_idle", "rss_after")
    return Workload(
        f"bridges-{engine}",
        f"a bridge to {engine}: sessions opened, prompts answered, {count:,} deltas passed on",
        "bridge",
        "itself",
        get_args(BridgeMeasure),
        (
            *(Goal(measure, 1, rival) for measure in (*also, *no_worse)),
            *(Goal(measure, 3, rival) for measure in a_third),
        ),
        count,
        among=(OURS, rival),
        engine=engine,
    )


def _relays(count: int, label: str, asks: int) -> tuple[Workload, ...]:
    """Ours forwards raw frames and replaces ids; the SDK decodes each message and encodes it again."""
    among = (OURS, PYTHON_SDK)
    return (
        Workload(
            f"relay-{label}",
            f"{count:,} updates forwarded between two neutral peers",
            "stream",
            "both neutral",
            ("cpu", "wall"),
            (Goal("cpu", 15, PYTHON_SDK), Goal("wall", 15, PYTHON_SDK)),
            count,
            among=among,
        ),
        Workload(
            "relay-permission",
            f"{asks:,} permission round trips forwarded between two neutral peers",
            "permission",
            "both neutral",
            ("cpu",),
            (Goal("cpu", 2, PYTHON_SDK),),
            asks,
            among=among,
        ),
    )


def _other_ways(count: int, label: str) -> tuple[Workload, ...]:
    """The same streams by our other roads: updates iterated over instead of handled, and built as objects before they are sent."""
    cpu: tuple[Measure, ...] = ("cpu", "cpu_rusage")
    return (
        Workload(
            f"iterate-{label}",
            f"{count:,} updates received, ours by a stream",
            "iterate",
            "neutral agent",
            cpu,
            (),
            count,
        ),
        Workload(
            f"send-objects-{label}",
            f"{count:,} updates sent, ours as objects",
            "objects",
            "neutral client",
            cpu,
            (),
            count,
        ),
    )


def _big() -> tuple[Workload, ...]:
    measures: tuple[Measure, ...] = ("wall_total", "memory")
    goals = (Goal("wall_total", 1.7, PYTHON_SDK), Goal("memory", 3.0))
    return (
        Workload(
            "big-update",
            "one 10 MiB update received",
            "big_update",
            "neutral agent",
            measures,
            goals,
            1,
            size=10 * MIB,
        ),
        Workload(
            "big-read",
            "50 MiB fs/read_text_file, own agent from own client",
            "big_read",
            "itself",
            measures,
            goals,
            1,
            size=50 * MIB,
        ),
        Workload(
            "big-read-lines",
            "the same with a newline every 80 characters",
            "big_read_lines",
            "itself",
            measures,
            (),
            1,
            size=50 * MIB,
        ),
    )
