"""Find a session by the beginning of its id, among those that an agent lists."""

import os
from typing import TYPE_CHECKING, Final

from antiphon.errors import AcpError, AuthRequired, NotSupported, RequestRefused

if TYPE_CHECKING:
    from antiphon.client.remote import ConnectedAgent
    from antiphon.protocol import v1

__all__ = ["SHORTEST", "AmbiguousId", "find_session", "is_script", "made_by", "shortened"]

SHORTEST: Final = 8
"""Letters of an id that are shown at least."""

CANDIDATES: Final = 5
"""Sessions that an error lists."""


class AmbiguousId(AcpError):
    """Several sessions have ids that begin like this."""


async def find_session(agent: "ConnectedAgent", word: str, cwd: str | None = None) -> "v1.SessionInfo | None":
    """The session with this id, or whose id begins like this: of this directory, else of all. None: the agent lists no such session.

    Raises:
        AmbiguousId: several are meant.
        AuthRequired: the agent lists its sessions to those who are signed in.
    """
    if not word or agent.capabilities.session_capabilities.list is None:
        return None
    for directory in dict.fromkeys((cwd, None)):
        try:
            found = [info async for info in agent.list_sessions(directory) if info.session_id.startswith(word)]
        except AuthRequired:
            raise
        except (RequestRefused, NotSupported):  # it may still know the id
            return None
        found = [info for info in found if info.session_id == word] or list(
            {info.session_id: info for info in found}.values()
        )
        if directory is not None and not _same_directory(found, directory):
            continue
        if len(found) > 1:
            raise _several(word, found)
        if found:
            return found[0]
    return None


def shortened(ids: "list[str]") -> dict[str, str]:
    """Id → the shortest beginning that no other of them has, of at least eight letters. In order, an id shares most with its neighbours."""
    order = sorted(set(ids))
    shown = {}
    for place, id in enumerate(order):
        neighbours = (*order[max(place - 1, 0) : place], *order[place + 1 : place + 2])
        shared = max((_shared(id, other) for other in neighbours), default=0)
        shown[id] = id[: max(SHORTEST, shared + 1)]
    return shown


def _shared(one: str, other: str) -> int:
    """With how many of the same letters both begin."""
    return next(
        (place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )


def made_by(info: "v1.SessionInfo") -> str:
    """The client that made a session, if the agent is ours and knows; else nothing."""
    client = _marks(info).get("client")
    return client if isinstance(client, str) else ""


def is_script(info: "v1.SessionInfo") -> bool:
    """Whether a script made a session, as far as the agent says so."""
    return _marks(info).get("script") is True


def _marks(info: "v1.SessionInfo") -> "dict[str, object]":
    ours = (info.meta or {}).get("antiphon")
    return ours if isinstance(ours, dict) else {}


def _same_directory(found: "list[v1.SessionInfo]", directory: str) -> bool:
    """Whether all of them are of this directory: some agents list all that they have, whatever they are asked for."""
    return bool(found) and all(info.cwd in (directory, os.path.realpath(directory)) for info in found)


def _several(word: str, found: "list[v1.SessionInfo]") -> AmbiguousId:
    shown = shortened([info.session_id for info in found])
    listed = [f"\n  {shown[info.session_id]}  {info.title or info.cwd}" for info in found]
    more = f"\n  … and {len(found) - CANDIDATES} more" if len(found) > CANDIDATES else ""
    return AmbiguousId(
        f"`{word}` is the beginning of {len(found)} sessions:{''.join(listed[:CANDIDATES])}{more}",
        hint="give some more letters of the one you mean",
    )
