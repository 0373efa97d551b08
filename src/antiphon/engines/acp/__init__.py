"""Any ACP agent as an engine: a program that speaks the protocol is passed through, with a session of ours before each of its own."""
