"""The gateway: agents of this machine for clients on a network. Sessions outlive connections, and what is shown is stored first.

Files in reading order:

    base.py   who a client is, the row of a session, and the store of rows as an interface
"""
