"""How directories looked, and how they are brought back. Knows neither agents nor sessions.

A review needs the difference of two looks as a patch, and has git make it. An undo needs every byte, also of files that git does not
know or would convert, and keeps the bytes itself.

    git.py       a tree remembered with git in a second repository, what changed since as a patch, and how git is run
    entries.py   what stands in a directory, as data, and the differences of two looks
    walk.py      one look at a directory: what is there, and what git's own index knows of it
    store.py     snapshots on the disk, with the bytes of files, within limits
    plan.py      what has to be done to bring files back, and what changed since
    restore.py   the plan carried out, each file at once or not at all, and what an interruption leaves
"""
