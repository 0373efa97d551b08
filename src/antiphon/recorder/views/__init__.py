"""What `antiphon inspect` prints of a recording, as lines for people. Pure, except for the file that is followed.

Modules in reading order:

    style.py      width, colours and characters of the terminal
    filters.py    which messages were asked for
    overview.py   the overview, and the turns with their times as bars
    diagram.py    the sequence diagram, also of a recording that is still being written
"""
