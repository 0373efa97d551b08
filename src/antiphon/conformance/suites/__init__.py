"""The scenarios, a module for each chapter of the specification.

Modules in reading order:

    agent/           scenarios for agents
    client/          scenarios for clients
    server/          scenarios for servers of the remote profiles
    remote_client/   scenarios for clients of the remote profiles
"""
