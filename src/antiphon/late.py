"""Names of a package that are loaded when they are first used: an editor starts us every time, and pays only for what it needs."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["loader", "names"]


def loader(package: str, homes: "Mapping[str, str]") -> "Callable[[str], object]":
    """The `__getattr__` of a package: name → the module it lives in, or the name of a module followed by a dot."""

    def load(name: str) -> object:
        from importlib import import_module
        from sys import modules

        if name not in homes:
            raise AttributeError(f"{package} has no `{name}`")
        home = homes[name]
        module = import_module(home.removesuffix("."))
        value = module if home.endswith(".") else getattr(module, name)
        setattr(modules[package], name, value)
        return value

    return load


def names(module: str, public: "Sequence[str]") -> "Callable[[], list[str]]":
    """The `__dir__` of a package: its public names too, so that completion finds them before they are loaded."""

    def listed() -> list[str]:
        from sys import modules

        return sorted({*vars(modules[module]), *public})

    return listed
