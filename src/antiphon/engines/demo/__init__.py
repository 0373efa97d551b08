"""An agent without a model: deterministic, offline, and at home in every part of the protocol."""
