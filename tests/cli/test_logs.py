"""The log file of our commands: bounded while it is written, whatever an agent does and however many processes write it."""

import json
import logging
import multiprocessing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.cli import logs
from antiphon.cli.logs import log_file, logging_to_file
from antiphon.connection.reports import REPORTS_LOGGED, HandlerFailed, LenientlyRead, Report, ReportLog
from antiphon.rpc.envelope import Noise
from tests.cli import agents
from tests.cli.program import Place

LINE = 200
"""More than an entry takes beside its text."""


class Entries(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def logged(reports: list[Report]) -> list[str]:
    entries, logger = Entries(), logging.getLogger(ReportLog.__module__)
    level = logger.level
    logger.addHandler(entries)
    logger.setLevel(logging.INFO)
    try:
        log = ReportLog()
        for report in reports:
            log(report)
    finally:
        logger.removeHandler(entries)
        logger.setLevel(level)
    return entries.lines


KINDS: dict[str, Report] = {
    "noise": Noise(b"debug"),
    "leniently read": LenientlyRead("session/update", ("a rule",)),
    "failed": HandlerFailed("session/prompt", ValueError("x")),
}


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.sampled_from([*KINDS]), st.integers(0, 3000)))
def test_of_each_kind_of_report_the_first_are_logged_and_the_others_counted(counts: dict[str, int]) -> None:
    lines = logged([KINDS[name] for name, count in counts.items() for _ in range(count)])
    for name, count in counts.items():
        kind = type(KINDS[name]).__name__
        whole = [line for line in lines if line.startswith(f"{kind}(")]
        numbers = [int(line.split()[0]) for line in lines if f"the kind {kind} " in line]
        assert len(whole) == min(count, REPORTS_LOGGED)
        assert numbers == [power for power in (100, 1000, 10_000) if power <= count]


def test_the_log_is_set_aside_while_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path))
    monkeypatch.setattr(logs, "LOG_LIMIT", 10_000)
    with logging_to_file(verbose=False):
        for number in range(2000):
            logging.getLogger("antiphon.test").info("entry %d", number)
    now, before = log_file(), log_file().with_suffix(".log.1")
    assert sorted(now.parent.iterdir()) == [now, before]
    for file in (now, before):
        assert file.stat().st_size <= 10_000 + LINE and file.stat().st_mode & 0o777 == 0o600
    assert now.read_text(encoding="utf-8").endswith("entry 1999\n")


def _write(state: str, name: str) -> None:
    patch = pytest.MonkeyPatch()
    patch.setenv("ANTIPHON_STATE_DIR", state)
    patch.setattr(logs, "LOG_LIMIT", 10_000)
    with logging_to_file(verbose=False):
        for number in range(1000):
            logging.getLogger("antiphon.test").info("%s %d", name, number)


@pytest.mark.slow
def test_several_processes_keep_the_limit_together(tmp_path: Path) -> None:
    spawned = multiprocessing.get_context("spawn")
    writers = [spawned.Process(target=_write, args=(str(tmp_path), f"writer{n}")) for n in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    files = list((tmp_path / "logs").iterdir())
    assert len(files) <= 2 and all(file.stat().st_size <= 10_000 + len(writers) * LINE for file in files)


@pytest.mark.slow
@pytest.mark.parametrize("verbose", [[], ["--verbose"]])
def test_many_lines_of_noise_neither_hold_a_run_up_nor_fill_the_log(verbose: list[str], tmp_path: Path) -> None:
    place = Place(tmp_path)
    done = place.run("go", "--agent", place.agent(agents.Noisy), *verbose)
    assert done.status == 0
    log = (place.state / "logs" / "antiphon.log").read_text(encoding="utf-8")
    assert log.count("Noise(") == REPORTS_LOGGED and "100000 reports of the kind Noise" in log
    assert done.err.count("\n") < 4 * REPORTS_LOGGED


def test_warnings_of_the_servers_are_entries_like_ours_and_addresses_are_not_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path))
    for name in ("uvicorn.error", "hypercorn.error", "websockets.server"):
        with logging_to_file(verbose=False, stderr="json"):
            logging.getLogger(name).info("GET /acp?token=%s", "x")
            logging.getLogger(name).error("it broke")
        (entry,) = map(json.loads, capsys.readouterr().err.splitlines())
        assert (entry["logger"], entry["level"], entry["message"]) == (name, "error", "it broke")
    assert log_file().read_text(encoding="utf-8").count("it broke") == 3
