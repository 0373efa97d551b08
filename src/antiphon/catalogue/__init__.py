"""Agents that can be started: known ones, the user's own, and those of a registry. Starts no program.

known.py          agents and engines that we know by name
agents.py         finds an agent by name, and asks programs for their versions
programs.py       finds the `claude` and `codex` programs
registry.py       the format of the official registry
registry_copy.py  reads a registry from a file or address, and keeps a copy
"""
