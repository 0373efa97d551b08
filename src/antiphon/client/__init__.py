"""For people who write clients: connect to an agent, hold sessions, follow turns, show them. Never imports `agent`."""
