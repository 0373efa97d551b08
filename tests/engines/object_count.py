"""How much something holds on to: the number of things that can be reached from it."""

import gc
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

__all__ = ["object_count"]

_NOT_ITS_OWN = (type, ModuleType, FunctionType, BuiltinFunctionType, CodeType)


def object_count(thing: object) -> int:
    """Everything below it but code."""
    seen: dict[int, object] = {}
    todo = [thing]
    while todo:
        each = todo.pop()
        if id(each) not in seen and not isinstance(each, _NOT_ITS_OWN):
            seen[id(each)] = each
            todo += gc.get_referents(each)
    return len(seen)
