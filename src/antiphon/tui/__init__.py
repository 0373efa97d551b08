"""The chat in a terminal: prompt_toolkit for the keys, rich for the text, and no other room imports either.

What to show is decided by plain functions of the transcript; `window` alone draws and `chat` alone waits.
"""
