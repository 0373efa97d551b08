"""May these changes be made? The changes themselves stand in the call."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from antiphon.engines.codex import wire
from antiphon.engines.codex.approvals.decisions import NEW, OLD, ONCE, REJECT, SESSION, STOP, Offer, decided
from antiphon.engines.codex.approvals.telling import explained
from antiphon.engines.fences import fenced
from antiphon.engines.inquiry import Body, pick, pick_alone, text
from antiphon.engines.wording import exact, one_line
from antiphon.engines.wording import shown as named
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking

__all__ = ["ask_about_changes"]


async def ask_about_changes(
    asked: wire.FileApproval | wire.ApplyPatchApproval, stage: "Asking", call: v1.ToolCallPatch | None
) -> Body:
    """Ask about changes to files, in either protocol."""
    words = NEW if isinstance(asked, wire.FileApproval) else OLD
    base = _alone(asked, stage) if call is None else call
    cwd = stage.session.cwd
    session = v1.PermissionOption(
        SESSION, f"Always allow {_which(asked, base, cwd)} in this session", v1.PermissionOptionKind.ALLOW_ALWAYS
    )
    offers = [
        Offer(ONCE, words.once), Offer(session, words.session), Offer(REJECT, words.decline), Offer(STOP, words.stop),
    ]  # fmt: skip
    root = (
        f"It asks to write anywhere in `{exact(asked.grant_root)}` for the rest of the session."
        if asked.grant_root
        else None
    )
    ask = pick_alone if call is None else pick
    chosen = await ask(stage, explained(base, [asked.reason], [root]), [offer.option for offer in offers])
    return decided(offers, chosen, words)


def _which(asked: wire.FileApproval | wire.ApplyPatchApproval, call: v1.ToolCallPatch, cwd: str) -> str:
    """It is the files that are remembered, and not the directory that they are in."""
    if asked.grant_root:
        return f"changes in `{one_line(asked.grant_root)}`"
    paths = list(dict.fromkeys(_paths(call)))
    if len(paths) == 1 and paths[0].isprintable() and "`" not in paths[0]:
        return f"changes to `{named(paths[0], cwd)}`"
    return f"changes to these {len(paths)} files" if len(paths) > 1 else "changes to these files"


def _paths(call: v1.ToolCallPatch) -> Iterable[str]:
    yield from (each.path for each in call.content or () if isinstance(each, v1.Diff))
    yield from (place.path for place in call.locations or ())


def _alone(asked: wire.FileApproval | wire.ApplyPatchApproval, stage: "Asking") -> v1.ToolCallPatch:
    """The question as a call of its own, with as much as it says itself."""
    if isinstance(asked, wire.FileApproval):
        title = "Change files"
        return v1.ToolCallPatch(asked.item_id, title=title, kind=v1.ToolKind.EDIT, name="Edit", raw_input={})
    names = [named(path, stage.session.cwd) for path in asked.file_changes]
    parts = [
        text(f"{change.type} `{exact(name)}`\n\n{fenced(change.unified_diff or change.content, 'diff')}")
        for name, change in zip(names, asked.file_changes.values(), strict=True)
    ]
    return v1.ToolCallPatch(
        asked.call_id,
        title=one_line(f"Change {', '.join(names)}") if names else "Change files",
        kind=v1.ToolKind.EDIT,
        name="Edit",
        content=list(parts),
        locations=[v1.ToolLocation(path) for path in asked.file_changes],
        raw_input={"paths": list(asked.file_changes)},
    )
