"""What the chat shows around the session.

idle.py           garbage is collected while nothing happens
inline.py         the application below the scrollback, drawn in one write
theme.py          the colours: built-in ones, and themes of the user's own
welcome.py        the first screen
plain.py          the chat by lines, for screen readers and terminals that cannot move the cursor
notifications.py  the title of the terminal, and notifications while the user looks elsewhere
"""
