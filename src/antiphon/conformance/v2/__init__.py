"""What scenarios of version 2 are given.

agent_run.py   requests to an agent of version 2, its states and what was seen
client_run.py  a stand-in agent of version 2, prompts of a client, and what was seen
"""
