"""Where programs are that we start ourselves. We work in projects of other people, so a relative folder of the PATH is not looked in."""

import os

__all__ = ["absolute_path", "program"]


def absolute_path() -> str:
    """The PATH without its relative folders. An empty one would be read as the current directory."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if folder.startswith("/")) or "/"


def program(name: str) -> str | None:
    """The whole path of a program. None: there is none."""
    import shutil

    return shutil.which(name, path=absolute_path())
