"""For people who write agents: an agent, its sessions, a turn with verbs, tool calls. Never imports `client`."""
