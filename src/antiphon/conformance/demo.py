"""The words that make our demo agent do what each purpose wants."""

from typing import Final

from antiphon.conformance.prompts import Prompts

__all__ = ["AUTH", "DEMO"]

AUTH: Final = "demo"
"""How to sign in: it always works."""

DEMO: Final = Prompts(
    {
        "say": "/think about it",
        "long": "/slow 1000",
        "many": "/many 50",
        "read": "/read {file}",
        "write": "/edit {file} {text}",
        "run": "/run {command}",
        "long_run": "/run {command}",
        "ask": "/permission",
        "plan": "/plan",
        "think": "/think hard",
        "form": "/ask",
        "visit": "/visit",
    }
)
