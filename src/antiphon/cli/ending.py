"""How a command of ours ends: its status, whatever happens in it."""

import os
import sys
from collections.abc import Callable

from antiphon.cli.arguments import Misused
from antiphon.cli.saying import FAILED, MISUSED, fail
from antiphon.cli.screen import plain
from antiphon.errors import AcpError

__all__ = ["ended"]


def ended(do: Callable[[], int], help_hint: str) -> int:
    """Do it: its status, or that of how it failed, with a sentence and a hint."""
    try:
        status = do()
        sys.stdout.flush()
        return status
    except SystemExit as end:  # --help
        return int(end.code or 0)
    except (Misused, AcpError) as error:
        sentence, _, hint = plain(str(error)).partition("\nhint: ")
        return fail(sentence, hint or help_hint, MISUSED if isinstance(error, Misused) else FAILED)
    except BrokenPipeError:  # `… | head`: who reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
