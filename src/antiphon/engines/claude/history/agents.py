"""The sub-agents of a session: which file has what the sub-agent of a call said and did."""

from pathlib import Path
from typing import Final

import msgspec

from antiphon.engines.claude.history.places import AGENTS, SUFFIX, is_id
from antiphon.engines.claude.history.records import Index
from antiphon.protocol.base import BAD_INPUT

__all__ = ["Agents"]


class _Meta(msgspec.Struct, gc=False):
    toolUseId: str | None = None


_meta: Final = msgspec.json.Decoder(_Meta)


class Agents:
    """The files of the sub-agents, by the calls that started them. Each is given out once."""

    def __init__(self, session: Path, index: Index) -> None:
        self._folders = (session.with_suffix("") / AGENTS, session.parent)
        """Versions before 2.1 have them beside the sessions."""
        self._names = self._described()
        self._given: set[Path] = set()
        self.learn(index)

    def learn(self, index: Index) -> None:
        """Results say which sub-agent they are from; versions without a description of each are known by that alone."""
        for row in index.rows:
            if row.agent is not None and row.results:
                self._names.setdefault(row.results[0], row.agent)

    def take(self, call: str) -> Path | None:
        """The file of the sub-agent that a call started."""
        name = self._names.get(call)
        if name is None or not is_id(name):
            return None
        found = (folder / f"agent-{name}{SUFFIX}" for folder in self._folders)
        path = next((path for path in found if path.is_file()), None)
        if path is None or path in self._given:
            return None
        self._given.add(path)
        return path

    def _described(self) -> dict[str, str]:
        names = {}
        for path in sorted(self._folders[0].glob("agent-*.meta.json")):
            try:
                call = _meta.decode(path.read_bytes()).toolUseId
            except (OSError, *BAD_INPUT):
                continue
            if call:
                names[call] = path.name.removeprefix("agent-").removesuffix(".meta.json")
        return names
