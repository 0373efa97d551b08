"""The engine that drives Codex: `codex app-server` behind ACP."""
