"""What is done with a bridge, and what is measured while it is done. Knows no target."""

import statistics
import time
from collections.abc import Sequence
from typing import Final

from benchmarks.bridges.client import Answer, Bridge, running
from benchmarks.bridges.clis import CLIS
from benchmarks.bridges.place import Place, model, place
from benchmarks.bridges.words import prompt_for, words_of
from benchmarks.measure import RunFailed
from benchmarks.workloads import Engine, Measure

PAUSE: Final = 0.5
"""Seconds that a client takes from `initialize` to `session/new` if it is in no hurry."""

SETTLE: Final = 3.0
"""Seconds until a bridge with a new session is at rest, with its CLI behind it; that takes about one."""

FEW: Final = 20
"""Words of a short answer."""

TIMES: Final = 5
"""Short prompts in a session that is warm."""


def play_bridge(command: Sequence[str], engine: Engine, words: int, settle: float = SETTLE) -> dict[Measure, float]:
    """Play the whole of it with one bridge, three times started in one home; `settle` is how long it is left alone.

    Raises:
        RunFailed: it sent something else than the model did, or nothing; or there is no CLI.
    """
    cli = CLIS[engine]
    program = cli.program()
    if program is None:
        raise RunFailed(f"{cli.package} is not installed, and {cli.chosen} names no other CLI")
    with model() as address, place(address, cli, program) as where:
        with running(command, where) as bridge:
            values = _at_leisure(bridge, where, words, settle)
        with running(command, where) as bridge:
            values |= _in_a_hurry(bridge, where)
        with running(command, where) as bridge:
            return values | _after_a_pause(bridge, where)


def _at_leisure(bridge: Bridge, where: Place, words: int, settle: float) -> dict[Measure, float]:
    """In a home that is new: a session is opened, left alone, and then used."""
    session, opened = _open(bridge, where)
    time.sleep(settle)
    idle = bridge.memory()
    later = _first(_prompt(bridge, session, FEW))
    warm = statistics.median(_first(_prompt(bridge, session, FEW)) for _ in range(TIMES))
    began = bridge.cpu()
    _prompt(bridge, session, words)
    streamed = bridge.cpu()
    after = bridge.memory()
    _prompt(bridge, session, words)
    again = bridge.cpu()
    each = 10_000 / words
    return {
        "new_home": opened * 1e3,
        "start_to_new_home": (bridge.started + opened) * 1e3,
        "later": later * 1e3,
        "warm": warm * 1e3,
        "cpu_deltas": (streamed - began) * each * 1e3,
        "cpu_deltas_again": (again - streamed) * each * 1e3,
        "rss_idle": idle.resident / 1e6,
        "rss_after": after.resident / 1e6,
        "pss_idle": idle.shared_out / 1e6,
        "pss_after": after.shared_out / 1e6,
    }


def _in_a_hurry(bridge: Bridge, where: Place) -> dict[Measure, float]:
    """In a home that was used before: the first prompt follows at once."""
    session, opened = _open(bridge, where)
    first = _first(_prompt(bridge, session, FEW))
    return {
        "new": opened * 1e3,
        "start_to_new": (bridge.started + opened) * 1e3,
        "first": first * 1e3,
        "new_to_first": (opened + first) * 1e3,
        "start_to_first": (bridge.started + opened + first) * 1e3,
    }


def _after_a_pause(bridge: Bridge, where: Place) -> dict[Measure, float]:
    """In the same home: the client shakes hands, and opens a session when its user wants one."""
    time.sleep(PAUSE)
    return {"new_paused": _open(bridge, where)[1] * 1e3}


def _open(bridge: Bridge, where: Place) -> tuple[str, float]:
    answer = bridge.ask("session/new", {"cwd": str(where.folder), "mcpServers": []})
    return answer.result["sessionId"], answer.seconds


def _prompt(bridge: Bridge, session: str, words: int) -> Answer:
    prompt = [{"type": "text", "text": prompt_for(words)}]
    answer = bridge.ask("session/prompt", {"sessionId": session, "prompt": prompt})
    if answer.text != "".join(words_of(words)):
        raise RunFailed(f"the model said {words} words, the bridge {len(answer.text)} characters that are not those")
    return answer


def _first(answer: Answer) -> float:
    if answer.first is None:
        raise RunFailed("no word came before the answer")
    return answer.first
