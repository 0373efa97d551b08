"""The files and commands of this machine, as both SDKs offer them to the peer. Knows nothing of ACP.

roots.py     the directories that may be used, opened without following links out of them
files.py     text files, read in parts and written whole
commands.py  a command: started, read, and killed with everything it started
problems.py  what can be wrong with a file, one error type each
"""
