"""Stored sessions of the joint agent: found, searched, and written as Markdown, JSON or one HTML page.

stored.py    finds a stored session by the beginning of its id, and searches in all
session.py   the transcript of a stored session: its history folded into entries
content.py   the parts of a message or call that every format shows
markdown.py  a session as Markdown
json.py      a session as one JSON object
html.py      a session as one HTML page
"""
