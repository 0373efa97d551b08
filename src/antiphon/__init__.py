"""Antiphon: the Agent Client Protocol for Python.

Importing the package loads nothing else: an editor starts us every time, so each room is imported by whoever needs it.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
