"""Checks whether the address of a model responds. Only with `--network`; sends no key."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final
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


async def claude(context: DoctorContext) -> Sequence[Finding]:
    """Check the address that Claude Code uses."""
    try:
        find_cli(CLAUDE, context.environment)
    except CliMissing:
        return []
    cloud = next((name for name in _CLOUDS if context.environment.get(name)), None)
    if cloud is not None:
        return note(f"not tried: {cloud} is set, so the model is at a cloud provider")
    address = context.environment.get("ANTHROPIC_BASE_URL") or _claude_setting(context) or ANTHROPIC
    return await _reach(address, context)


async def codex(context: DoctorContext) -> Sequence[Finding]:
    """Check the address that Codex uses."""
    try:
        found = find_cli(CODEX, context.environment)
    except CliMissing:
        return []
    config = codex_config(context)
    provider = config.get("model_provider", "openai")
    if provider != "openai":
        table = config.get("model_providers")
        entry = table.get(provider) if isinstance(table, dict) else None
        address = entry.get("base_url") if isinstance(entry, dict) else None
        if not isinstance(address, str):
            return note(f"not tried: the configuration has no address for the provider `{provider}`")
        return await _reach(address, context)
    if isinstance(address := config.get("openai_base_url"), str):
        return await _reach(address, context)
    answer = await ask(found.path, "login", "status", limit=context.limit, env=context.environment)
    return await _reach(CHATGPT if "ChatGPT" in answer.text else OPENAI, context)


async def _reach(address: str, context: DoctorContext) -> Sequence[Finding]:
    """Connect to an address. Any response counts: without a key it is a refusal."""
    shown = _shown(address)
    if shown is None:
        return problem("the model's address is not a URL", "correct it; it begins with https:// or http://")
    began = time.monotonic()
    try:
        status = await in_thread(lambda: _connect(address, context.limit))
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


def _connect(address: str, limit: float) -> int:
    """Return the status of the response. Blocks."""
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

    class Stay(HTTPRedirectHandler):
        """Follows no redirects: a redirect is a response."""

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
    """Return an address without secrets; None if it is not valid."""
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return None
    return f"{parts.scheme}://{parts.hostname}{port}" if parts.scheme in ("http", "https") and parts.hostname else None


def _claude_setting(context: DoctorContext) -> str | None:
    """Return the address in the user's settings of Claude Code."""
    folder = context.environment.get("CLAUDE_CONFIG_DIR") or str(Path.home() / ".claude")
    try:
        settings = msgspec.json.decode((Path(folder) / "settings.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
    env = settings.get("env") if isinstance(settings, dict) else None
    address = env.get("ANTHROPIC_BASE_URL") if isinstance(env, dict) else None
    return address if isinstance(address, str) else None
