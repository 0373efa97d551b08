"""What is stored of a session on the broker: how it is written as bytes, stored for certain, read again and copied.

Files in reading order:

    formats.py   the subjects of a session; runs of events, the row and the record of the owner as messages
    appends.py   store a message and try again until it is known whether it is stored
    queue.py     what waits to be stored in one session under one lease: one message at a time, in order
    history.py   read the events of a session from any number on
    replica.py   the copy of all rows in the tables of a gateway
"""
