"""Messages made up at random, from the types themselves."""

from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st
from msgspec import UnsetType

from antiphon.protocol.base import Choice
from antiphon.protocol.words import Word

__all__ = ["json_objects", "messages"]

INT64 = 2**63
texts = st.text(max_size=6)
scalars = st.none() | st.booleans() | st.integers(-INT64, INT64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
json_values = scalars | texts | st.lists(texts, max_size=2) | st.dictionaries(texts, texts, max_size=2)
json_objects = st.dictionaries(texts, json_values, max_size=2)

SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    int: st.integers(-INT64, INT64 - 1),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    NoneType: st.none(),
    Any: json_values,
}


@cache
def messages(kind: type[Any]) -> st.SearchStrategy[Any]:
    """Instances of a message type: required fields always there, the others sometimes."""
    hints = get_type_hints(kind, include_extras=True)
    fields = msgspec.structs.fields(kind)
    required = {field.name: values(hints[field.name]) for field in fields if field.required}
    optional = {field.name: values(hints[field.name]) for field in fields if not field.required}
    return st.fixed_dictionaries(required, optional=optional).map(lambda given: kind(**given))


@cache
def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of any annotation that a field may have."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        unsigned = any(isinstance(mark, msgspec.Meta) for mark in arguments[1:])
        return st.integers(0, INT64 - 1) if unsigned else values(arguments[0])
    if origin in (Union, UnionType):
        return st.one_of([values(one) for one in arguments if one is not UnsetType])
    if origin is list:
        return st.lists(values(arguments[0]), max_size=2)
    if origin is dict:
        return st.dictionaries(texts, values(arguments[1]), max_size=2)
    if origin is Literal:
        return st.sampled_from(arguments)
    return SCALARS[hint] if hint in SCALARS else instances(hint)


def instances(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a class of ours; words may be ones that nothing knows."""
    if issubclass(kind, Word):
        return st.sampled_from([*kind, kind("a word from tomorrow")])
    if issubclass(kind, Choice):
        return st.one_of([messages(member) for member in kind.members()])
    return messages(kind)
