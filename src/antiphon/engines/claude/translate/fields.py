"""Reads values out of loose JSON, which is what tools take and give: every version of the CLI has its own idea of it."""

from typing import Any

from antiphon.engines.counting import MOST

__all__ = ["items", "number", "part", "text"]


def text(values: Any, *names: str) -> str | None:
    """The first of these fields that is text and not empty."""
    if isinstance(values, dict):
        for name in names:
            value = values.get(name)
            if isinstance(value, str) and value:
                return value
    return None


def number(values: Any, *names: str) -> int | None:
    """The first of these fields that is a whole number, and one that everybody can count to."""
    if isinstance(values, dict):
        for name in names:
            value = values.get(name)
            if isinstance(value, float) and value.is_integer() and abs(value) <= MOST:
                return int(value)
            if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST:
                return value
    return None


def items(values: Any, *names: str) -> list[Any]:
    """The first of these fields that is a list, or an empty one."""
    if isinstance(values, dict):
        for name in names:
            value = values.get(name)
            if isinstance(value, list):
                return value
    return []


def part(values: Any, name: str) -> dict[str, Any]:
    """This field if it is an object, or an empty one."""
    value = values.get(name) if isinstance(values, dict) else None
    return value if isinstance(value, dict) else {}
