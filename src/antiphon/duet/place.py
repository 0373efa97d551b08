"""Where a session is: one directory has one name here."""

__all__ = ["normal_directory"]


def normal_directory(cwd: str) -> str:
    """A directory as we compare and keep it: `/w/`, `/w/.` and `//w` are `/w`.

    Nothing is looked at: a directory may be a link, or gone, and `..` behind a link leads elsewhere, so both stay as they are.
    """
    parts = [part for part in cwd.split("/") if part not in ("", ".")]
    return f"/{'/'.join(parts)}" if cwd.startswith("/") else "/".join(parts) or cwd
