"""Paths that try to get more than the rules give."""

import posixpath
from typing import NamedTuple

from antiphon.policy import PolicyMode
from antiphon.protocol.v1.tools import ToolKind

ALLOW, DENY, ASK = "allow", "deny", "ask"
LINKS = {
    "/home/me/song/src/link": "/etc",
    "/home/me/song/innocent.txt": "/home/me/song/secrets/key",
    "/home/me/song/secrets/alias": "/home/me/song/public/file",
}


def follow(path: str) -> str:
    """A disk with some links: the longest known beginning is replaced. `..` is applied after that, as the system does it."""
    for link, target in LINKS.items():
        if path == link or path.startswith(f"{link}/"):
            return posixpath.normpath(target + path[len(link) :])
    return posixpath.normpath(path)


class PathAttack(NamedTuple):
    trick: str
    path: str
    rules: str
    verdict: str
    name: str | None = "Edit"
    kind: ToolKind = ToolKind.EDIT
    mode: PolicyMode = PolicyMode.DEFAULT
    more: tuple[str, ...] = ()

    def listed(self, sign: str) -> list[str]:
        return [rule[1:] for rule in self.rules.split("  ") if rule.startswith(sign)]


SRC = "+Edit(src/**)"
NO_SECRETS = "+Edit  +Read  -Edit(secrets/**)  -Read(secrets/**)"
EDITS = PolicyMode.ACCEPT_EDITS

PATHS = [
    PathAttack("plainly inside", "src/a.py", SRC, ALLOW),
    PathAttack("plainly inside, whole path", "/home/me/song/src/deep/er/a.py", SRC, ALLOW),
    PathAttack("as a file address", "file:///home/me/song/src/a.py", SRC, ALLOW),
    PathAttack("up and out", "src/../../../../etc/passwd", SRC, ASK),
    PathAttack("up and over", "src/../secrets/key", SRC, ASK),
    PathAttack("a folder that begins like it", "src-evil/a.py", SRC, ASK),
    PathAttack("a root that begins like it", "/home/me/song-evil/src/a.py", SRC, ASK),
    PathAttack("the same names elsewhere", "/tmp/src/a.py", SRC, ASK),
    PathAttack("through a link", "src/link/passwd", SRC, ASK),
    PathAttack("up through a link", "src/link/../home/me/song/src/a.py", SRC, ALLOW),
    PathAttack("one good path and one bad", "src/a.py", SRC, ASK, more=("/etc/passwd",)),
    PathAttack("another case", "SRC/a.py", SRC, ASK),
    PathAttack("a home", "~/src/a.py", SRC, ASK),
    PathAttack("somebody's home", "~root/x", "+Edit(**)", ASK, more=("/root/x",)),
    PathAttack("a NUL", "src/a.py\0/../../../etc/passwd", SRC, ASK),
    PathAttack("one star does not cross folders", "src/a/b.py", "+Edit(src/*)", ASK),
    PathAttack("a question mark does not cross folders", "src/a", "+Edit(src?a)", ASK),
    PathAttack("a question mark is one letter", "src/ab", "+Edit(src/a?)", ALLOW),
    PathAttack("a question mark is not no letter", "src/a", "+Edit(src/a?)", ASK),
    PathAttack("a name with a star in it", "src/x", "+Edit(src/\\*)", ASK),
    PathAttack("another tool", "src/a.py", SRC, ASK, name="Delete", kind=ToolKind.DELETE),
    PathAttack("a read that edits", "src/a.py", "+Read", ASK, name="Read", kind=ToolKind.EDIT),
    PathAttack("an edit that says it reads", "src/a.py", "", ASK, name="Edit", kind=ToolKind.READ),
    PathAttack("a tool nobody knows", "src/a.py", SRC, ASK, name="edit_evil", kind=ToolKind.EDIT),
    PathAttack("denied plainly", "secrets/key", NO_SECRETS, DENY),
    PathAttack("denied with dots", "src/.././secrets//key", NO_SECRETS, DENY),
    PathAttack("denied, whole path", "/home/me/song/secrets/key", NO_SECRETS, DENY),
    PathAttack("denied, two slashes", "//home/me/song/secrets/key", NO_SECRETS, DENY),
    PathAttack("denied through a link that looks innocent", "innocent.txt", NO_SECRETS, DENY),
    PathAttack("denied by its name although it leads elsewhere", "secrets/alias", NO_SECRETS, DENY),
    PathAttack("denied among others", "src/a.py", NO_SECRETS, DENY, more=("secrets/key",)),
    PathAttack("denied for whole writes", "secrets/key", NO_SECRETS, DENY, name="Write"),
    PathAttack("denied for deleting", "secrets/key", NO_SECRETS, DENY, name="Delete", kind=ToolKind.DELETE),
    PathAttack("denied without a name", "secrets/key", NO_SECRETS, DENY, name=None),
    PathAttack("denied under somebody's own name", "secrets/key", NO_SECRETS, DENY, name="my_edit"),
    PathAttack("denied for searching", "secrets", NO_SECRETS, DENY, name="Grep", kind=ToolKind.SEARCH),
    PathAttack("a denied folder without stars", "secrets/deep/key", "+Edit  -Edit(secrets)", DENY),
    PathAttack("a denied folder with a slash", "secrets/deep/key", "+Edit  -Edit(secrets/)", DENY),
    PathAttack("denied but for the case", "Secrets/Key", NO_SECRETS, ASK),
    PathAttack("denied but for the form of letters", "\u017fecrets/key", NO_SECRETS, ASK),
    PathAttack("the folder above what is denied", ".", NO_SECRETS + "  +Move", ASK, name="Move", kind=ToolKind.MOVE),
    PathAttack("a deny beats the narrowest allow", "secrets/key", "+Edit(secrets/key)  -Edit(secrets/*)", DENY),
    PathAttack("a home, denied", "~/.ssh/id", "+Read  -Read(~/.ssh/**)", DENY, name="Read", kind=ToolKind.READ),
    PathAttack("a home by its path", "/home/me/.ssh/id", "-Read(~/.ssh/**)", DENY, name="Read", kind=ToolKind.READ),
    PathAttack("edits are accepted inside", "src/a.py", "", ALLOW, mode=EDITS),
    PathAttack("edits are accepted, up and out", "../x", "", ASK, mode=EDITS),
    PathAttack("edits are accepted, a root that begins like it", "/home/me/song-evil/x", "", ASK, mode=EDITS),
    PathAttack("edits are accepted, through a link", "src/link/passwd", "", ASK, mode=EDITS),
    PathAttack("edits are accepted, settings of git", ".git/hooks/pre-commit", "", ASK, mode=EDITS),
    PathAttack("edits are accepted, settings of git in capitals", "sub/.GIT/config", "", ASK, mode=EDITS),
    PathAttack("edits are accepted, our own settings", ".antiphon/config.toml", "", ASK, mode=EDITS),
    PathAttack("edits are accepted, all of it", ".", "", ASK, name="Delete", kind=ToolKind.DELETE, mode=EDITS),
    PathAttack("edits are accepted, but not there", "secrets/key", "-Edit(secrets/**)", DENY, mode=EDITS),
    PathAttack(
        "everything is accepted, but not there", "secrets/key", "-Edit(secrets/**)", DENY, mode=PolicyMode.BYPASS
    ),
    PathAttack("plans do not edit", "src/a.py", "+Edit  +kind:edit", DENY, mode=PolicyMode.PLAN),
]
