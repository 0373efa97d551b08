"""May these changes be made? The changes themselves stand in the call."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from antiphon.engines.codex import wire
from antiphon.engines.codex.approvals.decisions import NEW, OLD, ONCE, REJECT, SESSION, STOP, Offer, decided
from antiphon.engines.codex.approvals.telling import explained
from antiphon.engines.labels import one_line
from antiphon.engines.labels import shown as named
from antiphon.engines.questions import Body, pick, pick_alone
from antiphon.protocol import v1
from antiphon.text import exact

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking

__all__ = ["ask_about_changes"]


async def ask_about_changes(
    asked: wire.FileApproval | wire.ApplyPatchApproval, stage: "Asking", call: v1.ToolCallPatch | None
) -> Body:
    """Ask about changes to files, in either protocol."""
    words = NEW if isinstance(asked, wire.FileApproval) else OLD
    base = _alone(asked) if call is None else call
    paths = list(dict.fromkeys(_paths(base)))
    offers = [Offer(ONCE, words.once), Offer(REJECT, words.decline), Offer(STOP, words.stop)]
    if paths:
        always = f"Always allow {_which(asked, paths, stage.session.cwd)} in this session"
        option = v1.PermissionOption(SESSION, always, v1.PermissionOptionKind.ALLOW_ALWAYS)
        offers.insert(1, Offer(option, words.session))
    unknown = None if paths else "Codex does not say which files would be changed, and how."
    root = (
        f"It asks to write anywhere in `{exact(asked.grant_root)}` for the rest of the session."
        if asked.grant_root
        else None
    )
    ask = pick_alone if call is None else pick
    chosen = await ask(stage, explained(base, [asked.reason], [unknown, root]), [offer.option for offer in offers])
    return decided(offers, chosen, words)


def _which(asked: wire.FileApproval | wire.ApplyPatchApproval, paths: list[str], cwd: str) -> str:
    """It is the files that are remembered, and not the directory that they are in."""
    if asked.grant_root:
        return f"changes in `{one_line(asked.grant_root)}`"
    if len(paths) == 1 and paths[0].isprintable() and "`" not in paths[0]:
        return f"changes to `{named(paths[0], cwd)}`"
    return f"changes to these {len(paths)} files" if len(paths) > 1 else "changes to this file"


def _paths(call: v1.ToolCallPatch) -> Iterable[str]:
    yield from (each.path for each in call.content or () if isinstance(each, v1.Diff))
    yield from (place.path for place in call.locations or ())


def _alone(asked: wire.FileApproval | wire.ApplyPatchApproval) -> v1.ToolCallPatch:
    """The question as a call of its own: nobody has told what would be changed."""
    id = asked.item_id if isinstance(asked, wire.FileApproval) else asked.call_id
    return v1.ToolCallPatch(id, title="Change files", kind=v1.ToolKind.EDIT, name="Edit", raw_input={})
