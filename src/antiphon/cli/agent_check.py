"""A handshake with one agent, and what it says it can do, in words."""

import asyncio
import sys
from collections.abc import Sequence

import msgspec

from antiphon.catalogue.finding import Found, start_of
from antiphon.cli.grammar import shown_time
from antiphon.client.agent import ConnectedAgent
from antiphon.client.connect import connect
from antiphon.client.link import VERSION, Retry
from antiphon.config.settings import Settings
from antiphon.errors import AcpError, sentence_and_hint
from antiphon.protocol import v1
from antiphon.text import one_line

__all__ = ["check", "in_words"]


class Method(msgspec.Struct, frozen=True):
    """A way to sign in, as `--json` prints it."""

    id: str
    name: str


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """What `--json` prints."""

    agent: str
    name: str
    version: str | None
    protocol_version: int
    command: tuple[str, ...]
    capabilities: v1.AgentCapabilities
    auth_methods: list[Method]


async def check(name: str, settings: Settings, *, limit: float, as_json: bool) -> int:
    """Start the agent, let it introduce itself, end it."""
    found = start_of(name, settings)
    env = found.environment()
    try:
        async with (
            asyncio.timeout(limit),
            connect(found.command, cwd=found.cwd, env=env, files=None, retry=Retry(delays=())) as agent,
        ):
            report = _report(found, agent)
    except TimeoutError:
        raise AcpError(
            f"`{name}` did not answer within {shown_time(limit)}",
            hint=f"check that `{found.shown}` speaks ACP on stdin and stdout, or give it more time with --timeout",
        ) from None
    except AcpError as error:
        sentence, hint = sentence_and_hint(error)
        raise AcpError(f"`{name}` cannot be used: {sentence}", hint=f"{hint or _what_to_do(found)}") from error
    text = msgspec.json.encode(report).decode() if as_json else _text(report, found)
    sys.stdout.write(f"{text}\n")
    return 0


def in_words(capabilities: v1.AgentCapabilities) -> dict[str, list[str]]:
    """What an agent said that it can do: subject → words. What every agent does is among them."""
    prompt, mcp, session = (
        capabilities.prompt_capabilities,
        capabilities.mcp_capabilities,
        capabilities.session_capabilities,
    )
    offers: dict[str, dict[str, object]] = {
        "prompts": {
            "text": True,
            "links": True,
            "images": prompt.image,
            "sound": prompt.audio,
            "embedded files": prompt.embedded_context,
        },
        "sessions": {
            "new": True,
            "load": capabilities.load_session,
            "resume": session.resume,
            "fork": session.fork,
            "list": session.list,
            "close": session.close,
            "delete": session.delete,
            "more directories": session.additional_directories,
        },
        "MCP servers": {"programs": True, "http": mcp.http, "sse": mcp.sse, "over ACP": mcp.acp},
        "account": {"sign out": capabilities.auth.logout},
    }
    # An empty object is a promise too, so it is not enough to look whether it is true.
    return {
        subject: [word for word, offered in words.items() if offered is not None and offered is not False]
        for subject, words in offers.items()
    }


def _report(found: Found, agent: ConnectedAgent) -> Report:
    info = agent.info
    return Report(
        found.name,
        agent.name if info is not None else found.title,
        info.version if info is not None else None,
        VERSION,
        found.command,
        agent.capabilities,
        _methods(agent.auth_methods),
    )


def _methods(methods: Sequence[v1.AuthMethod]) -> list[Method]:
    return [
        Method(str(getattr(method, "id", "?")), str(getattr(method, "name", "a way that we do not know")))
        for method in methods
    ]


def _text(report: Report, found: Found) -> str:
    lines = {
        "name": report.name,
        "version": report.version or "not told",
        "protocol": f"version {report.protocol_version}",
        "command": found.shown,
    }
    lines |= {subject: ", ".join(words) or "-" for subject, words in in_words(report.capabilities).items()}
    lines["sign-in"] = ", ".join(f"{method.id} ({method.name})" for method in report.auth_methods) or "-"
    width = max(map(len, lines))
    shown = [f"{subject.ljust(width)}  {one_line(words)}" for subject, words in lines.items()]
    if report.auth_methods and found.login:
        shown.append(f"{'to sign in'.ljust(width)}  {found.login}")
    return "\n".join(shown)


def _what_to_do(found: Found) -> str:
    start = f"try `{one_line(found.shown)}` by hand: it has to speak ACP on stdin and stdout"
    return f"{start}; to sign in, {found.login}" if found.login else start
