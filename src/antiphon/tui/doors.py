"""What a chat needs from whoever starts agents, and what it offers them: the seam to the command line. Starts nothing itself."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TypeAlias

from antiphon.client.agent import ConnectedAgent
from antiphon.client.handlers import Elicitation, SignInHandler
from antiphon.client.session import ClientSession
from antiphon.client.terminals import Terminals
from antiphon.client.updates import OnUpdate
from antiphon.permission.gate import Ask, PermissionGate

__all__ = ["Attending", "Begin", "Open", "Opened", "Reopen"]

Begin: TypeAlias = Callable[[OnUpdate], Awaitable[ClientSession]]
Reopen: TypeAlias = Callable[[str, OnUpdate], Awaitable[ClientSession]]


@dataclass(frozen=True)
class Attending:
    """A person at a terminal: how they are asked, and what they want to hear."""

    ask: Ask
    elicitation: Elicitation
    authenticate: SignInHandler
    terminals: Terminals
    warn: Callable[[str], None]
    refused: set[str] = field(default_factory=set)
    """Where the ids of the calls go that were denied."""


@dataclass(frozen=True)
class Opened:
    """An agent that was started."""

    agent: ConnectedAgent
    gate: PermissionGate
    first: Begin
    """Opens the session that was asked for on the command line."""
    new: Begin
    load: Reopen
    hint: str = ""
    """Something to say at the start."""
    command: list[str] = field(default_factory=list)
    """How to start its program again, to sign in there."""


Open: TypeAlias = Callable[[Attending], AbstractAsyncContextManager[Opened]]
