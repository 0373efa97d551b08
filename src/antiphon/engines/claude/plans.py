"""The plan is made: show it, and ask whether and how to go on. The one place where an answer changes the mode."""

from typing import TYPE_CHECKING, Any, Final

from antiphon.engines.claude.inquiry import allow, deny
from antiphon.engines.inquiry import Body, pick, shown, text, words
from antiphon.protocol import v1

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking
    from antiphon.engines.claude import wire

__all__ = ["ask_about_plan"]

_Kind = v1.PermissionOptionKind
_ACCEPTING: Final = v1.PermissionOption("accept_edits", "Yes, and accept edits without asking", _Kind.ALLOW_ALWAYS)
_ASKING: Final = v1.PermissionOption("ask_for_edits", "Yes, and ask before each edit", _Kind.ALLOW_ONCE)
_STAYING: Final = v1.PermissionOption("keep_planning", "No, stay in plan mode", _Kind.REJECT_ONCE)
_CHANGING: Final = v1.PermissionOption("change_plan", "No, and say what to change", _Kind.REJECT_ONCE)

_MODES: Final = {_ACCEPTING.option_id: "acceptEdits", _ASKING.option_id: "default"}

STAYS: Final = (
    "The user did not approve the plan and stays in plan mode. Nothing may be changed yet: "
    "ask what should be different, or improve the plan."
)


async def ask_about_plan(request: "wire.CanUseTool", stage: "Asking", call: v1.ToolCallPatch) -> Body:
    """Show the plan and ask."""
    options = [_ASKING, _STAYING] if request.mended else [_ACCEPTING, _ASKING, _STAYING]
    if stage.session.client.shows_forms:
        options.append(_CHANGING)
    plan = request.input.get("plan")
    content = (
        [text(plan)] if isinstance(plan, str) and plan.strip() else call.content or [text("There is no plan yet.")]
    )
    chosen = await pick(stage, shown(call, content=content), options, question=True)
    if chosen is None:
        return deny(STAYS)
    if chosen.option_id in _MODES:
        return allow(request.input, _mode(_MODES[chosen.option_id]))
    if chosen is _CHANGING:
        said = await words(stage, "What should be different?", "Changes to the plan", call.tool_call_id)
        if said is not None:
            return deny(f"The user stays in plan mode and wants the plan changed first. They said:\n{said}")
    return deny(STAYS)


def _mode(mode: str) -> dict[str, Any]:
    return {"type": "setMode", "mode": mode, "destination": "session"}
