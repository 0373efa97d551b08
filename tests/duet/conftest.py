"""The empty world is there for every test of this folder that wants it."""

from tests.catalogue.programs import place

__all__ = ["place"]
