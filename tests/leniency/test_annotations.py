"""Each field is as forgiving as the schema says: no more, no less. A test per field, generated from the facts."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw, ValidationError

from antiphon.errors import Code, RemoteProtocolError, ResponseError
from antiphon.protocol.base import decoder, encode
from antiphon.protocol.methods import Call, DecodedPart
from antiphon.protocol.salvage import salvage, salvage_with_notes
from antiphon.protocol.v1 import methods
from antiphon.protocol.v1.dialects.table import RULES
from antiphon.protocol.words import Word
from tests.leniency.samples import CASES, DEFINITIONS, FIELDS, Case, message, packed, sample, wrong_values
from tests.protocol import names
from tests.protocol.parity import is_kind, split, wire_names
from tests.rows import Test, each_row

DIALECTS = {rule.name for rule in RULES}


def each(cases: Iterable[Case]) -> Callable[[Test], Test]:
    return each_row("case", cases, ids=str)


def marked(*marks: str) -> list[Case]:
    return [case for case in CASES if case.spec.get("marks", "") in marks and case.wrong]


def guarded() -> list[Case]:
    """Fields whose wrong value is an error: those without a mark."""
    return marked("")


def item_type(case: Case) -> str:
    return next(part[1:-1] for part in split(case.spec["type"]) if part[0] == "[")


def with_value(case: Case, value: Any) -> bytes:
    return packed({**message(case.kind), case.wire: value})


def expected(case: Case, value: Any) -> Any:
    """The whole message, and in this field that value."""
    good = decoder(case.kind).decode(packed(message(case.kind)))
    return msgspec.structs.replace(good, **{case.name: value})


def same(read: Any, wanted: Any) -> bool:
    # Equality reads unknown words by meaning; the bytes show whether they were kept.
    return bool(read == wanted) and encode(read) == encode(wanted)


def test_every_annotation_of_the_schema_is_tested() -> None:
    covered = {(wire, spec.get("marks", "")) for fields in FIELDS.values() for wire, spec in fields.items()}
    for name, spec in DEFINITIONS.items():
        if not isinstance(names.TYPES[name], names.Reason):
            assert {(wire, field.get("marks", "")) for wire, field in spec.get("fields", {}).items()} <= covered, name
    assert {case.spec.get("marks", "") for case in CASES} == {"", "E", "ES", "N"}


@each_row("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_a_whole_message_is_read_strictly(kind: Any) -> None:
    for seed in (1, 2):
        given = message(kind, seed)
        assert msgspec.json.decode(encode(decoder(kind).decode(packed(given)))).keys() >= given.keys() - _defaults(
            kind, seed
        )


def _defaults(kind: Any, seed: int) -> set[str]:
    """Fields whose sample happens to be what their absence means; those are left out again."""
    read, fields = decoder(kind).decode(packed(message(kind, seed))), wire_names(kind)
    return {wire for wire, field in fields.items() if not field.required and getattr(read, field.name) == field.default}


# default-on-error, skip-invalid-items, default-on-null


@each(marked("E", "ES"))
def test_a_wrong_value_becomes_the_default_and_the_rest_is_kept(case: Case) -> None:
    for sort, value in case.wrong.items():
        if sort.startswith("["):
            continue  # a bad item, not a bad list
        read, notes = salvage_with_notes(with_value(case, value), case.kind)
        assert same(read, expected(case, case.default)), sort
        assert notes == (f"wrong value at $.{case.wire}: the default is used",)


@each(marked("ES"))
def test_a_bad_item_is_dropped_and_the_good_ones_stay_in_order(case: Case) -> None:
    item = item_type(case)
    good, other = sample(item, 1), sample(item, 2)
    assert good != other
    bad = [value for sort, value in wrong_values(item).items() if "[" not in sort and "{" not in sort]
    kept = getattr(decoder(case.kind).decode(with_value(case, [good, other, good])), case.name)
    read = salvage(with_value(case, [*bad, good, *bad, other, good, *bad]), case.kind)
    assert same(read, expected(case, kept))
    assert same(salvage(with_value(case, bad), case.kind), expected(case, []))


@each(marked("N"))
def test_null_becomes_the_default(case: Case) -> None:
    assert same(salvage(with_value(case, None), case.kind), expected(case, case.default))


@each(marked("N"))
def test_anything_else_wrong_is_refused_where_only_null_is_forgiven(case: Case) -> None:
    for value in case.wrong.values():
        if value is not None:
            refused_by_salvage(case, value)


# no annotation


@each(guarded())
def test_a_wrong_value_is_refused_where_nothing_is_forgiven(case: Case) -> None:
    for value in case.wrong.values():
        refused_by_salvage(case, value)


@each(case for case in CASES if case.spec.get("required"))
def test_a_missing_field_is_refused(case: Case) -> None:
    given = message(case.kind)
    del given[case.wire]
    with pytest.raises(ValidationError, match=f"missing required field `{case.wire}`"):
        salvage(packed(given), case.kind)


def refused_by_salvage(case: Case, value: Any) -> None:
    with pytest.raises(ValidationError) as refusal:
        salvage(with_value(case, value), case.kind)
    assert f"$.{case.wire}" in str(refusal.value) or f"`{case.wire}`" in str(refusal.value)


READERS: dict[Any, list[Callable[[bytes], DecodedPart[Any]]]] = {}
for method in methods.ALL:
    READERS.setdefault(method.params, []).append(method.read_params)
    if isinstance(method, Call):
        READERS.setdefault(method.result, []).append(method.read_result)


@each(case for case in [*guarded(), *marked("N")] if case.kind in READERS)
def test_a_method_refuses_what_salvage_refuses_unless_a_dialect_explains_it(case: Case) -> None:
    for value in case.wrong.values():
        if value is None and case.spec.get("marks") == "N":
            continue
        for read in READERS[case.kind]:
            assert refused_or_explained(read, with_value(case, value)), value


@each(case for case in CASES if case.kind in READERS and case.spec.get("required") and not case.spec.get("marks"))
def test_a_method_refuses_an_empty_message(case: Case) -> None:
    assert all(refused_or_explained(read, b"{}") for read in READERS[case.kind])


def refused_or_explained(read: Callable[[bytes], DecodedPart[Any]], raw: bytes) -> bool:
    """As invalid params or as a senseless answer; or read, by a rule of a dialect that is named."""
    try:
        return bool(DIALECTS & set(read(raw).rules))
    except ResponseError as error:
        return error.code == Code.INVALID_PARAMS
    except RemoteProtocolError as error:
        return "makes no sense" in str(error)


# words


def words_in(case: Case) -> Any:
    names_of_types = [part.strip("[]#") for part in split(case.spec["type"]) if "#" in part]
    return next((names.TYPES[name] for name in names_of_types if is_kind(names.TYPES.get(name), Word)), None)


@each(case for case in CASES if words_in(case))
def test_an_unknown_word_is_kept_and_reads_as_the_default_of_its_list(case: Case) -> None:
    listed = "[" in case.spec["type"]
    word = "a word from tomorrow"
    wire = packed({**message(case.kind), case.wire: [word] if listed else word, "_meta": "forces a second reading"})
    read = salvage(wire, case.kind)
    value = getattr(read, case.name)[0] if listed else getattr(read, case.name)
    default, _ = words_in(case).__reads__
    assert value.meaning is (value if default is None else words_in(case)(default))
    assert msgspec.json.decode(encode(read))[case.wire] == ([word] if listed else word)


# extensions


@each_row("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_meta_survives_a_second_reading_and_overrides_nothing(kind: Any) -> None:
    good = message(kind)
    meta = {**dict.fromkeys(good, "not this one"), "vendor/key": [1, {"deep": None}]}
    spoilt = next((case for case in marked("E") if case.kind is kind and case.wire != "_meta"), None)
    change = {spoilt.wire: next(iter(spoilt.wrong.values()))} if spoilt else {}
    read = salvage(packed({**good, **change, "_meta": meta}), kind)
    plain = decoder(kind).decode(packed(good))
    default = {spoilt.name: spoilt.default} if spoilt else {}
    assert same(read, msgspec.structs.replace(plain, **default, meta=meta))


# patches


@each(case for case in CASES if case.kind in names.PATCHES and not case.spec.get("required") and case.wire != "_meta")
def test_absent_null_and_wrong_in_a_patch_after_a_second_reading(case: Case) -> None:
    spoilt = {**message(case.kind), "_meta": "forces a second reading"}
    without = {wire: value for wire, value in spoilt.items() if wire != case.wire}
    assert getattr(salvage(packed(without), case.kind), case.name) is UNSET
    null = salvage(packed({**spoilt, case.wire: None}), case.kind)
    assert getattr(null, case.name) is None
    assert msgspec.json.decode(encode(null), type=dict[str, Raw])[case.wire] == Raw(b"null")
