"""The program `antiphon`, also as `python -m antiphon`."""

import _signal  # type: ignore[import-not-found]  # `signal` itself imports much, and an interrupt meanwhile is a traceback
import os

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(
        _signal.SIGINT, lambda number, frame: os._exit(130)
    )  # before anything else: the rest is in `interrupts`

__all__ = ["main"]


def main() -> int:
    """Run the command that the arguments name, and return the exit status of this process."""
    from antiphon.cli.interrupts import INTERRUPTED, begin_loading, end_working

    begin_loading()
    try:
        from antiphon.cli.main import main as run

        status = run()
        end_working()
    except KeyboardInterrupt:  # between two lines of ours
        end_working()
        return INTERRUPTED
    return status


if __name__ == "__main__":
    raise SystemExit(main())
