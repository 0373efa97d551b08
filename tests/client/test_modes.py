"""One mode for one session: the word that is shown is what happens, whatever the agent's mode and the policy's are."""

import asyncio
import itertools
from pathlib import Path

import pytest

from antiphon.client.connect import connect
from antiphon.client.launch import ORDER, keep_agent_to, mode_in_force, set_mode
from antiphon.client.session import ClientSession
from antiphon.errors import AcpError
from antiphon.local.roots import Workspace
from antiphon.permission.gate import PermissionChoice, PermissionGate, Question
from antiphon.policy import PolicyMode, Verdict
from antiphon.tui.status import status_text
from tests.cli.agents import HasModes, KeepsItsMode
from tests.client.agents import ROOT, Scripted
from tests.limits import limit

MEANS = {
    PolicyMode.DEFAULT: (True, True), PolicyMode.ACCEPT_EDITS: (False, True), PolicyMode.BYPASS: (False, True), PolicyMode.PLAN: (False, False), PolicyMode.DONT_ASK: (False, False),
}  # fmt: skip
"""Whether the user is asked about an edit inside the session's directory, and whether it is made if they say yes."""


class Yes:
    """Allows everything, and counts."""

    asked = 0

    def __call__(self, question: Question) -> PermissionChoice:
        self.asked += 1
        return PermissionChoice(Verdict.ALLOW)


async def what_happens(session: ClientSession, user: Yes, folder: Path) -> tuple[bool, bool]:
    """Whether an edit is asked about, and whether it is made."""
    (folder / "edited.txt").unlink(missing_ok=True)
    before = user.asked
    await session.prompt("edit")
    return user.asked > before, (folder / "edited.txt").exists()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [HasModes, KeepsItsMode])
async def test_the_mode_that_is_shown_is_what_happens(tmp_path: Path, kind: type[HasModes]) -> None:
    """For every mode that an agent comes back in, every mode of the policy, and then every mode that the user chooses."""
    for theirs, ours in itertools.product(ORDER, ORDER):
        (tmp_path / "kept-mode").write_text(theirs.value, encoding="utf-8")
        user = Yes()
        gate = PermissionGate(mode=ours, ask=user, workspace=Workspace.at(str(tmp_path)))
        scripted = Scripted(kind, tmp_path)
        env = {"PYTHONPATH": str(ROOT)}
        async with (
            asyncio.timeout(limit()),
            connect(scripted.command, cwd=tmp_path, env=env, permission=gate.permission) as agent,
        ):
            session = await agent.new_session(tmp_path)
            assert await what_happens(session, user, tmp_path) == MEANS[mode_in_force(session, gate.mode)], (
                theirs,
                ours,
            )
            try:
                was = await keep_agent_to(session, gate.mode)
            except AcpError:
                assert kind is KeepsItsMode
                was = None
            force = mode_in_force(session, gate.mode)
            assert await what_happens(session, user, tmp_path) == MEANS[force], (theirs, ours)
            if kind is HasModes:
                assert ORDER.index(force) <= ORDER.index(ours) or MEANS[force] == MEANS[ours]
                assert was in (None, theirs)
            for chosen in ORDER:
                try:
                    await set_mode(session, gate, chosen.value)
                except AcpError:
                    assert kind is KeepsItsMode
                force = mode_in_force(session, gate.mode)
                assert await what_happens(session, user, tmp_path) == MEANS[force], (theirs, ours, chosen)
                assert kind is KeepsItsMode or force is chosen
                shown = status_text("A", session, gate, "", None).plain
                assert f"mode {force.value}" in shown and shown.count("mode ") == 1 and "permission" not in shown
