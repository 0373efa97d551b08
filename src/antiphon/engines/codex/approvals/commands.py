"""May this command run? Or: may it have this input, may it reach this host."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from antiphon.engines.codex import wire
from antiphon.engines.codex.approvals.decisions import NEW, OLD, decided
from antiphon.engines.codex.approvals.grants import offers_for, offers_of_old
from antiphon.engines.codex.approvals.permissions import described
from antiphon.engines.codex.approvals.telling import explained
from antiphon.engines.codex.translate.wording import command_line, shell_line
from antiphon.engines.labels import one_line
from antiphon.engines.questions import Body, pick, pick_alone, text
from antiphon.protocol import v1
from antiphon.text import exact, fenced

if TYPE_CHECKING:
    from antiphon.agent.asking import Asking

__all__ = ["ask_about_command"]


async def ask_about_command(
    asked: wire.CommandApproval | wire.ExecApproval, stage: "Asking", call: v1.ToolCallPatch | None
) -> Body:
    """Ask about a command, in either protocol."""
    if isinstance(asked, wire.ExecApproval):
        offers, words, alone = offers_of_old(), OLD, call is None
    else:
        offers, words = offers_for(asked), NEW
        # What is asked about is a part of the call, which goes on whatever comes of this.
        alone = call is None or asked.approval_id not in (None, asked.item_id)
    base = _alone(asked, stage) if alone or call is None else call
    ours = [*_facts(asked, stage), *(offer.note for offer in offers)]
    chosen = await (pick_alone if alone else pick)(
        stage, explained(base, [asked.reason], ours), [offer.option for offer in offers]
    )
    return decided(offers, chosen, words)


def _alone(asked: wire.CommandApproval | wire.ExecApproval, stage: "Asking") -> v1.ToolCallPatch:
    """The question as a call of its own."""
    if isinstance(asked, wire.ExecApproval):
        id, line, title = asked.approval_id or asked.call_id, shell_line(asked.command), None
    else:
        id, line = asked.approval_id or asked.item_id, command_line(asked.command or "")
        title = None if asked.kind == "command" else "Send input to a running command"
        if asked.network_approval_context is not None:
            title = one_line(f"Network access to {asked.network_approval_context.host}")
    return v1.ToolCallPatch(
        id,
        title=title or one_line(line) or "Run a command",
        kind=v1.ToolKind.EXECUTE,
        name="Bash",
        content=[text(fenced(exact(line), "sh"))] if line else [],
        # Never what the call itself runs: a client's rules would take it for that.
        raw_input={"command": line, "cwd": asked.cwd or stage.session.cwd},
    )


def _facts(asked: wire.CommandApproval | wire.ExecApproval, stage: "Asking") -> Iterator[str]:
    if asked.cwd is not None and asked.cwd != stage.session.cwd:
        yield f"It runs in `{exact(asked.cwd)}`."
    if isinstance(asked, wire.ExecApproval):
        return
    network = asked.network_approval_context
    if network is not None:
        yield f"It wants to reach `{exact(network.host)}`" + (f" ({network.protocol})." if network.protocol else ".")
    more = described(asked.additional_permissions or {})
    if more:
        yield "It wants more than the sandbox allows:\n" + "\n".join(f"- {each}" for each in more)
