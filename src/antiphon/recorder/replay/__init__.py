"""Recordings played again as a stand-in for either side."""
