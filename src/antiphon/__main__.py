"""The program `antiphon`, also as `python -m antiphon`."""

from antiphon.cli.interrupts import INTERRUPTED, begin_loading, end_working

__all__ = ["main"]

begin_loading()


def main() -> int:
    """Run the command that the arguments name, and return the exit status of this process."""
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
