"""`antiphon serve`: the gateway, and the commands for one that runs; `antiphon worker`: a worker of a fleet.

command.py        the options, and the gateway itself
fleet.py          the options of a gateway in a fleet, and those that gateways and workers share
limits.py         the limits of a gateway as they are typed
worker.py         a worker of a fleet: its options, and the worker itself
fleet_command.py  `antiphon fleet`: a fleet to try, its state, draining, keys
unit.py           units for systemd
control.py        status, tokens, shares, sessions and backups of a gateway, whether it runs or not
"""
