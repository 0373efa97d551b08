"""What is there for every test of this folder that wants it: the empty world, and a place with a store for the guard."""

from tests.catalogue.programs import place
from tests.duet.guarding import database, own_place, work

__all__ = ["database", "own_place", "place", "work"]
