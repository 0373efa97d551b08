"""Raw inputs that try to be taken for less than they are."""

from typing import NamedTuple

from antiphon.policy import Mode
from antiphon.protocol.v1.tools import ToolKind

ALLOW, ASK = "allow", "ask"
EDIT, READ, RUN = ToolKind.EDIT, ToolKind.READ, ToolKind.EXECUTE
PATCH = "*** Begin Patch\n*** Add File: evil\n+x\n*** End Patch"


class CallAttack(NamedTuple):
    """The call has a location inside `src`, and `Edit(src/**)` and `Bash(make *)` are allowed."""

    trick: str
    kind: ToolKind
    raw: object
    verdict: str = ASK
    name: str | None = None
    mode: Mode = Mode.DEFAULT


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
    CallAttack("a name nobody knows", EDIT, {"file_path": "src/a", "outfile": "evil.sh"}),
    CallAttack("the same name in another case", EDIT, {"path": "src/a", "Path": "evil"}),
    CallAttack("a path among the edits", EDIT, {"file_path": "src/a", "edits": ["/w/evil"]}),
    CallAttack("a name among the edits", EDIT, {"file_path": "src/a", "edits": ["evil"]}),
    CallAttack("a glob", ToolKind.DELETE, {"path": "src/a", "glob": "**"}, mode=Mode.ACCEPT_EDITS),
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
