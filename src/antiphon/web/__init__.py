"""The page: what a browser gets from a gateway. Its scripts and styles are files in `static/`, served without their comments.

Files in reading order:

    assets.py     the files of the page: names, content types, compression, and the hash that is in their addresses
    comments.py   scripts and styles without comments and indentation
"""
