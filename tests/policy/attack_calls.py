"""Raw inputs that try to be taken for less than they are."""

from typing import NamedTuple

from antiphon.policy import PolicyMode
from antiphon.protocol.v1.tools import ToolKind

ALLOW, ASK = "allow", "ask"
EDIT, READ, RUN = ToolKind.EDIT, ToolKind.READ, ToolKind.EXECUTE
PATCH = "*** Begin Patch\n*** Add File: evil\n+x\n*** End Patch"


def diff(old: str, new: str | None = None, *before: str, after: str = "") -> str:
    """A unified diff, with lines before and behind it."""
    return "\n".join([*before, f"--- {old}", f"+++ {new or old}", "@@ -1 +1 @@", "-x", "+y", *after.splitlines(), ""])


class CallAttack(NamedTuple):
    """The call has a location inside `src`, and `Edit(src/**)` and `Bash(make *)` are allowed."""

    trick: str
    kind: ToolKind
    raw: object
    verdict: str = ASK
    name: str | None = None
    mode: PolicyMode = PolicyMode.DEFAULT


CALLS = [
    CallAttack(
        "an edit", EDIT, {"file_path": "src/a", "old_string": "/x", "new_string": "/y", "replace_all": True}, ALLOW
    ),
    CallAttack("several edits", EDIT, {"file_path": "src/a", "edits": [{"oldText": "x", "newText": "y"}]}, ALLOW),
    CallAttack("changes inside", EDIT, {"changes": {"src/b": {"type": "add", "content": "x"}}}, ALLOW, "apply_patch"),
    CallAttack("changes elsewhere", EDIT, {"changes": {"/etc/passwd": {"type": "add"}}}, name="apply_patch"),
    CallAttack("changes of a file beside it", EDIT, {"changes": {"evil": {"type": "add"}}}, name="apply_patch"),
    CallAttack("files by their paths", EDIT, {"path": "src/a", "files": {"evil": "x"}}),
    CallAttack("a path as a name", EDIT, {"path": "src/a", "more": {"/etc/passwd": 1}}),
    CallAttack("a change that moves", EDIT, {"changes": {"src/a": {"type": "update", "move_path": "/etc/x"}}}),
    CallAttack("a patch as the input", EDIT, {"path": "src/a", "input": PATCH}),
    CallAttack("a patch as something else", EDIT, {"path": "src/a", "message": PATCH}, name="apply_patch"),
    CallAttack("a patch in the changes", EDIT, {"changes": {"src/a": {"unified_diff": "--- a\n+++ evil\n"}}}),
    CallAttack(
        "the diff of the file", EDIT, {"filepath": "src/a", "diff": diff("src/a", None, "Index: src/a", "=" * 9)}, ALLOW
    ),
    CallAttack(
        "its diff twice",
        EDIT,
        {"path": "src/a", "diff": diff("src/a"), "filediff": {"file": "src/a", "patch": diff("src/a")}},
        ALLOW,
    ),
    CallAttack(
        "a diff with times", EDIT, {"path": "src/a", "diff": diff("src/a\t2026-01-01", "src/a\t2026-01-02")}, ALLOW
    ),
    CallAttack("the diff of a new file", EDIT, {"path": "src/a", "diff": diff("/dev/null", "src/a")}, ALLOW),
    CallAttack(
        "a removed line that looks like a header",
        EDIT,
        {"path": "src/a", "diff": diff("src/a", after="--- evil")},
        ALLOW,
    ),
    CallAttack("a diff whose prefix may be a directory", EDIT, {"path": "src/a", "diff": diff("a/src/a", "b/src/a")}),
    CallAttack("the diff of another file", EDIT, {"path": "src/a", "diff": diff("evil")}),
    CallAttack("a diff that makes another file", EDIT, {"path": "src/a", "diff": diff("src/a", "evil")}),
    CallAttack("a diff of two files", EDIT, {"path": "src/a", "diff": diff("src/a") + diff("evil")}),
    CallAttack(
        "a second file inside of a change", EDIT, {"path": "src/a", "diff": diff("src/a", after="--- evil\n+++ evil")}
    ),
    CallAttack(
        "a second file behind another end of a line",
        EDIT,
        {"path": "src/a", "diff": diff("src/a") + "\r--- evil\r+++ evil\r"},
    ),
    CallAttack("another index", EDIT, {"path": "src/a", "diff": diff("src/a", None, "Index: evil")}),
    CallAttack(
        "another file for git", EDIT, {"path": "src/a", "diff": diff("src/a", None, "diff --git a/src/a b/evil")}
    ),
    CallAttack("a rename", EDIT, {"path": "src/a", "diff": diff("src/a", None, "rename from src/a", "rename to evil")}),
    CallAttack("a mode", EDIT, {"path": "src/a", "diff": diff("src/a", None, "old mode 100644", "new mode 100755")}),
    CallAttack("a new program", EDIT, {"path": "src/a", "diff": diff("/dev/null", "src/a", "new file mode 100755")}),
    CallAttack("a diff that deletes", EDIT, {"path": "src/a", "diff": diff("src/a", "/dev/null")}),
    CallAttack("a diff and a patch", EDIT, {"path": "src/a", "diff": diff("src/a") + PATCH}),
    CallAttack("a diff under a name nobody knows", EDIT, {"path": "src/a", "more": diff("evil")}),
    CallAttack("a diff without headers", EDIT, {"path": "src/a", "diff": "@@ -1 +1 @@\n-x\n+y\n"}),
    CallAttack("a name nobody knows", EDIT, {"file_path": "src/a", "outfile": "evil.sh"}),
    CallAttack("the same name in another case", EDIT, {"path": "src/a", "Path": "evil"}),
    CallAttack("a path among the edits", EDIT, {"file_path": "src/a", "edits": ["/w/evil"]}),
    CallAttack("a name among the edits", EDIT, {"file_path": "src/a", "edits": ["evil"]}),
    CallAttack("a glob", ToolKind.DELETE, {"path": "src/a", "glob": "**"}, mode=PolicyMode.ACCEPT_EDITS),
    CallAttack("a command", RUN, {"command": "make x", "description": "/x", "timeout": 5, "cwd": "sub"}, ALLOW),
    CallAttack("a usual shell", RUN, {"command": "make x", "shell": "/bin/bash"}, ALLOW),
    CallAttack("a usual variable", RUN, {"command": "make x", "env": {"TERM": "dumb"}}, ALLOW),
    CallAttack(
        "what the agent makes of its command", RUN, {"command": "make x", "parsed_cmd": [{"cmd": "make"}]}, ALLOW
    ),
    CallAttack("another PATH", RUN, {"command": "make x", "env": {"PATH": "/tmp"}}),
    CallAttack("another PATH, listed", RUN, {"command": "make x", "environment": [{"name": "PATH", "value": "/tmp"}]}),
    CallAttack("another PATH, written out", RUN, {"command": "make x", "envs": ["PATH=/tmp"]}),
    CallAttack("another folder", RUN, {"command": "make x", "directory": "/tmp"}),
    CallAttack("another folder as a path", RUN, {"command": "make x", "path": ".."}),
    CallAttack("two folders", RUN, {"command": "make x", "cwd": "a", "folder": "b"}),
    CallAttack("another shell", RUN, {"command": "make x", "shell": "/tmp/evil"}),
    CallAttack("something for its input", RUN, {"command": "make x", "stdin": "rm x"}),
    CallAttack("something that nobody knows", RUN, {"command": "make x", "sandbox": {"off": True}}),
    CallAttack("a switch that nobody knows", RUN, {"command": "make x", "dangerouslyDisableSandbox": True}),
    CallAttack("a switch that is off", RUN, {"command": "make x", "sandbox": False}),
    CallAttack("a number that nobody knows", RUN, {"command": "make x", "uid": 0}),
    CallAttack("a name with no value", RUN, {"command": "make x", "sandbox": None, "extra": []}, ALLOW),
    CallAttack("two commands, one in capitals", RUN, {"command": "make x", "COMMAND": "rm x"}),
    CallAttack("a read", READ, {"file_path": "src/a", "offset": 3, "limit": 5}, ALLOW),
    CallAttack("a search", ToolKind.SEARCH, {"pattern": "[a-z]{2}", "path": "src", "output_mode": "content"}, ALLOW),
    CallAttack("a plan", ToolKind.THINK, {"todos": [{"content": "x", "status": "pending"}]}, ALLOW),
    CallAttack("a command deep inside", READ, {"input": {"command": "rm x"}}),
    CallAttack("a command in a list", READ, {"steps": [{"a": [{"Cmd": "rm x"}]}]}),
    CallAttack("a command in capitals", READ, {"COMMAND": "rm x"}),
    CallAttack("several commands", READ, {"commands": ["rm x"]}),
    CallAttack("a command in an object written as text", READ, {"arguments": '{"command": "rm x"}'}),
    CallAttack("an object written as text", READ, '{"command": "rm x"}'),
    CallAttack("a list", READ, ["rm", "x"]),
    CallAttack("keys for a program that runs", READ, {"session_id": 1, "chars": "rm x\n"}, name="write_stdin"),
    CallAttack("a read that writes", READ, {"path": "a", "content": "x"}),
    CallAttack("a search that replaces", ToolKind.SEARCH, {"path": "a", "new_string": "x"}),
    CallAttack("a thought that edits", ToolKind.THINK, {"path": "a", "edits": [{"newText": "x"}]}),
    CallAttack("a read with too much in it", READ, {"paths": ["a"] * 2000}),
]
