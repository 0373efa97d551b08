"""Whether the address of a model answers. Only if the user asks: it is the one part of the doctor that uses a network. Sends no key."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec

from antiphon.catalogue.programs import CLAUDE, CODEX, CliMissing, find_cli
from antiphon.doctor.engines import codex_config
from antiphon.doctor.findings import DoctorContext, Finding, note, ok, problem
from antiphon.doctor.runner import ask, in_thread

if TYPE_CHECKING:
    from urllib.request import Request

__all__ = ["claude", "codex"]

ANTHROPIC: Final = "https://api.anthropic.com"
OPENAI: Final = "https://api.openai.com/v1"
CHATGPT: Final = "https://chatgpt.com/backend-api/codex"

_CLOUDS: Final = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")


async def claude(ward: DoctorContext) -> Sequence[Finding]:
    """The address that Claude Code would ask."""
    try:
        find_cli(CLAUDE, ward.environment)
    except CliMissing:
        return []
    cloud = next((name for name in _CLOUDS if ward.environment.get(name)), None)
    if cloud is not None:
        return note(f"not tried: {cloud} is set, so the model is at a cloud provider")
    address = ward.environment.get("ANTHROPIC_BASE_URL") or _claude_setting(ward) or ANTHROPIC
    return await _reach(address, ward)


async def codex(ward: DoctorContext) -> Sequence[Finding]:
    """The address that Codex would ask."""
    try:
        found = find_cli(CODEX, ward.environment)
    except CliMissing:
        return []
    config = codex_config(ward)
    provider = config.get("model_provider", "openai")
    if provider != "openai":
        table: Any = config.get("model_providers")
        entry = table.get(provider) if isinstance(table, dict) else None
        address = entry.get("base_url") if isinstance(entry, dict) else None
        if not isinstance(address, str):
            return note(f"not tried: the configuration does not say where the provider `{provider}` is")
        return await _reach(address, ward)
    if isinstance(address := config.get("openai_base_url"), str):
        return await _reach(address, ward)
    answer = await ask(found.path, "login", "status", limit=ward.limit, env=ward.environment)
    return await _reach(CHATGPT if "ChatGPT" in answer.said else OPENAI, ward)


async def _reach(address: str, ward: DoctorContext) -> Sequence[Finding]:
    """Any answer will do: without a key it is a refusal."""
    shown = _shown(address)
    if shown is None:
        return problem("what is to be the model's address is none", "correct it; it begins with https:// or http://")
    began = time.monotonic()
    try:
        status = await in_thread(lambda: _knock(address, ward.limit))
    except OSError as error:
        why = getattr(error, "reason", error)
        return problem(
            f"{shown} cannot be reached: {why}",
            "check the connection, the address and the proxies of the environment",
            address=shown,
        )
    seconds = f"{time.monotonic() - began:.1f}"
    facts = {"address": shown, "status": str(status), "seconds": seconds}
    if status >= 500:
        return note(f"{shown} answered after {seconds} s, with the error {status}", "try again later", **facts)
    return ok(f"{shown} answered after {seconds} s", **facts)


def _knock(address: str, limit: float) -> int:
    """The status of an answer. It blocks."""
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

    class Stay(HTTPRedirectHandler):
        """An answer that leads elsewhere is an answer."""

        def redirect_request(self, *_: object, **__: object) -> "Request | None":
            return None

    host = urlsplit(address).hostname or ""
    around = [ProxyHandler({})] if host in ("localhost", "127.0.0.1", "::1") else []
    request = Request(address, method="HEAD", headers={"User-Agent": "antiphon"})  # noqa: S310 - checked before
    try:
        with build_opener(Stay(), *around).open(request, timeout=limit) as answer:
            return int(answer.status)
    except HTTPError as error:
        error.close()
        return error.code


def _shown(address: str) -> str | None:
    """An address without what may be secret; None if it is none."""
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.scheme in ("http", "https") and parts.hostname else None


def _claude_setting(ward: DoctorContext) -> str | None:
    """The address in the user's settings of Claude Code."""
    folder = ward.environment.get("CLAUDE_CONFIG_DIR") or str(Path.home() / ".claude")
    try:
        settings = msgspec.json.decode((Path(folder) / "settings.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
    env = settings.get("env") if isinstance(settings, dict) else None
    address = env.get("ANTHROPIC_BASE_URL") if isinstance(env, dict) else None
    return address if isinstance(address, str) else None
