"""Commands for developers of agents and clients.

check.py      `antiphon check` and `antiphon check-client`: their arguments
check_run.py  runs a check, shows its progress and writes its reports
record.py     `antiphon record`
inspect.py    `antiphon inspect`
replay.py     `antiphon replay`
bridge.py     `antiphon bridge`
"""
