"""The scenarios, a module for each chapter of the specification.

Modules in reading order:

    agent/           scenarios for agents
    agent_v2/        scenarios for agents of version 2
    client/          scenarios for clients
    client_v2/       scenarios for clients of version 2
    server/          scenarios for servers of the remote profiles
    remote_client/   scenarios for clients of the remote profiles
"""
