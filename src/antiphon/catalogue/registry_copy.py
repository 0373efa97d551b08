"""A registry from a file or an address that the user gave, and the copy of it that we keep. Nothing is fetched unasked."""

import ipaddress
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from antiphon.catalogue.registry import Registry, RegistryProblem, read
from antiphon.config.directories import make_private_file, state_dir

if TYPE_CHECKING:
    from http.client import HTTPMessage
    from urllib.request import OpenerDirector, Request

__all__ = ["MAX_REGISTRY", "KeptRegistry", "cache_file", "fetch", "forget", "keep", "kept"]

MAX_REGISTRY: Final = 8 * 1024 * 1024
"""Bytes of a registry. The official one has a few hundred kilobytes."""

FETCH_LIMIT: Final = 30.0
"""Seconds for the whole of it."""

QUIET_LIMIT: Final = 10.0
"""Seconds in which nothing comes."""

MAX_REDIRECTS: Final = 5


class KeptRegistry(msgspec.Struct, frozen=True, rename="camel"):
    """The stored copy of a registry, with its source and time."""

    source: str
    read_at: str
    registry: msgspec.Raw

    def read(self) -> Registry:
        """Return its agents."""
        return read(bytes(self.registry))


def cache_file() -> Path:
    """Return the path of the copy."""
    return state_dir() / "registry.json"


def fetch(source: str) -> bytes:
    """Read a registry from a file or an address: https, or http on this machine.

    Raises:
        RegistryProblem: it cannot be read or downloaded.
    """
    return _from_url(source) if "://" in source else _from_file(Path(source).expanduser())


def keep(source: str, data: bytes) -> Registry:
    """Store a copy of a registry; it replaces an earlier one.

    Raises:
        RegistryProblem: the text is not a registry; an earlier copy stays.
    """
    from antiphon.local.files import write_text

    registry = read(data)
    shown = _shown(source) if "://" in source else os.path.abspath(os.path.expanduser(source))
    copy = KeptRegistry(shown, datetime.now(UTC).isoformat(timespec="seconds"), msgspec.Raw(data.strip()))
    path = cache_file()
    make_private_file(path)
    write_text(path, msgspec.json.encode(copy).decode())
    return registry


def kept() -> KeptRegistry | None:
    """Return the copy, if there is one.

    Raises:
        RegistryProblem: it is damaged.
    """
    try:
        with open(cache_file(), "rb") as file:
            data = _up_to_the_limit(file.read, 2 * MAX_REGISTRY)
        copy = msgspec.json.decode(data, type=KeptRegistry)
        copy.read()
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, RegistryProblem) as error:
        raise RegistryProblem(
            f"the copy of the registry in `{cache_file()}` cannot be read: {str(error).partition(chr(10))[0]}",
            hint="`antiphon agents registry FILE|URL` makes a new one, `antiphon agents registry --forget` removes it",
        ) from error
    return copy


def forget() -> bool:
    """Remove the copy. False: there was none."""
    try:
        cache_file().unlink()
    except FileNotFoundError:
        return False
    return True


def _from_file(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise RegistryProblem(f"`{path}` is not a file", hint="give a registry.json, or its address")
        with path.open("rb") as file:
            return _up_to_the_limit(file.read)
    except OSError as error:
        raise RegistryProblem(
            f"`{path}` cannot be read: {error.strerror}", hint="give a registry.json, or its address"
        ) from error


def _from_url(url: str) -> bytes:
    """Download in a thread, so that a slow server cannot block for ever."""
    _check(url)
    outcome: list[bytes | Exception] = []

    def work() -> None:
        try:
            outcome.append(_get(url))
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=work, name="fetch a registry", daemon=True)
    thread.start()
    thread.join(FETCH_LIMIT)
    result = outcome[0] if outcome else TimeoutError(f"it took more than {FETCH_LIMIT:g} seconds")
    if isinstance(result, bytes):
        return result
    if isinstance(result, RegistryProblem):
        raise result
    raise RegistryProblem(
        f"`{_shown(url)}` cannot be fetched: {result}", hint="check the address, or download it and give the file"
    ) from result


def _get(url: str) -> bytes:
    from urllib.error import HTTPError

    request, opener = _request(url)
    try:
        with opener.open(request, timeout=QUIET_LIMIT) as answer:
            return _up_to_the_limit(answer.read)
    except HTTPError as error:
        error.close()  # it holds the connection
        raise


def _request(url: str) -> "tuple[Request, OpenerDirector]":
    from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

    class CheckedRedirects(HTTPRedirectHandler):
        """Follows redirects only to addresses that are allowed themselves."""

        max_redirections = MAX_REDIRECTS

        def redirect_request(
            self, req: Request, fp: IO[bytes], code: int, msg: str, headers: "HTTPMessage", newurl: str
        ) -> Request | None:
            try:
                _check(newurl)
                if req.type == "https" and not newurl.lower().startswith("https:"):
                    raise RegistryProblem(
                        f"`{_shown(newurl)}` is not fetched: an https:// address redirected to it", hint="give a file"
                    )
            except RegistryProblem:
                fp.close()
                raise
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    handlers = [CheckedRedirects(), *([ProxyHandler({})] if _is_here(url) else [])]
    return Request(url, headers={"User-Agent": "antiphon", "Accept": "application/json"}), build_opener(*handlers)  # noqa: S310 - checked


def _check(url: str) -> None:
    """Raise RegistryProblem if an address is not https, or http on this machine."""
    try:
        parts = urlsplit(url)
        allowed = parts.scheme == "https" or (parts.scheme == "http" and _is_here(url))
        secret = parts.username is not None or parts.password is not None
    except ValueError:
        allowed = secret = False
    if secret:
        raise RegistryProblem(f"`{_shown(url)}` is not fetched with a password", hint="download it and give the file")
    if not allowed or not url.isprintable() or " " in url:
        raise RegistryProblem(
            f"`{_shown(url)}` is not fetched: only https:// addresses are, and http:// on this machine",
            hint="give an https:// address, or a file",
        )


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _shown(url: str) -> str:
    """Return an address without user, password and query, which may be secret."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "that address"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _up_to_the_limit(take: Callable[[int], bytes], limit: int = MAX_REGISTRY) -> bytes:
    data = bytearray()
    while len(data) <= limit and (chunk := take(64 * 1024)):
        data += chunk
    if len(data) > limit:
        raise RegistryProblem(f"it is larger than {limit >> 20} MiB", hint="give a registry of agents")
    return bytes(data)
