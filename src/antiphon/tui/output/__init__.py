"""What the chat shows of outputs, whole or in part: changes, links, the pager.

Everything here is painted as lines; only the pager needs the terminal.

    diff.py          a change of a file: line numbers, highlighted code, marked words
    images.py        images, where the terminal can show them
    links.py         paths and addresses that can be clicked
    markdown.py      Markdown with task boxes and links
    pager.py         the user's pager
    session_diff.py  what the turns of a session changed in files, from snapshots
    unfold.py        the whole of what is shown in part
"""
