"""Who is let into a fleet, whichever gateway they come to, and what is written down about it.

Files in reading order:

    records.py   what is stored of tokens, their names and launch codes
    names.py     names that no two tokens of a fleet have
    tokens.py    tokens, shares, browsers and launch codes that all gateways share
    audit.py     what workers have to add to the audit log of a gateway
"""
