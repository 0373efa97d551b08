"""What tests about files share: a workspace with traps around it, and a user without privileges."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECRET = "not yours\n"
UNKNOWN_USER = 65534


def trapped(folder: Path) -> Path:
    """A root full of links, beside files that nothing in it may reach: the root."""
    root, other, outside = folder / "root", folder / "root2", folder / "outside"
    for made in (root / "sub" / "deep", other, outside / "sub"):
        made.mkdir(parents=True)
    for place in (other / "secret", outside / "secret", outside / "sub" / "secret", folder / "secret"):
        place.write_text(SECRET, encoding="utf-8")
    (root / "a.txt").write_text("a\n", encoding="utf-8")
    (root / "sub" / "b.txt").write_text("b\n", encoding="utf-8")
    links = {
        "in": "sub", "in_file": "sub/b.txt", "up": "..", "out": str(outside), "out_file": str(outside / "secret"),
        "sideways": "../root2", "dangling_out": str(outside / "nothing"), "dangling_in": "nothing_yet",
        "chain": "sub/../chain2", "chain2": "out", "loop": "loop", "loop2": "loop3", "loop3": "loop2/x",
        "sub/back": "../..", "sub/deep/out": "../../../outside", "roundabout": "../root/sub", "slash": "/",
    }  # fmt: skip
    for name, target in links.items():
        (root / name).symlink_to(target)
    return root


@contextmanager
def as_unknown_user(mode: int = 0o755) -> Iterator[Path]:
    """A folder of a user who is not root, and being that user, so that permissions mean something."""
    folder = Path(tempfile.mkdtemp(prefix="antiphon-"))
    we_are_root = os.geteuid() == 0
    try:
        if we_are_root:
            os.chown(folder, UNKNOWN_USER, UNKNOWN_USER)
        folder.chmod(mode)
        if we_are_root:
            os.seteuid(UNKNOWN_USER)
        yield folder
    finally:
        if we_are_root:
            os.seteuid(0)
        folder.chmod(0o755)
        shutil.rmtree(folder)
