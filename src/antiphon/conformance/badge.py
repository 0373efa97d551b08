"""A badge for a README: one small picture that says how many requirements hold. Colour is never all that says it."""

from xml.sax.saxutils import escape

from antiphon.conformance.document import Document

__all__ = ["badge"]

LETTER = 6.1
"""Pixels that a letter takes, on average, at 11 pixels of Verdana: text is stretched to it, so no font is needed to know the width."""

GOOD, FAIR, BAD = "#2b7a2b", "#8a6100", "#b02a2a"
"""Dark enough for white letters."""


def badge(document: Document) -> str:
    """The picture, as SVG."""
    passed, failed = document.counts["passed"], len(document.failed())
    fatal = sum(one.level in ("must", "capability") for one in document.failed())
    name = f"ACP {document.side}"
    if not document.correct:
        verdict, colour = f"{fatal} of {passed + failed} fail", BAD
    elif failed:
        verdict, colour = f"{passed} of {passed + failed}", FAIR
    else:
        verdict, colour = f"{passed} passed", GOOD
    left, right = _width(name), _width(verdict)
    title = escape(f"{name}: {verdict}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{title}">'
        f"<title>{title}</title>"
        f'<clipPath id="round"><rect width="{left + right}" height="20" rx="3"/></clipPath>'
        f'<g clip-path="url(#round)"><rect width="{left}" height="20" fill="#444"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
        f"{_text(name, left / 2)}{_text(verdict, left + right / 2)}</g></svg>\n"
    )


def _text(text: str, middle: float) -> str:
    return f'<text x="{middle:g}" y="14" textLength="{len(text) * LETTER:g}">{escape(text)}</text>'


def _width(text: str) -> int:
    return round(len(text) * LETTER) + 12
