"""The `antiphon` program. One small file per command; a command imports its rooms when it runs, not before."""
