"""`antiphon serve`: the gateway, and the commands for one that runs; `antiphon worker`: a worker of a fleet.

command.py   the options, and the gateway itself
limits.py    the limits of a gateway as they are typed
worker.py    a worker of a fleet: its options, and the worker itself
control.py   status, tokens, shares, sessions and backups of a gateway, whether it runs or not
"""
