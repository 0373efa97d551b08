"""Moving frames from here to there. Knows bytes, file descriptors and processes; knows no protocol."""

import sys

from antiphon.errors import UnsupportedPlatform

if sys.platform == "win32":  # here, before any room below crashes on what Windows does not have
    raise UnsupportedPlatform("Antiphon does not run on Windows yet", hint="use WSL, which is Linux")
