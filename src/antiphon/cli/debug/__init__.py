"""Commands for developers of agents and clients: check, check-client, record, inspect, replay."""
