"""Chains of proxies between a client and an agent. All of it is unstable."""

from typing import Any

from antiphon.protocol.base import UNSET, Exact, Model, UnsetType, unstable
from antiphon.protocol.v1.initialize import Initialize, InitializeResult

__all__ = ["InitializeProxy", "InitializeProxyResult", "SuccessorCall", "SuccessorNotice"]


@unstable
class InitializeProxy(Initialize, frozen=True):
    """Open the conversation with a component that has another one behind it."""


@unstable
class InitializeProxyResult(InitializeResult, frozen=True):
    """The proxy's answer, once the one behind it has answered."""


@unstable
class SuccessorCall(Model, frozen=True):
    """A request for, or from, the next component in the chain; its answer comes back unchanged."""

    method: str
    params: Exact[Any | UnsetType] = UNSET


@unstable
class SuccessorNotice(Model, frozen=True):
    """A notification for, or from, the next component in the chain."""

    method: str
    params: Exact[Any | UnsetType] = UNSET
