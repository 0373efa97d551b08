"""`antiphon serve`: the gateway, and the commands for one that runs.

command.py   the options, and the gateway itself
limits.py    the limits of a gateway as they are typed
control.py   status, tokens, shares, sessions and backups of a gateway, whether it runs or not
"""
