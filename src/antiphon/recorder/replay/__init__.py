"""Recordings replayed as a stand-in for either side.

Modules in reading order:

    script.py       a recording as a script for one side, and the ids and paths that differ from run to run
    comparison.py   whether a message is the recorded one, and where it differs
    agent.py        the players of the agent's side, strict and tolerant, and serving one on stdio
    client.py       the player of the client's side, against an agent that it starts
"""
