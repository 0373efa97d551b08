"""The messages of ACP as typed values. Knows no sockets, no event loop and no JSON-RPC envelope.

Files in reading order:

    base.py       what every message has: names of fields, `_meta`, unknown kinds, marks of leniency
    words.py      words of a fixed list, of which a peer may send others
    methods.py    a method with its types; how params and results are read
    timeouts.py   the named timeouts that methods have
    version.py    what a connection has to know of a version, and which one two peers speak
    exchange.py   what goes into a translator between versions and comes out of it
    extension.py  what our SDKs and the translators exchange that version 1 does not have
    dialects.py   rules that turn a dialect into the words of the schema
    salvage.py    a second try for a message that the strict decoder refused
    v1/           version 1
    v2/           version 2
    translate/    translation between the versions
"""
