"""The life of an object as a table: states, events, and which event leads from which state to which other.

An object that can be opened, lost, closed and cancelled in any order has a state, not five flags. Its life is written down like this:

    class DoorState(Enum):
        SHUT = "shut"
        OPEN = "open"
        GONE = "gone"

    class DoorEvent(Enum):
        PUSH = "push"
        PULL = "pull"
        REMOVE = "remove"

    DOOR_LIFE: Final = Life("door", DoorState.SHUT, {
        DoorState.SHUT: {DoorEvent.PULL: DoorState.OPEN, DoorEvent.REMOVE: DoorState.GONE},
        DoorState.OPEN: {DoorEvent.PUSH: DoorState.SHUT},
        DoorState.GONE: {},
    })

The object keeps its state, and changes it with `self.state = DOOR_LIFE.next(self.state, DoorEvent.PULL)`: an event that the table
does not have in this state is a mistake of the caller and raises. An event that changes nothing is written down too, as one that leads
to the same state. A state that no event leads out of is the end.

To add a life: write the two enums and the table beside the class whose life it is, and add `"antiphon.package.module:NAME_LIFE"` to
`LIVES` in `tools/life_diagrams.py`. `python tools/life_diagrams.py` then writes the page `docs/lives.md` anew, and a test compares it.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Generic, TypeVar

from antiphon.errors import LocalProtocolError

__all__ = ["Life"]

S = TypeVar("S", bound=Enum)
E = TypeVar("E", bound=Enum)


class Life(Generic[S, E]):
    """A table of transitions. Checked when it is made: every state has a row, and every state can be reached."""

    def __init__(self, name: str, start: S, transitions: Mapping[S, Mapping[E, S]], about: str = "") -> None:
        self.name = name
        self.start = start
        self.transitions = transitions
        self.about = about
        """A sentence or two for the page with the diagrams."""
        missing = {state.name for state in type(start)} - {state.name for state in transitions}
        missing |= {state.name for state in transitions} - {state.name for state in self._reachable()}
        if missing:
            raise ValueError(f"the life of a {name}: no row for, or no way to {', '.join(sorted(missing))}")

    def _reachable(self) -> set[S]:
        found, waiting = {self.start}, [self.start]
        while waiting:
            for state in self.transitions.get(waiting.pop(), {}).values():
                if state not in found:
                    found.add(state)
                    waiting.append(state)
        return found

    def next(self, state: S, event: E) -> S:
        """Return the state that follows.

        Raises:
            LocalProtocolError: the event cannot happen in this state.
        """
        try:
            return self.transitions[state][event]
        except KeyError:
            raise LocalProtocolError(f"the {self.name} is {state.value}: it cannot {event.value}") from None

    def allows(self, state: S, event: E) -> bool:
        """Whether the event can happen in this state."""
        return event in self.transitions[state]

    def ended(self, state: S) -> bool:
        """Whether no event leads to another state any more."""
        return all(following is state for following in self.transitions[state].values())

    def arrows(self) -> Iterator[tuple[S, str, S]]:
        """Every pair of states with the events between them, in the order of the table."""
        for state, row in self.transitions.items():
            events: dict[S, list[str]] = {}
            for event, following in row.items():
                events.setdefault(following, []).append(event.value)
            for following, names in events.items():
                yield state, ", ".join(names), following

    def diagram(self) -> str:
        """The table as a Mermaid state diagram, without the events that change nothing."""
        lines = ["stateDiagram-v2", f"    [*] --> {_label(self.start)}"]
        lines += [
            f"    {_label(state)} --> {_label(following)}: {names}"
            for state, names, following in self.arrows()
            if following is not state
        ]
        lines += [f"    {_label(state)} --> [*]" for state in self.transitions if self.ended(state)]
        return "\n".join(lines) + "\n"


def _label(state: Enum) -> str:
    return state.name.lower()
