"""Reports: what a person, a program, a CI and a README get of one and the same check."""

import json
from xml.etree import ElementTree

import msgspec
import pytest

from antiphon.cli.debug.check_run import lines
from antiphon.cli.terminal import Screen
from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.report import ReportDocument, badge, document_of, encode, junit
from antiphon.conformance.requirements import (
    RequirementStatus,
    RequirementVerdict,
    Suite,
    advice,
    capability,
    must,
    should,
)
from antiphon.conformance.results import ConformanceReport, RequirementResult
from antiphon.traffic.checker import Side
from antiphon.traffic.entries import Direction, parse

HOSTILE = "\x1b[31mred\x00 <script>&\u202e"
SUITE: Suite[AgentRun] = Suite(
    Side.AGENT,
    general=(
        must("one.good", "It is good.", link="overview", fix="Be good."),
        must("one.bad", "It is not bad.", link="overview", fix="Do not be bad."),
        capability("two.bad", "It does what it offers.", link="overview", fix="Do it.", needs=("one.bad",)),
        should("two.rude", "It is polite.", link="overview", fix="Be polite."),
        advice("two.quiet", "It speaks.", link="overview", fix="Speak."),
        capability("two.absent", "It can fly.", link="overview", fix="Fly."),
    ),
)
PROOF = parse(7, 0.5, Direction.A2C, json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": HOSTILE}}).encode())
NOISE = parse(8, 0.6, Direction.A2C, b"\x1b[2J \xff log line")


def report_of(**statuses: RequirementVerdict) -> ReportDocument:
    verdicts = {
        "one.good": RequirementVerdict(RequirementStatus.PASSED),
        "one.bad": RequirementVerdict(RequirementStatus.PASSED),
        "two.bad": RequirementVerdict(RequirementStatus.PASSED),
        "two.rude": RequirementVerdict(RequirementStatus.PASSED),
        "two.quiet": RequirementVerdict(RequirementStatus.UNSEEN, "it never came to it"),
        "two.absent": RequirementVerdict(RequirementStatus.SKIPPED, "not offered"),
        **{name.replace("_", "."): verdict for name, verdict in statuses.items()},
    }
    results = [RequirementResult(one, verdicts[one.id]) for one in SUITE.requirements().values() if one.id in verdicts]
    return document_of(ConformanceReport(Side.AGENT, f"Agent {HOSTILE} 1.0", results, 1.25, ["agent", "--acp"]), SUITE)


GOOD = report_of()
RUDE = report_of(two_rude=RequirementVerdict(RequirementStatus.FAILED, "it swore"))
BAD = report_of(
    one_bad=RequirementVerdict(RequirementStatus.FAILED, f"it was bad: {HOSTILE}", (PROOF, NOISE)),
    two_bad=RequirementVerdict(RequirementStatus.FAILED, "it did not"),
)


def text_of(document: ReportDocument, width: int = 80, *, everything: bool = False) -> str:
    return "\n".join(lines(document, Screen(environment={}), width, everything=everything))


def test_an_agent_that_breaks_nothing_that_must_hold_is_correct() -> None:
    assert GOOD.correct and RUDE.correct and not BAD.correct


def test_a_failure_shows_what_was_found_the_messages_that_prove_it_and_what_to_change() -> None:
    text = text_of(BAD, 200)
    assert "✗ one.bad  must" in text
    assert "message 7, agent → client" in text and '"jsonrpc":"2.0"' in text
    assert "fix: Do not be bad." in text and "https://agentclientprotocol.com/protocol/v1/overview" in text
    assert "2 requirements that must hold are broken" in text


def test_a_failure_that_follows_from_another_names_it() -> None:
    [second] = [one for one in BAD.results if one.id == "two.bad"]
    assert second.because == ["one.bad"]
    assert "follows from: one.bad" in text_of(BAD)


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_nothing_that_an_agent_sends_reaches_the_terminal_as_a_control_code(width: int) -> None:
    for document in (GOOD, RUDE, BAD):
        text = text_of(document, width, everything=True)
        assert not {letter for letter in text if ord(letter) < 32 and letter != "\n"} | ({"\u202e"} & set(text))


def test_what_passed_is_shown_when_asked_for() -> None:
    assert "one.good: It is good." not in text_of(GOOD)
    assert "✓ one.good: It is good." in text_of(GOOD, everything=True)
    assert "two.absent" in text_of(GOOD)


def test_two_requirements_that_need_each_other_are_not_the_cause_of_each_other() -> None:
    suite: Suite[AgentRun] = Suite(Side.AGENT, general=SUITE.general, follows={"two.bad": ("one.bad",)})
    verdicts = {one.id: RequirementVerdict(RequirementStatus.FAILED, "no") for one in SUITE.general}
    report = ConformanceReport(Side.AGENT, "", [RequirementResult(one, verdicts[one.id]) for one in suite.general], 1.0)
    assert {one.id: one.because for one in document_of(report, suite).results if one.because} == {}


def test_a_strict_check_names_why_it_fails() -> None:
    sent = list(lines(RUDE, Screen(environment={}), 80, everything=False, strict=True))
    assert sent[-1] == "--strict: 1 fail that should hold."


def test_a_part_of_the_check_gives_no_verdict_on_the_whole() -> None:
    part = msgspec.structs.replace(GOOD, complete=False)
    assert "in the part that was played" in text_of(part, 200) and "is correct" not in text_of(part, 200)


def test_junit_is_well_formed_and_counts_what_must_hold() -> None:
    root = ElementTree.fromstring(junit(BAD))
    assert root.attrib["failures"] == "2" and root.attrib["tests"] == "6"
    failure = root.find(".//testcase/failure")
    assert failure is not None and "message 7" in (failure.text or "") and "fix:" in (failure.text or "")
    assert len(root.findall(".//skipped")) == 2


def test_junit_counts_what_should_hold_only_when_strict() -> None:
    assert ElementTree.fromstring(junit(RUDE)).attrib["failures"] == "0"
    assert ElementTree.fromstring(junit(RUDE, strict=True)).attrib["failures"] == "1"


@pytest.mark.parametrize(
    ("document", "words"), [(GOOD, "4 passed"), (RUDE, "3 of 4"), (BAD, "2 of 4 fail")], ids=["good", "rude", "bad"]
)
def test_a_badge_has_the_meaning_of_its_colour_in_words(document: ReportDocument, words: str) -> None:
    root = ElementTree.fromstring(badge(document))
    assert [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")] == ["ACP agent", words]


def test_the_data_has_every_message_that_proves_a_failure_whole() -> None:
    found = json.loads(encode(BAD))
    [bad] = [one for one in found["results"] if one["id"] == "one.bad"]
    assert bad["evidence"][0]["msg"]["result"]["text"] == HOSTILE
    assert "log line" in bad["evidence"][1]["raw"] and "msg" not in bad["evidence"][1]
    assert found["counts"] == {"passed": 2, "failed": 2, "noted": 0, "skipped": 1, "unseen": 1, "blocked": 0}


@pytest.mark.parametrize(
    ("statuses", "sentence"),
    [
        ({}, "nothing that must hold was broken, but 1 of 6 requirements was never seen."),
        ({"two_quiet": RequirementVerdict(RequirementStatus.PASSED)}, "nothing that must hold was broken."),
        (
            {
                "two_rude": RequirementVerdict(RequirementStatus.UNSEEN),
                "two_bad": RequirementVerdict(RequirementStatus.BLOCKED),
            },
            "but 2 of 6 requirements were never seen and 1 could not be tried.",
        ),
        (
            {
                "two_quiet": RequirementVerdict(RequirementStatus.PASSED),
                "two_bad": RequirementVerdict(RequirementStatus.BLOCKED),
            },
            "but 1 of 6 requirements could not be tried.",
        ),
    ],
    ids=["one unseen", "all seen", "unseen and untried", "one untried"],
)
def test_a_correct_peer_is_reported_with_what_was_never_seen(
    statuses: dict[str, RequirementVerdict], sentence: str
) -> None:
    assert sentence in " ".join(text_of(report_of(**statuses)).split())
