"""What the doctor says of our own agent: which engines it would join here, and what stands in the way of what was wanted."""

from pathlib import Path

import pytest

from tests.doctor.machine import Machine, Report

OURS = "agents.antiphon"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def hints(report: Report) -> str:
    return "\n".join(each["hint"] or "" for each in report.all(OURS))


def sentences(report: Report) -> str:
    return "\n".join(each["sentence"] for each in report.all(OURS))


def test_it_shows_which_engines_it_joins_and_how_a_session_begins(machine: Machine) -> None:
    report = machine.report("antiphon")
    assert report.ids == [OURS] and report[OURS]["status"] == "ok"
    assert "it joins claude and codex; the route of a new session is `claude`; auto-resume is on" in sentences(report)
    facts = report[OURS]["facts"]
    assert (facts["engines"], facts["route"], facts["primary"]) == ("claude, codex", "claude", "claude")
    assert facts["autoResume"] == "on" and facts["command"].endswith("antiphon agent")


def test_preferences_count(machine: Machine) -> None:
    machine.program("gemini", "#!/bin/sh\necho 0.9.1\n")
    machine.configure(
        '[duet]\nengines = ["codex", "gemini"]\nroute = "duet"\nprimary = "gemini"\nauto_resume = false\n'
    )
    facts = machine.report("antiphon")[OURS]["facts"]
    assert (facts["engines"], facts["route"], facts["primary"]) == ("codex, gemini", "duet", "gemini")
    assert facts["autoResume"] == "off"
    facts = machine.report("antiphon", BANJO_ROUTE="review", ANTIPHON_AUTO_RESUME="on")[OURS]["facts"]
    assert (facts["route"], facts["autoResume"]) == ("review", "on")


def test_without_an_engine_it_is_the_demo(machine: Machine) -> None:
    machine.bare()
    report = machine.report()
    assert report[OURS]["facts"]["engines"] == "demo" and "the demo behind it" in sentences(report)
    assert "`run` and `chat` start `demo`" in report.says("config.agent")[1]


def test_with_engines_it_is_what_run_and_chat_start(machine: Machine) -> None:
    assert "`run` and `chat` start `antiphon`" in machine.report("config").says("config.agent")[1]


@pytest.mark.parametrize(
    ("engines", "says", "hint"),
    [
        ('["claude", "codex"]', "Codex is not installed", "antiphon[codex]"),
        ('["claude", "gemini"]', "the engine `gemini` is not installed", "gemini"),
        ('["claude", "lute"]', "there is no agent named `lute`", "gemini"),
        ('["claude", "lute --acp"]', "no program `lute`", "correct `duet.engines`"),
    ],
)
def test_an_engine_that_was_named_and_is_not_there_is_a_problem(
    engines: str, says: str, hint: str, machine: Machine
) -> None:
    machine.bare()
    machine.program("claude", "#!/bin/sh\n")
    machine.configure(f"[duet]\nengines = {engines}\n")
    report = machine.report("antiphon")
    assert report.problems == [OURS] and says in sentences(report) and hint in hints(report)


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("ANTIPHON_ROUTE", "no route!", "ANTIPHON_ROUTE is 'no route!'"),
        ("ANTIPHON_ROUTE", "gemini", "There is no route `gemini` here"),
        ("ANTIPHON_PRIMARY_AGENT", "lute", "There is no engine `lute` here to lead"),
        ("BANJO_AUTO_RESUME", "perhaps", "BANJO_AUTO_RESUME is 'perhaps'"),
    ],
)
def test_a_wish_that_makes_no_sense_is_a_problem(variable: str, value: str, says: str, machine: Machine) -> None:
    report = machine.report("antiphon", **{variable: value})
    assert report.problems == [OURS] and says in sentences(report) and hints(report)


def test_a_mistake_in_the_table_is_reported_with_its_line(machine: Machine) -> None:
    machine.configure('[duet]\nreview = "often"\nruote = "duet"\n')
    lines = {each["facts"].get("line"): each["sentence"] for each in machine.report("config").all("config.user")}
    assert "duet.review" in lines["2"] and "duet.ruote" in lines["3"]
