"""Settings, and where files are on this machine. Reads only.

directories.py    the directories for settings and state, made for the user alone
shapes.py         settings as plain values, and the clients of our own
reader.py         finds and reads one config file, key by key, with line numbers
settings.py       the settings in a directory: the user's file and a trusted project's, merged
edits.py          adds an agent to a config file or removes one, as text
environment.py    the environment for programs that we start: no keys of others
project_files.py  the files of a project that engines read, and their digests
"""
