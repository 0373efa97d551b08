"""What a client has to keep."""
