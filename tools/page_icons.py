"""Make the icons of the page: the mark as SVG, and as PNG for systems that install the page as an app.

    python tools/page_icons.py

The PNG files are drawn by the Chromium of this machine, and kept in the tree: a wheel needs no browser. The mark is two voices that
answer each other, as arcs around one point; `src/antiphon/web/static/js/view/icons.js` draws the same in the colours of the theme.
"""

import shutil
import sys
from pathlib import Path
from typing import Final

ICONS: Final = Path(__file__).parent.parent / "src/antiphon/web/static/icons"
"""Where the page has them."""

GROUND, FIRST, SECOND = "#1d1c3a", "#a5a6ff", "#f0b265"
"""The colours: those of the mark on a dark page."""

ARCS: Final = (
    (FIRST, "M13.5 5.6a10.8 10.8 0 0 0 0 20.8M13.2 11a5.4 5.4 0 0 0 0 10"),
    (SECOND, "M18.5 5.6a10.8 10.8 0 0 1 0 20.8M18.8 11a5.4 5.4 0 0 1 0 10"),
)
"""The mark on a grid of 32."""

FILES: Final = {"icon-192.png": (192, 0.0), "icon-512.png": (512, 0.0), "icon-maskable-512.png": (512, 1.0)}
"""PNG files: their size, and whether the system cuts a shape of its own out of them (1) or not (0)."""


def drawing(maskable: float = 0.0) -> str:
    """Return the icon as SVG. One that is cut has no corners of its own, and keeps the mark inside of the part that is always seen."""
    corner = 0 if maskable else 7
    scale = 0.62 if maskable else 0.74
    place = 16 - 16 * scale
    arcs = "".join(f'<path d="{path}" stroke="{colour}"/>' for colour, path in ARCS)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">'
        f'<rect width="32" height="32" rx="{corner}" fill="{GROUND}"/>'
        f'<g transform="translate({place:g} {place:g}) scale({scale:g})" fill="none" stroke-width="3" stroke-linecap="round">'
        f"{arcs}</g></svg>\n"
    )


def main() -> int:
    """Write all icons."""
    from playwright.sync_api import sync_playwright

    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        print("error: there is no Chromium here\nhint: Debian: apt-get install chromium", file=sys.stderr)
        return 1
    (ICONS / "icon.svg").write_text(drawing(), encoding="utf-8")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        for name, (size, maskable) in FILES.items():
            page = browser.new_page(viewport={"width": size, "height": size})
            page.set_content(f"<style>*{{margin:0}}svg{{display:block;width:{size}px}}</style>{drawing(maskable)}")
            page.screenshot(path=ICONS / name, omit_background=True)
        browser.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
