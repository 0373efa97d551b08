"""Agents, servers and clients on a network: how they are reached, and what is seen of their HTTP and WebSocket traffic.

Modules in reading order:

    agents.py          agents at an address, where they work, and the scenarios that make no sense with them
    raw_http.py        HTTP/1.1 byte by byte, and streams of events
    raw_websocket.py   WebSocket frames byte by byte
    play.py            how scenarios are played, and the verdicts on what one did not come to
    server_run.py      what a scenario for servers is given: connections over either profile
    server_check.py    plays the scenarios for servers
    judge.py           a server for clients, byte by byte, that does what a scenario wants
    client_check.py    plays the scenarios for clients
"""
