"""Recordings of conversations: made by a tap, cleared of secrets, looked at, and played again as a stand-in for either side."""
