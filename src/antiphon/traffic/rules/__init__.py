"""The rules, a module for each part of the protocol. Loading this package registers them all."""

from antiphon.traffic.rules import schema

__all__ = ["schema"]
