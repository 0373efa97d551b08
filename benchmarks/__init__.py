"""Measures antiphon against the official SDKs. Knows processes and clocks; the library itself never imports this."""
