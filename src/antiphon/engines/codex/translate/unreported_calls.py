"""Calls that Codex reports no item for, because its sandbox refuses them at once: found in the model's own messages.

Those are the items of the Responses API. A thread that was started here sends them as they come; those of any other are read
from the file of the thread.
"""

import re
from typing import Final

import msgspec

from antiphon.engines.codex.wire import CommandExecution, FileChange, FileUpdate, FunctionCallOutput, Item, UpdateKind
from antiphon.protocol.base import BAD_INPUT

__all__ = ["ResponseItem", "UnreportedCalls"]

_SCRIPT: Final = "exec"
"""The one tool of newer models: a script that calls the others. Those that it calls have ids of their own."""

_SCRIPT_DONE: Final = "Script completed"
_TRIES: Final = re.compile(r"\btools\s*(?:\.\s*|\[\s*['\"`])(?:exec_command|apply_patch)\b")
"""What a script calls that has an item if it runs. A script may catch the refusal, and end well."""

_OUTPUT: Final = re.compile(r"Process exited with code (-?\d{1,10})\n(?:.*\n)*?Output:\n", re.MULTILINE)
_FILE: Final = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_MOVE: Final = re.compile(r"^\*\*\* Move to: (.+)$", re.MULTILINE)
_KINDS: Final = {"Add": "add", "Update": "update", "Delete": "delete"}


class _Item(msgspec.Struct, frozen=True):
    id: str = ""


class ResponseItem(msgspec.Struct, frozen=True):
    """An item of the Responses API: a call, its result, or something else; in a file also the note that there is an item."""

    type: str = ""
    id: str | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    input: str = ""
    output: object = None
    item: _Item | None = None


class _Command(msgspec.Struct, frozen=True):
    cmd: str = ""
    workdir: str | None = None


class UnreportedCalls:
    """The unreported calls of one thread."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[ResponseItem, int]] = {}
        """Calls that have no result yet, and how many items there were before."""
        self._seen: set[str] = set()
        self._count = 0

    def seen(self, id: str) -> None:
        """There is an item with this id."""
        self._seen.add(id)
        self._count += 1

    def turn_ended(self) -> None:
        """What is open stays without a result."""
        self._open.clear()
        self._seen.clear()

    def feed(self, text: ResponseItem) -> Item | None:
        """Return the item that Codex should have sent for a call, if it sent none."""
        if text.item is not None:
            self.seen(text.item.id)
            return None
        if text.type in ("function_call", "custom_tool_call"):
            self._open[text.call_id] = text, self._count
            return None
        if text.type not in ("function_call_output", "custom_tool_call_output") or text.call_id not in self._open:
            return None
        call, before = self._open.pop(text.call_id)
        if text.call_id in self._seen:
            return None
        self._seen.add(text.call_id)  # what was reported live is not reported again
        output = _text(text.output)
        if call.name == "exec_command":
            return _command(call, output)
        if call.name == "apply_patch":
            return _change(call, output)
        if call.name == _SCRIPT and self._count == before:  # nothing that it did was reported
            failed = not output.startswith(_SCRIPT_DONE) or _TRIES.search(call.input) is not None
            return FunctionCallOutput(id=call.call_id, name="Script", output=f"{call.input}\n\n{output}", failed=failed)
        return None


def _text(output: object) -> str:
    if isinstance(output, list):
        return "".join(str(part.get("text", "")) for part in output if isinstance(part, dict))
    return output if isinstance(output, str) else ""


def _command(call: ResponseItem, output: str) -> Item | None:
    try:
        description = msgspec.json.decode(call.arguments, type=_Command)
    except BAD_INPUT:
        return None
    ended = _OUTPUT.search(output)
    code = int(ended[1]) if ended is not None else None
    return CommandExecution(
        id=call.call_id,
        command=description.cmd,
        cwd=description.workdir,
        status="completed" if code == 0 else "failed",
        aggregated_output=output[ended.end() :] if ended is not None else output,
        exit_code=code,
    )


def _change(call: ResponseItem, output: str) -> Item | None:
    changes = _changes(call.input)
    if not changes or output.startswith("Exit code: 0"):
        return None
    return FileChange(id=call.call_id, changes=changes, status="failed")


def _changes(patch: str) -> list[FileUpdate]:
    """What the model wanted to do to which file."""
    heads = list(_FILE.finditer(patch))
    found = []
    for number, head in enumerate(heads):
        end = heads[number + 1].start() if number + 1 < len(heads) else len(patch)
        body = patch[head.end() : end].replace("*** End Patch", "").strip("\n")
        moved = _MOVE.search(body)
        kind = _KINDS[head[1]]
        if kind == "add":
            body = "".join(f"{line[1:]}\n" for line in body.splitlines() if line.startswith("+"))
        update = UpdateKind(type=kind, move_path=moved[1] if moved is not None else None)
        found.append(FileUpdate(path=head[2].strip(), kind=update, diff="" if kind == "delete" else body))
    return found
