"""The editors that `antiphon setup` configures.

known.py    each editor: where its settings are, and what is put there
jsonc.py    JSON with comments: entries put in and taken out, every other byte kept
records.py  what setup changed, so that it can be undone
"""
