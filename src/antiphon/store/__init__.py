"""What outlives a process, in SQLite. Knows no handlers of ACP."""
