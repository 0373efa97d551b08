"""The scenarios, for agents and for clients: a module for each part of the protocol."""
