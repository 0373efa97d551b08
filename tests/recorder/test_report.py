"""The page of `inspect --html` as it is written: what stands in it without a script, and that nothing in a recording becomes markup."""

import re
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from antiphon.recorder.labels import about, clock, seconds, size
from antiphon.recorder.report.data import LONGEST_TEXT
from antiphon.recorder.report.timeline import Axis
from antiphon.recorder.views.overview import overview
from antiphon.recorder.views.style import ViewStyle
from antiphon.traffic.entries import entries_of
from tests.recorder.recordings import Tape
from tests.recorder.report_recordings import HOSTILE, hostile_tape, page, working_tape
from tests.rows import each_row


class Elements(HTMLParser):
    """What a browser would make of a page: elements with their attributes, and the text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._last = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._last = tag

    def handle_data(self, data: str) -> None:
        self.texts[self._last] = self.texts.get(self._last, "") + data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.found)


def data_of(page: str) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    return msgspec.json.decode(found[1])


def test_nothing_in_a_recording_becomes_markup() -> None:
    calm, hostile = Elements(page(working_tape())), Elements(page(hostile_tape(), HOSTILE))
    assert hostile.count("script") == calm.count("script") == 2
    assert hostile.count("style") == calm.count("style") == 1
    assert not {"img", "iframe", "object", "embed", "link", "base"} & {name for name, _ in hostile.found}
    assert not [key for _, attributes in hostile.found for key in attributes if key.startswith("on") or key == "style"]


def test_what_cannot_be_seen_or_turns_the_line_around_is_shown_by_its_number() -> None:
    written = page(hostile_tape(), HOSTILE)
    assert not set("\u202e\u2028\u200b\x1b") & set(written)
    assert "&lt;U+202E&gt;" in written and "\u241b" in written


def test_a_message_stays_the_same_json_when_what_is_invisible_in_it_is_escaped() -> None:
    tape = Tape().message("a2c", method="_x", params={"a\u202e": "\u200b\U000e0041\u2028</script>", "n": 1e3})
    [text] = data_of(page(tape))["texts"]
    assert not set("\u202e\u200b\U000e0041\u2028") & set(text)
    [entry] = entries_of(tape.lines)
    assert msgspec.json.decode(text) == msgspec.json.decode(entry.raw)


def test_the_policy_names_the_hashes_of_the_one_script_and_the_one_style() -> None:
    written = page(working_tape())
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', written)
    assert policy and policy[1].startswith("default-src 'none'; ")
    assert "unsafe" not in policy[1]
    for name, pattern in (("style", r"<style>(.*?)</style>"), ("script", r"<script>(.*?)</script>")):
        [content] = re.findall(pattern, written, re.DOTALL)
        assert f"{name}-src 'sha256-{b64encode(sha256(content.encode()).digest()).decode()}'" in policy[1]


def test_the_page_loads_nothing_from_elsewhere() -> None:
    written = page(working_tape())
    assert not [
        attributes for _, attributes in Elements(written).found if {"src", "srcset", "data", "poster"} & set(attributes)
    ]
    [style] = re.findall(r"<style>(.*?)</style>", written, re.DOTALL)
    assert "@import" not in style and set(re.findall(r"url\((.*?)\)", style)) == {"#hatch"}
    addresses = {attributes.get("href") or "" for _, attributes in Elements(written).found}
    assert {
        address
        for address in addresses
        if address and not address.startswith(("#", "https://agentclientprotocol.com/"))
    } == set()


def test_without_a_script_the_page_has_its_head_its_timeline_and_its_tables() -> None:
    written = page(working_tape())
    for words in (
        "editor",
        "singer",
        "1 answer with an error",
        "sing a song",
        "Read the notes",
        "out of breath",
        "cancelled",
    ):
        assert words in written, words
    ids = {attributes.get("id") for _, attributes in Elements(written).found}
    assert {"timeline", "picture", "turns", "calls", "waits", "errors", "slow", "methods", "sessions"} <= ids
    assert "15 min" in written, "the silence between the turns"


def test_deviations_are_grouped_by_rule_with_a_link_and_the_side() -> None:
    tape = (
        Tape()
        .meet()
        .ask(2, "session/new", {})
        .refuse(2, -32602, "no")
        .ask(3, "session/new", {})
        .refuse(3, -32602, "no")
    )
    written = page(tape)
    assert written.count("<details") == len({one.rule for one in tape.analysis().deviations})
    assert "schema.params" in written and "4 times by the client" in written
    assert 'href="https://agentclientprotocol.com/protocol/v1/' in written


def test_a_recording_with_nothing_in_it_is_a_page_too() -> None:
    written = page(Tape())
    assert "There is no message in it, and 0 lines of another kind." in written
    assert data_of(written)["entries"] == []


def test_a_correct_recording_is_reported_as_correct() -> None:
    assert "No deviation from the protocol and no error." in page(Tape().meet())


def advised() -> Tape:
    """A session in which all rules are kept, and advice is not."""
    tape = Tape().meet()
    models = {"currentModelId": "m", "availableModels": [{"modelId": "m", "name": "M"}]}
    asked = tape.ask(2, "session/new", {"cwd": "/", "mcpServers": []})
    return asked.answer(2, {"sessionId": "another", "models": models})


def test_advice_is_not_a_deviation_in_any_view() -> None:
    analysis = advised().analysis()
    assert analysis.deviations == [] and [one.rule for one in analysis.advice] == ["schema.removed"]
    written = page(advised())
    assert "No deviation from the protocol and no error. 1 piece of advice." in written
    assert re.search(r"<dt>Deviations</dt><dd>0<small>1 piece of advice</small>", written)
    assert "<h2>Deviations" not in written and "<h2>Advice<small> 1</small>" in written
    assert "▲</text>" not in written
    shown = "\n".join(overview(analysis, ViewStyle()))
    assert re.search("0 deviations . 1 piece of advice", shown)
    assert "Deviations" not in shown and "Advice  1" in shown


def test_a_message_that_is_too_long_is_cut() -> None:
    [text] = data_of(page(Tape().message("a2c", method="_x", params={"a": "b" * LONGEST_TEXT})))["texts"]
    assert len(text) == LONGEST_TEXT


def test_a_long_silence_between_turns_is_folded_and_one_in_a_turn_is_not() -> None:
    analysis, shown = working_tape().read_back()
    axis = Axis.of(analysis, shown)
    [silence] = axis.silences
    assert silence.end - silence.start == pytest.approx(900)
    assert axis.at(silence.end) - axis.at(silence.start) == pytest.approx(silence.width) and silence.width < 5
    analysis, shown = Tape().meet().prompt(2).later(900).answer(2, {"stopReason": "end_turn"}).read_back()
    assert Axis.of(analysis, shown).silences == []


def test_recordings_one_after_another_do_not_lie_on_top_of_each_other() -> None:
    tape = Tape().meet().prompt(2).later(5).answer(2, {"stopReason": "end_turn"}).later(-5)
    analysis, shown = tape.meet().prompt(2).later(5).answer(2, {"stopReason": "end_turn"}).read_back()
    axis = Axis.of(analysis, shown)
    assert [axis.place(turn.start, turn.message) for turn in analysis.turns] == [0, pytest.approx(50)]
    assert axis.place(shown[-1].t, shown[-1].message) == 100


def test_moments_on_the_axis_go_from_left_to_right_and_are_round() -> None:
    axis = Axis(0.0, 100.0, [(20.0, 80.0)])
    times = [0, 1, 19, 20, 50, 80, 81, 100, 101]
    places = [axis.at(t) for t in times]
    assert places == sorted(places) and places[0] == 0 and places[-1] == 100
    ticks = [tick for tick in axis.ticks() if tick.level == 0]
    assert [tick.t for tick in sorted(ticks)] == [0, 5, 10, 15, 80, 85, 90, 95]


def test_the_directory_of_a_recording_is_not_shown() -> None:
    assert "secret" not in page(working_tape(), "/home/secret/talk.jsonl")


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_words_can_be_read_in_light_and_in_dark() -> None:
    [style] = re.findall(r"<style>(.*?)</style>", page(Tape()), re.DOTALL)
    light, dark = (
        dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", block))
        for block in re.findall(r":root \{(.*?)\}", style, re.DOTALL)[:2]
    )
    grounds = {
        "ink": ["ground", "sheet", "sunk", "chosen", "turn", "look", "change", "run", "other", "wait"],
        "quiet": ["ground", "sheet", "sunk", "chosen"], "client": ["ground", "sheet", "sunk"], "agent": ["ground", "sheet", "sunk"],
        "link": ["ground", "sheet", "warn-ground"], "bad": ["sheet", "bad-ground"], "warn": ["sheet", "sunk", "warn-ground"],
        "good": ["sunk", "good-ground"],
    }  # fmt: skip
    for palette in (light, dark):
        for ink, under in grounds.items():
            for ground in under:
                low, high = sorted((luminance(palette[ink]), luminance(palette[ground])))
                assert (high + 0.05) / (low + 0.05) >= 4.5, f"{ink} on {ground}"


@each_row(
    ("text", "words"),
    [
        (seconds(None), "\u2013"), (seconds(0.0123), "12 ms"), (seconds(1.25), "1.25 s"), (seconds(33.33), "33.3 s"),
        (seconds(200), "3 min 20 s"), (seconds(7260), "2 h 01 min"), (about(40), "40 s"), (about(900), "15 min"), (about(9000), "2 h"),
        (clock(0.5, 0.1), "0.5 s"), (clock(30, 10), "30 s"), (clock(200, 10), "3:20"), (clock(7200, 900), "2:00:00"),
        (size(812), "812 B"), (size(14_200), "14.2 kB"), (size(142_000), "142 kB"), (size(3_100_000), "3.1 MB"),
        (size(310_000_000), "310 MB"), (size(3_100_000_000), "3.1 GB"), (size(0), "0 B"), (seconds(None, "-"), "-"), (seconds(0), "0 ms"),
    ],
)  # fmt: skip
def test_numbers_are_shown_in_a_few_letters(text: str, words: str) -> None:
    assert text == words


def test_a_prompt_that_is_held_is_drawn_below_the_turn_that_it_waits_for() -> None:
    tape = Tape().meet(2).prompt(2, "first").answer(2, {"messageId": "m"}).update("state_update", state="running")
    tape.later(1).prompt(3, "second").later(1).update("state_update", state="idle", stopReason="end_turn")
    tape.later(1).update("user_message", messageId="n", content=[]).answer(3, {"messageId": "n"})
    tape.update("state_update", state="running").later(1)
    tape.update("state_update", state="idle", stopReason="end_turn").prompt(4, "third").later(1)
    tape.answer(4, {"messageId": "o"}).update("state_update", state="idle", stopReason="end_turn")
    drawn = page(tape)
    turns = drawn[drawn.index('class="turns"') :]
    first, second, third = (turns.index(f"Turn {number}: ") for number in (1, 2, 3))
    below = turns.index("translate(0 34)")
    assert first < third < below < second
