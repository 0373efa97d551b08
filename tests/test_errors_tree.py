"""Errors are one tree, and `antiphon.errors` has all of it that the library raises."""

import importlib
import pkgutil
from collections.abc import Iterator

import antiphon
from antiphon import errors
from antiphon.errors import AcpError

LIBRARY = (
    "agent",
    "catalogue",
    "client",
    "config",
    "connection",
    "local",
    "policy",
    "protocol",
    "rpc",
    "runs",
    "store",
    "transports",
)
"""Packages that other programs import. Commands and engines keep theirs to themselves, but for those that are named."""


BESIDE = {
    "antiphon.policy.shell.Unclear",  # a word that cannot be read; the line says so
    "antiphon.rpc.spans.Unreadable",  # becomes the error of a response
    "antiphon.transports.guard.NoDirectory",  # becomes SpawnFailed
}
"""Exceptions that never leave the package in which they are made."""


def below(kind: type[AcpError]) -> Iterator[type[AcpError]]:
    for each in kind.__subclasses__():
        yield each
        yield from below(each)


def every_error() -> set[type[AcpError]]:
    for module in pkgutil.walk_packages(antiphon.__path__, "antiphon."):
        if module.name.split(".")[1] in LIBRARY:
            importlib.import_module(module.name)
    return {
        each
        for each in below(AcpError)
        if each.__module__.startswith("antiphon.") and not each.__name__.startswith("_")
    }


def test_every_error_that_the_library_raises_is_in_the_module_of_errors() -> None:
    library = {each for each in every_error() if each.__module__.split(".")[1] in (*LIBRARY, "errors")}
    assert [each for each in library if getattr(errors, each.__name__, None) is not each] == []


def test_every_name_of_the_tree_is_an_error_and_is_described() -> None:
    for name in errors._MADE_IN:
        found = getattr(errors, name)
        assert issubclass(found, AcpError) and found.__name__ == name
        assert name in (errors.__doc__ or ""), f"{name} is not in the tree that the module shows"


def test_no_error_of_the_library_stands_beside_the_tree() -> None:
    """Every exception class that a package makes is an AcpError, or is of Python's own kinds for what the caller did wrong."""
    every_error()
    made = {
        each
        for each in _exceptions(Exception)
        if each.__module__.startswith(tuple(f"antiphon.{name}" for name in LIBRARY))
    }
    beside = {
        f"{each.__module__}.{each.__name__}"
        for each in made
        if not issubclass(each, AcpError) and not each.__name__.startswith("_")
    }
    assert beside == BESIDE


def _exceptions(kind: type[BaseException]) -> Iterator[type[BaseException]]:
    for each in kind.__subclasses__():
        yield each
        yield from _exceptions(each)
