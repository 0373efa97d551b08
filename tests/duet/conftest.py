"""What is there for every test of this folder that wants it: the empty world, a place with a store for the guard, and a tree."""

from tests.catalogue.programs import place
from tests.duet.directories import nothing_is_left, tree
from tests.duet.permission_requests import database, own_place, work

__all__ = ["database", "nothing_is_left", "own_place", "place", "tree", "work"]
