"""What a newer peer says and we have no type for is kept as the very bytes it came in, and goes out as them."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from antiphon.protocol.base import Unknown, decoder, encode
from antiphon.protocol.salvage import MAX_NOTE, MAX_NOTES, salvage, salvage_with_notes
from antiphon.protocol.v1 import methods
from antiphon.protocol.v1.client_services import ReadTextFile
from antiphon.protocol.v1.content import TextBlock
from antiphon.protocol.v1.session import NewSessionResult, Prompt
from antiphon.protocol.v1.tools import ContentItem, ToolCall
from antiphon.protocol.v1.updates import AgentMessageChunk, Plan
from tests.leniency.samples import CASES, Case, message, open_unions, packed, sample, tag_field
from tests.protocol import names
from tests.protocol.parity import split
from tests.rows import each_row

UNIONS = list(open_unions())

ODDITIES = {
    "plain": b'"n":1',
    "spacing": b' "n" :\t1 , "list":[ ] , "object" : { } ',
    "duplicate keys": b'"n":1,"n":2,"n":{"n":3,"n":4}',
    "escapes": b'"text":"\\u00e9\\/\\ud83d\\ude00\\u0000","\\u006e":1',
    "numbers": b'"big":123456789012345678901234567890,"float":1.10,"exponent":1E+2,"zero":-0.0,"far":1e999',
    "raw text": '"text":"é\u2028😀"'.encode(),
}


class Place(tuple[Case, str]):
    """A field that holds a union, alone or in a list or a map."""

    __slots__ = ()

    def __str__(self) -> str:
        return str(self[0])


def places() -> list[Place]:
    found = []
    for case in CASES:
        for part in split(case.spec["type"]):
            union = part.strip("[]{}#")
            if union in UNIONS:
                found.append(Place((case, union)))
    return found


def unknown(union: str, oddity: str = "plain") -> bytes:
    return b'{"%b" : "from tomorrow",%b}' % (tag_field(union).encode(), ODDITIES[oddity])


def test_every_union_that_can_grow_is_tested() -> None:
    nowhere = {"CreateElicitationRequest", "CreateElicitationResponse"}  # whole params and a whole answer
    assert {place[1] for place in places()} == set(UNIONS) - nowhere


@each_row("oddity", ODDITIES)
@each_row("place", places(), ids=str)
def test_an_unknown_member_is_kept_where_it_stands(place: Place, oddity: str) -> None:
    case, union = place
    raw, good = unknown(union, oddity), sample(f"#{union}")
    shape = next(part[0] for part in split(case.spec["type"]) if union in part)
    value = {"#": Raw(raw), "[": [good, Raw(raw), good], "{": {"a": good, "b": Raw(raw)}}[shape]
    read = salvage(packed({**message(case.kind), case.wire: value}), case.kind)
    held = getattr(read, case.name)
    found = {"#": lambda: held, "[": lambda: held[1], "{": lambda: held["b"]}[shape]()
    assert isinstance(found, Unknown)
    assert (found.kind, found.raw) == ("from tomorrow", raw)
    assert raw in encode(read)
    known = decoder(case.kind).decode(packed(message(case.kind)))
    assert msgspec.structs.replace(read, **{case.name: getattr(known, case.name)}) == known


@each_row("oddity", ODDITIES)
@each_row("union", UNIONS)
def test_an_unknown_member_alone_is_kept(union: str, oddity: str) -> None:
    raw = unknown(union, oddity)
    read: Any = salvage(raw, names.TYPES[union])
    assert read == Unknown("from tomorrow", raw)
    assert encode(read) == raw


@each_row("union", UNIONS)
def test_a_member_without_a_word_for_its_kind_is_refused(union: str) -> None:
    for wrong in (b"{}", b'{"%b":7}' % tag_field(union).encode(), b'{"%b":null}' % tag_field(union).encode(), b"[]"):
        with pytest.raises(msgspec.ValidationError, match=r"at `\$`"):
            salvage(wrong, names.TYPES[union])


def test_unknown_parts_of_an_update_reach_the_handler_at_every_depth() -> None:
    block = b'{"type":"hologram", "n":1,"n":2 }'
    item = b'{ "type":"sculpture" }'
    reading = methods.SESSION_UPDATE.read_params(
        b'{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"T",'
        b'"content":[%b,{"type":"content","content":%b},{"type":"content","content":{"type":"text","text":"x"}}]}}'
        % (item, block)
    )
    update = reading.value.update
    assert isinstance(update, ToolCall)
    assert update.content == [
        Unknown("sculpture", item),
        ContentItem(content=Unknown("hologram", block)),
        ContentItem(content=TextBlock(text="x")),
    ]
    assert reading.rules == (
        "unknown kind `sculpture` kept at $.update.content[0]",
        "unknown kind `hologram` kept at $.update.content[1].content",
    )
    assert item in encode(reading.value) and block in encode(reading.value)


def test_unknown_questions_and_answers_are_kept() -> None:
    question = b'{"mode":"telepathy","message":"?"}'
    assert methods.CREATE_ELICITATION.read_params(question).value == Unknown("telepathy", question)
    answer = b'{"action":"postpone"}'
    assert methods.CREATE_ELICITATION.read_result(answer).value == Unknown("postpone", answer)


def test_a_known_kind_with_a_broken_part_is_not_unknown() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"`content` - at `\$`"):
        salvage(b'{"sessionUpdate":"agent_message_chunk"}', names.TYPES["SessionUpdate"])
    chunk = b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"},"messageId":7}'
    read: Any = salvage(chunk, names.TYPES["SessionUpdate"])
    assert read == AgentMessageChunk(content=TextBlock(text="x"))


# What the notes say.


def test_a_whole_number_may_be_written_with_a_fraction() -> None:
    read, notes = salvage_with_notes(b'{"sessionId":"s","path":"/p","line":3.0,"limit":1e3}', ReadTextFile)
    assert (read.line, read.limit) == (3, 1000)
    assert notes == ("whole number with a fraction at $.line", "whole number with a fraction at $.limit")


@pytest.mark.parametrize("number", ["-1", "-1.0", "1.5", "1e999", "9" * 5000])
def test_a_number_out_of_its_range_is_refused_with_its_place(number: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"at `\$\.line`"):
        salvage(f'{{"sessionId":"s","path":"/p","line":{number}}}'.encode(), ReadTextFile)


def test_a_dropped_item_leaves_one_note() -> None:
    entry = b'{"content":"c","priority":"high","status":"pending","_meta":7}'
    _, notes = salvage_with_notes(b'{"sessionUpdate":"plan","entries":[%b,{"_meta":7,"status":3}]}' % entry, Plan)
    assert notes == ("wrong value at $.entries[0]._meta: the default is used", "invalid item dropped at $.entries[1]")


def test_a_defaulted_field_leaves_one_note() -> None:
    wire = b'{"sessionId":"s","modes":{"availableModes":[7],"currentModeId":7}}'
    read, notes = salvage_with_notes(wire, NewSessionResult)
    assert read == NewSessionResult(session_id="s")
    assert notes == ("wrong value at $.modes: the default is used",)


def test_notes_are_few_and_short_whatever_the_peer_sends() -> None:
    read, notes = salvage_with_notes(b'{"sessionUpdate":"plan","entries":[%b7]}' % (b"7," * 1000), Plan)
    assert read == Plan(entries=[]) and notes == ("1001 invalid items dropped at $.entries, the first at [0]",)
    blocks = b",".join(b'{"type":"x%d"}' % number for number in range(1000))
    _, notes = salvage_with_notes(b'{"sessionId":"s","prompt":[%b]}' % blocks, Prompt)
    assert (len(notes), notes[-1]) == (MAX_NOTES + 1, "and more")
    _, [note] = salvage_with_notes(packed({"type": "x" * 10_000}), names.TYPES["ContentBlock"])
    assert len(note) == MAX_NOTE
