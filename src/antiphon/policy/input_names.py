"""The names that agents use in raw inputs, without case, `_` and `-`: `file_path`, `filePath` and `FILE-PATH` are `filepath`."""

from typing import Final

__all__ = [
    "ADDRESSES", "ARGUMENTS", "ASIDE", "COMMANDS", "CONTENTS", "FOLDERS", "HIDDEN_COMMANDS", "KEYED_BY_PATH", "LABELS", "PATCHES",
    "PATHS", "PLANS", "SEARCHED", "TEXTS", "USUAL_SHELLS", "VARIABLES", "plain",
]  # fmt: skip

COMMANDS: Final = frozenset({"cmd", "command", "commandline", "script", "shellcommand"})
HIDDEN_COMMANDS: Final = COMMANDS | {
    "bash", "chars", "cmds", "code", "commands", "exec", "executable", "keystrokes", "powershell", "program", "scripts", "sh", "shell",
    "stdin",
}  # fmt: skip
"""What runs something, wherever it stands: deep inside, or typed into a program that already runs."""
ARGUMENTS: Final = frozenset({"args", "arguments", "argv"})
VARIABLES: Final = frozenset({"env", "environment", "environmentvariables", "envs", "envvars"})
FOLDERS: Final = frozenset({
    "cwd", "dir", "directory", "dirpath", "folder", "path", "workdir", "workingdir", "workingdirectory",
})  # fmt: skip
LABELS: Final = frozenset({
    "callid", "cellid", "celltype", "editmode", "encoding", "id", "kind", "language", "sessionid", "status", "toolcallid", "tooluseid",
    "turnid", "type",
})  # fmt: skip
"""Short values that name nothing on a disk."""
ASIDE: Final = LABELS | {
    "blocking", "commandactions", "description", "explanation", "isbackground", "justification", "login", "maxoutputtokens", "parsedcmd",
    "proposedexecpolicyamendment", "reason", "requireuserapproval", "runinbackground", "timeout", "timeoutms", "timeoutsec", "timeoutseconds", "title",
    "tty", "yieldtimems",
}  # fmt: skip
"""What may stand beside a command and changes nothing about it."""
USUAL_SHELLS: Final = (
    "bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash", "/usr/bin/sh", "/usr/bin/zsh",
)  # fmt: skip

ADDRESSES: Final = frozenset({"uri", "url"})
PATHS: Final = FOLDERS | {
    "absolutepath", "dest", "destination", "dst", "file", "filename", "filepath", "filepaths", "files", "from", "movepath", "newpath",
    "notebookpath", "oldpath", "paths", "source", "src", "target", "targetfile", "to",
}  # fmt: skip
KEYED_BY_PATH: Final = frozenset({"changes", "filechanges", "files"})
"""Objects whose keys are paths, at least with some agents."""
PATCHES: Final = frozenset({"diff", "patch", "patches", "unifieddiff"})
CONTENTS: Final = PATCHES | {
    "changes", "content", "contents", "edits", "filechanges", "filetext", "inserttext", "newcontent", "newsource", "newstr",
    "newstring", "newtext", "replacement",
}  # fmt: skip
"""What is there to be written. A call that has it does not only read."""
TEXTS: Final = frozenset({
    "description", "explanation", "instruction", "instructions", "message", "oldcontent", "oldstr", "oldstring", "oldtext", "text",
    "todos",
})  # fmt: skip
"""Text that may well begin with a slash."""
SEARCHED: Final = frozenset({"glob", "pattern", "prompt", "query", "regex"})
"""The same for a search. A call that changes files and has one of these says with it which."""
PLANS: Final = frozenset({"entries", "plan", "todos"})


def plain(key: object) -> str:
    """A name without what agents spell differently."""
    return str(key).casefold().replace("_", "").replace("-", "")
