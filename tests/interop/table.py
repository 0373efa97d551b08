"""The tables of `docs/evidence/interop.md`: the tests put their results in, one test compares them with the page or writes it."""

import os
import re
from pathlib import Path
from typing import Final

from tests.interop.faults import FAULTS
from tests.interop.programs import ROOT, all_programs

PAGE: Final = ROOT / "docs" / "evidence" / "interop.md"
REWRITE: Final = os.environ.get("ANTIPHON_INTEROP") == "write"

OK: Final = "ok"
LACKING: Final = "not in that SDK"

RESULTS: dict[tuple[str, str], dict[str, str]] = {}
"""(client, agent) → the title of a step → its result."""


def row(cells: "list[str]") -> str:
    return f"| {' | '.join(cells)} |"


def render(pairs: "list[tuple[str, str]]", column: int) -> str:
    """One table: a line for each step, a column for each pair, headed by one side of it."""
    who = all_programs()
    steps = list(dict.fromkeys(step for pair in pairs for step in RESULTS[pair]))
    lines = [row(["step", *(who[pair[column]].title for pair in pairs)]), row(["---"] * (len(pairs) + 1))]
    lines += [row([step, *(RESULTS[pair].get(step, "") for pair in pairs)]) for step in steps]
    return "\n".join(lines)


def faults() -> str:
    who = all_programs()
    parts = []
    for fault in FAULTS:
        names = " and ".join(who[name].title for name in fault.whose)
        role = {"agent": "an agent", "client": "a client"}[fault.role]
        proof = "\n".join(fault.proof)
        parts.append(f"### {fault.id}: {names}, as {role}\n\n{fault.what}\n\n```text\n{proof}\n```")
    return "\n\n".join(parts)


def on_page(name: str, text: str) -> str:
    """What stands between the markers of that name."""
    found = re.search(rf"<!-- {name} -->\n(.*?)\n?<!-- end of {name} -->", text, re.DOTALL)
    assert found, f"{PAGE.name} has no markers for {name}"
    return found[1].strip()


def put(path: Path, name: str, body: str) -> None:
    text = path.read_text(encoding="utf-8")
    old = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    path.write_text(old.sub(lambda found: f"{found[1]}\n{body}\n\n{found[2]}", text), encoding="utf-8")
