"""A session folded for display, and how its parts are presented: pure data, shared by every screen and every export."""
