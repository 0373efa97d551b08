"""Make an environment beside this file from the wheels beside it, with the Python that runs this. With `--fits`, only tell whether it could.

Wheels are zip files, and those here have nothing to build and no scripts: no pip is needed, and no network.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from contextlib import suppress

HERE = os.path.dirname(os.path.abspath(__file__))
WHEELS = os.path.join(HERE, "wheels")


def fitting() -> "list[str] | None":
    """One wheel of each package that this Python can use; None if a package has none."""
    number = sys.version_info[1]
    found: dict[str, str] = {}
    packages: set[str] = set()
    for name in sorted(os.listdir(WHEELS)):
        package, _, tags = name[: -len(".whl")].split("-", 2)
        python, abi, _ = tags.split("-")
        packages.add(package)
        if python == "py3" or python == f"cp3{number}" == abi or (abi == "abi3" and int(python[3:]) <= number):
            found[package] = name
    usable = sys.version_info >= (3, 11) and sys.implementation.name == "cpython"
    return list(found.values()) if usable and packages and packages == set(found) else None


def unpack(wheels: "list[str]") -> None:
    """Make it under another name first: two editors may start us at the same time."""
    import venv

    made = os.path.join(HERE, f"env-{os.getpid()}")
    venv.EnvBuilder(symlinks=True, with_pip=False, clear=True).create(made)
    library = os.path.join(made, "lib", f"python3.{sys.version_info[1]}", "site-packages")
    for name in wheels:
        with zipfile.ZipFile(os.path.join(WHEELS, name)) as wheel:
            wheel.extractall(library)
    env = os.path.join(HERE, "env")
    if not works(env):
        old = os.path.join(HERE, f"old-{os.getpid()}")
        if os.path.isdir(env):
            os.rename(env, old)
        with suppress(OSError):  # another process was faster
            os.rename(made, env)
        shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(made, ignore_errors=True)


def works(env: str) -> bool:
    """Whether it is there and good: who was faster than we may be running in it already."""
    python = os.path.join(env, "bin", "python")
    if not os.access(python, os.X_OK):
        return False
    command = [python, "-c", "import antiphon"]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def main() -> int:
    """The exit status."""
    wheels = fitting()
    if wheels is None:
        return 1
    if "--fits" not in sys.argv:
        unpack(wheels)
    return 0


if __name__ == "__main__":
    sys.exit(main())
