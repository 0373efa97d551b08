"""Messages that carry secrets: they print what they are, never what they hide."""

from typing import Any, ClassVar

from antiphon.protocol.base import Model

__all__ = ["HIDDEN", "SecretModel"]

HIDDEN = "***"


class SecretModel(Model, frozen=True):
    """A message whose `__secret__` fields stay out of every printed form, so no log or traceback can leak them."""

    __secret__: ClassVar[tuple[str, ...]] = ()

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """What `rich` and `repr` show: a secret that is there shows as stars, one that is absent as absent."""
        shown = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return [(name, HIDDEN if value and name in self.__secret__ else value) for name, value in shown]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"
