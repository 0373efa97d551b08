"""`antiphon replay --as client`: starts the agent, plays the client, and tells what differed."""

import asyncio
import os
import sys
from typing import TYPE_CHECKING

import msgspec

from antiphon.cli.saying import FAILED
from antiphon.recorder.replay.client import ClientPlayer, drive
from antiphon.recorder.replay.comparison import Ignored
from antiphon.recorder.replay.script import ReplayNames
from antiphon.text import exact

if TYPE_CHECKING:
    from antiphon.cli.replay import Wishes
    from antiphon.recorder.replay.script import Script

__all__ = ["play_client"]


def play_client(script: "Script", wishes: "Wishes") -> int:
    """Play, report, and say by the status whether anything differed."""
    here = os.path.abspath(wishes.cwd or ".")
    names = ReplayNames(script.lines, script.ours.other, verbatim=wishes.verbatim)
    recorded = next((line.params["cwd"] for line in script.lines if isinstance(line.params.get("cwd"), str)), None)
    if recorded is not None:
        names.move(recorded, here)
    ignored = Ignored(wishes.ignore)
    player = ClientPlayer(script, names, speed=wishes.speed, strict=wishes.strict, ignored=ignored)
    early = asyncio.run(drive(player, wishes.command, here, wishes.timeout))
    _tell(player, early, wishes)
    return FAILED if player.differences or early is not None else 0


def _tell(player: ClientPlayer, early: str | None, wishes: "Wishes") -> None:
    for note in player.notes if wishes.verbose else ():
        sys.stderr.write(f"note: {exact(note)}\n")
    if early is not None:
        sys.stderr.write(f"error: {exact(early)}\n")
    for difference in player.differences:
        sys.stderr.write(f"{exact(str(difference))}\n")
    sys.stderr.write(f"{player.matched} messages of the agent as recorded, {len(player.differences)} differences\n")
    if wishes.json:
        found = [difference.as_data() for difference in player.differences]
        report = {"matched": player.matched, "differences": found, "ended_early": early}
        sys.stdout.write(f"{msgspec.json.encode(report).decode()}\n")
