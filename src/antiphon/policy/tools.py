"""Names of tools, as agents say them, and the sort of work each does. A table; who wants another name known adds a line."""

from typing import Final

__all__ = [
    "FILE_KINDS", "KINDS", "KIND_OF", "PATH_TOOLS", "QUIET_KINDS", "TOOL_OF_KIND", "also_forbidden_as", "canonical",
    "permitted_as", "worst",
]  # fmt: skip

KINDS: Final = ("think", "read", "search", "switch_mode", "fetch", "other", "edit", "move", "delete", "execute")
"""From what does least to what can do most. Where an agent says two things about a call, the later one counts."""

QUIET_KINDS: Final = frozenset({"think", "read", "search"})
FILE_KINDS: Final = frozenset({"edit", "move", "delete"})

KIND_OF: Final = {
    "Bash": "execute", "Delete": "delete", "Edit": "edit", "ExitPlanMode": "switch_mode", "Glob": "search", "Grep": "search",
    "LS": "read", "Move": "move", "MultiEdit": "edit", "NotebookEdit": "edit", "Read": "read", "TodoWrite": "think",
    "WebFetch": "fetch", "WebSearch": "fetch", "Write": "edit",
}  # fmt: skip

TOOL_OF_KIND: Final = {
    "delete": "Delete", "edit": "Edit", "execute": "Bash", "fetch": "WebFetch", "move": "Move", "read": "Read", "search": "Grep",
}  # fmt: skip
"""What a call without a name is taken for."""

PATH_TOOLS: Final = frozenset({
    "Delete", "Edit", "Glob", "Grep", "LS", "Move", "MultiEdit", "NotebookEdit", "Read", "Write",
})  # fmt: skip

_ALIASES: Final = {
    "apply_patch": "Edit", "bash": "Bash", "delete_file": "Delete", "edit": "Edit", "edit_file": "Edit", "exec_command": "Bash",
    "execute_command": "Bash", "fetch": "WebFetch", "find_files": "Glob", "glob": "Glob", "grep": "Grep", "list_directory": "LS",
    "list_files": "LS", "local_shell": "Bash", "ls": "LS", "move_file": "Move", "multi_edit": "MultiEdit", "multiedit": "MultiEdit",
    "patch": "Edit", "read": "Read", "read_file": "Read", "read_many_files": "Read", "read_text_file": "Read", "replace": "Edit",
    "run_command": "Bash", "run_shell_command": "Bash", "run_terminal_cmd": "Bash", "search_file_content": "Grep", "shell": "Bash",
    "shell_command": "Bash", "str_replace": "Edit", "str_replace_editor": "Edit", "terminal": "Bash", "todo_write": "TodoWrite",
    "update_plan": "TodoWrite", "web_fetch": "WebFetch", "web_search": "WebSearch", "webfetch": "WebFetch",
    "websearch": "WebSearch", "write": "Write", "write_file": "Write", "write_text_file": "Write",
}  # fmt: skip

_COVERS: Final = {
    "Edit": frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"}),
    "Read": frozenset({"Glob", "Grep", "LS", "Read"}),
}


def canonical(name: str) -> str | None:
    """`run_shell_command` → `Bash`; None for a tool that we do not know."""
    return name if name in KIND_OF else _ALIASES.get(name.casefold())


def worst(*kinds: str) -> str:
    """Of several sorts of work the one that can do most."""
    return max(kinds, key=KINDS.index)


def permitted_as(tool: str) -> frozenset[str]:
    """The rules' names that permit a call of this tool: its own, and the one for its family."""
    return frozenset({tool, *(family for family, members in _COVERS.items() if tool in members)})


def also_forbidden_as(kind: str, named: bool) -> frozenset[str]:
    """The rules' names that forbid a call of this kind, whatever the call's own name. Without a name it may be any of them."""
    names = {tool for tool, sort in KIND_OF.items() if sort == kind} if not named else set()
    if kind in FILE_KINDS:
        names.add("Edit")
    elif kind in ("read", "search"):
        names.add("Read")
    elif kind in TOOL_OF_KIND:
        names.add(TOOL_OF_KIND[kind])
    return frozenset(names)
