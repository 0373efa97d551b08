"""`python -m antiphon`: the same program as the `antiphon` script."""

from antiphon.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
