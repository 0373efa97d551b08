"""The page over HTTP: which file an address has, and with which headers it is sent. No file needs a token: none has a secret."""

from typing import Final

from antiphon.transports.asgi.connections import Scope, Send
from antiphon.transports.asgi.endpoint import respond
from antiphon.transports.asgi.heads import header_of
from antiphon.web.assets import PAGE_POLICY, WORKER_POLICY, PageAsset, page_assets

__all__ = ["is_page", "serve_page"]

STATIC: Final = "/static/"
FIXED: Final = frozenset({"/", "/worker.js", "/app.webmanifest"})
ICONS: Final = "/icons/"

_FOR_EVER: Final = b"max-age=31536000, immutable"
"""For an address with the hash of its content: another content has another address."""
_ASKED_AGAIN: Final = b"no-cache"
"""For an address that stays: kept, and asked about each time."""


def is_page(path: str) -> bool:
    """Whether an address belongs to the page."""
    return path in FIXED or path.startswith((STATIC, ICONS))


async def serve_page(scope: Scope, send: Send) -> None:
    """Send the file of an address. One of another version is not there: the page that wants it has to be loaded again."""
    path = scope["path"]
    if scope["method"] not in ("GET", "HEAD"):
        await respond(send, 405, "use GET", (b"allow", b"GET, HEAD"))
        return
    assets = page_assets()
    is_static = path.startswith(STATIC)
    asset = assets.hashed(path.removeprefix(STATIC)) if is_static else assets.fixed(path)
    if asset is None:
        await respond(send, 404, "there is nothing here")
        return
    headers = [(b"content-type", asset.media_type.encode()), (b"vary", b"accept-encoding")]
    if path == "/":
        headers += _page_headers()  # not kept: it names the files of this version
    else:
        headers += [(b"cache-control", _FOR_EVER if is_static else _ASKED_AGAIN), (b"etag", asset.etag.encode())]
    if path == "/worker.js":
        headers.append((b"content-security-policy", WORKER_POLICY.encode()))
    if path != "/" and header_of(scope, b"if-none-match") == asset.etag:
        await send({"type": "http.response.start", "status": 304, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        return
    await _send_asset(scope, send, asset, headers)


def _page_headers() -> list[tuple[bytes, bytes]]:
    return [
        (b"content-security-policy", PAGE_POLICY.encode()),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
    ]


async def _send_asset(scope: Scope, send: Send, asset: PageAsset, headers: list[tuple[bytes, bytes]]) -> None:
    body = asset.packed if "gzip" in _encodings(scope) else None
    if body is not None:
        headers.append((b"content-encoding", b"gzip"))
    else:
        body = asset.body
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


def _encodings(scope: Scope) -> set[str]:
    """The encodings that a client takes; one with the weight 0 is one that it does not take."""
    found = set()
    for part in header_of(scope, b"accept-encoding").lower().split(","):
        name, _, weight = part.partition(";")
        if weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            found.add(name.strip())
    return found
