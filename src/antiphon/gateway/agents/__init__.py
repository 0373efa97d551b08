"""The agents of a gateway: their processes, the connections to them, and what this machine serves them.

Files in reading order:

    process.py   one agent: its process is started, started again after a crash, parked
    link.py      the connection to one process: raw frames, ids, blocks of updates
    usage.py     how much memory an agent and what it started have, and how many processes they are
    host.py      what an agent gets of this machine: environment, policy, files, terminals
    terminals.py the output of those terminals as clients see it
"""
