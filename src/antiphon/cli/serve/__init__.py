"""`antiphon serve`: the gateway, and the commands for one that runs.

command.py   the options, and the gateway itself
control.py   status, tokens, shares, sessions and backups of a gateway, whether it runs or not
"""
