"""Takes somebody in: reads what every check needs to know, and says what could not be read. Opens nothing for writing."""

import os
from collections.abc import Sequence

import msgspec

from antiphon.catalogue.fetching import kept
from antiphon.catalogue.registry import Registry, RegistryProblem
from antiphon.config.settings import find, settle
from antiphon.doctor.findings import Ward
from antiphon.doctor.runner import home
from antiphon.doctor.state import is_trusted
from antiphon.permission.settings import rule_problem

__all__ = ["admit"]


def admit(named: Sequence[str], limit: float, start_limit: float) -> Ward:
    """Whoever is here. It blocks."""
    cwd = _here()
    sources = find(cwd)
    ward = Ward(
        cwd,
        dict(os.environ),
        settle(sources, trusted=False, rule_problem=rule_problem),
        named=frozenset(named),
        limit=limit,
        start_limit=start_limit,
    )
    if is_trusted(ward):
        loaded = settle(sources, trusted=True, rule_problem=rule_problem)
        ward = msgspec.structs.replace(ward, loaded=loaded, trusted=True)
    try:
        copy = kept()
        registry, trouble = Registry({}) if copy is None else copy.read(), None
    except RegistryProblem as error:
        registry, trouble = Registry({}), error.advice
    return msgspec.structs.replace(ward, registry=registry, registry_trouble=trouble)


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted under us
        return home()
