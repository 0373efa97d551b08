"""Write `docs/lives.md`: a diagram of every life that the code has as a table.

    python tools/life_diagrams.py            # write the page
    python tools/life_diagrams.py --check    # only say whether it is up to date

`antiphon.life` says how to write such a table. A new one is listed here.
"""

import sys
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from antiphon.life import Life

LIVES: Final[tuple[str, ...]] = (
    "antiphon.transports.pipes:PIPE_INPUT_LIFE",
    "antiphon.transports.pipes:PIPE_OUTPUT_LIFE",
    "antiphon.connection.connection:CONNECTION_LIFE",
    "antiphon.connection.bridge:BRIDGE_LIFE",
    "antiphon.agent.prompts:AGENT_TURN_LIFE",
    "antiphon.client.link:LINK_LIFE",
    "antiphon.client.turn:CLIENT_TURN_LIFE",
    "antiphon.engines.process:KEPT_PROCESS_LIFE",
    "antiphon.engines.tool_calls:TOOL_CALL_LIFE",
    "antiphon.engines.cli_driver:ENGINE_SESSION_LIFE",
    "antiphon.gateway.agents.process:AGENT_PROCESS_LIFE",
)
"""Module and name of each, in the order of the page: from the wire upwards."""

PAGE: Final = Path(__file__).parent.parent / "docs" / "lives.md"

HEAD: Final = """\
# Lives

What can be opened, lost, cancelled and closed has a state, and a table says which event leads to which other state. The code follows the
tables (`antiphon.life`): an event that is not in them raises. The diagrams are made from them by `python tools/life_diagrams.py`.
"""


def load(address: str) -> Life[Any, Any]:
    """The table that an entry of `LIVES` names."""
    module, _, name = address.partition(":")
    found: Life[Any, Any] = getattr(import_module(module), name)
    return found


def section(address: str) -> str:
    """One life: what it is, where it is, its diagram, and its table."""
    life = load(address)
    module, _, name = address.partition(":")
    path = module.replace(".", "/")
    parts = [f"\n## {life.name[0].upper()}{life.name[1:]}\n\n", f"`{name}` in `src/{path}.py`."]
    parts.append(f" {life.about}\n" if life.about else "\n")
    parts.append(f"\n```mermaid\n{life.diagram()}```\n\n| state | event | next state |\n|---|---|---|\n")
    for state, names, following in life.arrows():
        parts.append(f"| {_word(state)} | {names} | {_word(following) if following is not state else 'the same'} |\n")
    return "".join(parts)


def _word(state: Enum) -> str:
    return str(state.value)


def page() -> str:
    """The whole page."""
    return HEAD + "".join(section(address) for address in LIVES)


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    made = page()
    if "--check" in arguments:
        return 0 if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == made else 1
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
