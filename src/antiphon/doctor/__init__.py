"""Diagnosis of this machine, the engines, the agents and the editors: what is wrong, and what to do.

checks.py         the table of all checks, and the context that they read
runner.py         runs checks side by side, each with a limit
findings.py       what a check is, and what it finds
install.py        Python, the system, how Antiphon was installed, its extras
configuration.py  config files, and variables of the environment
state.py          the state directory and its database
engines.py        Claude Code and Codex: program, version, sign-in
agents.py         other agents: whether they are installed, and whether they start
editors.py        editors whose settings mention Antiphon
network.py        whether the address of a model answers; only with `--network`
"""
