"""The worker of a fleet: a hub without sockets, whose journal and rows are on the broker and whose clients come over it.

Files in reading order:

    place.py       what the hub of a worker knows of its machine: its name, its roots, its shared workspaces
    summaries.py   which sessions run or wait, for the lists of gateways
    usage.py       what each token uses at all workers together: its limits are those of the fleet
    orphans.py     the sessions of workers that are gone: which of them this worker takes
    isolation.py   agents are stopped while other workers may believe that this one is gone
    worker.py      one worker, from its start to its end
    program.py     the worker as a program: its data, the broker, and the signals that end it
"""
