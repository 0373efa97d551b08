"""The editors that `antiphon setup` configures: where their settings are, and how they are changed and restored."""
