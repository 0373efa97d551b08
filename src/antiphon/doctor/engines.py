"""Checks of the `claude` and `codex` programs: where each is, its version, and its login. Reads no secret.

Output of a program about the account is not shown, except for words that we know.
"""

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from antiphon.catalogue.agents import version_in
from antiphon.catalogue.programs import CLAUDE, CODEX, Cli, CliMissing, FoundProgram, find_cli
from antiphon.config.reader import read
from antiphon.doctor.findings import DoctorContext, Finding, note, ok, problem
from antiphon.doctor.runner import ProgramOutput, ask
from antiphon.engines.cli_program import CliTooOld, check_version
from antiphon.engines.codex.engine import KEYS, OWN_KEY

if TYPE_CHECKING:
    from antiphon.doctor.runner import DoctorResult

__all__ = ["claude_login", "codex_config", "codex_login", "one_is_enough", "program"]

_SOURCES: Final = {"variable": "named by {0.variable}", "config": "named in the config file", "path": "on the PATH"}

_QUIET: Final = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
}
"""Variables that keep Claude Code from doing anything else while its login is read."""

_CLAUDE_WAYS: Final = {
    "claude.ai": "with a Claude subscription",
    "api_key": "with an API key",
    "api_key_helper": "with an API key",
    "oauth_token": "with a token",
    "third_party": "with a cloud provider",
}


class ClaudeLogin(msgspec.Struct, rename="camel"):
    """The part of `claude auth status` that is reported."""

    logged_in: bool
    auth_method: str = ""
    api_provider: str = ""


async def program(cli: Cli, context: DoctorContext) -> Sequence[Finding]:
    """Check where the program is, and its version. A missing one that was not named gives no finding."""
    try:
        found = find_cli(cli, context.environment)
    except CliMissing as error:
        wrong = _is_chosen(cli, context) or cli.name in context.named or context.loaded.settings.agent == cli.name
        return (problem if wrong else note)(error.sentence, error.hint)
    facts = {"path": found.path, "source": found.source}
    where = f"{found.path} ({_SOURCES.get(found.source, 'of the package {0.package}').format(cli)})"
    again = f"install it again: {cli.install}; or name another one in {cli.variable}"
    answer = await _version(found, context)
    if answer.trouble is not None:
        return problem(f"{where} does not work: {answer.trouble}", again, **facts)
    version = _version_in(cli, answer)
    if version is None:
        return problem(f"{where} does not report its version; it prints: {answer.first_line}", again, **facts)
    try:
        check_version(found, version)
    except CliTooOld as error:
        return problem(error.sentence, error.hint, version=version, **facts)
    return ok(f"{version}, {where}", version=version, **facts)


async def claude_login(context: DoctorContext) -> Sequence[Finding]:
    """Check the login of Claude Code."""
    found = await _usable(CLAUDE, context)
    if found is None:
        return []
    # At home, which is where `ask` asks: the settings of a project may name a program that gives a key, and it would be run.
    answer = await ask(
        found.path, "auth", "status", "--json", limit=context.limit, env={**context.environment, **_QUIET}
    )
    login = _login_in(answer.text)
    if login is None:
        return _silent(CLAUDE, answer, "run `claude auth status` in a terminal to see what it prints")
    if not login.logged_in:
        return problem(
            "not signed in",
            "`antiphon agent --engine claude --login` signs in, in this terminal; or set ANTHROPIC_API_KEY",
        )
    way = _CLAUDE_WAYS.get(login.auth_method, "in a way that we do not know")
    return ok(f"signed in {way}", method=login.auth_method, provider=login.api_provider)


async def codex_login(context: DoctorContext) -> Sequence[Finding]:
    """Check the login of Codex."""
    found = await _usable(CODEX, context)
    if found is None:
        return []
    answer = await ask(found.path, "login", "status", limit=context.limit, env=context.environment)
    if answer.status == 0:
        way = "with a ChatGPT account" if "ChatGPT" in answer.text else "with an API key"
        return ok(f"signed in {way}", method="chatgpt" if "ChatGPT" in answer.text else "apikey")
    if answer.trouble is not None or "Not logged in" not in answer.text:
        return _silent(CODEX, answer, "run `codex login status` in a terminal to see what it prints")
    provider = codex_config(context).get("model_provider", "openai")
    if provider != "openai":
        return note(f"not signed in; its configuration names the model provider `{provider}`, which may need no login")
    key = next((name for name in KEYS if context.environment.get(name)), None)
    if key == OWN_KEY:
        return ok(f"{key} is set, and used because there is no login", method="apikey")
    if key is not None:
        return note(f"not signed in, but {key} is set: clients can sign in with it by the method `api-key`")
    return problem(
        "not signed in",
        f"`antiphon agent --engine codex --login` signs in, in this terminal; or set {OWN_KEY}",
    )


def one_is_enough(results: "Sequence[DoctorResult]", context: DoctorContext) -> "tuple[DoctorResult, ...]":
    """Return the results with the problems of engines that are not needed as notes, where another engine works.

    An engine is needed that was asked for by name: here, as the agent, for the joint agent, or by where its program is.
    """
    found: dict[str, list[Finding]] = {}
    for result in results:
        if result.check.part == "engines":
            found.setdefault(result.check.id.split(".")[1], []).extend(result.findings)
    works = {name for name, each in found.items() if len(each) > 1 and all(one.status != "problem" for one in each)}
    settings = context.loaded.settings
    needed = {
        settings.agent,
        *(settings.duet.engines or ()),
        *(word.removeprefix("engines.").partition(".")[0] for word in context.named),
    }
    needed |= {cli.name for cli in (CLAUDE, CODEX) if _is_chosen(cli, context)}
    return tuple(
        msgspec.structs.replace(result, findings=tuple(map(_as_note, result.findings)))
        if works and result.check.part == "engines" and result.check.id.split(".")[1] not in needed
        else result
        for result in results
    )


def _as_note(finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, status="note") if finding.status == "problem" else finding


def codex_config(context: DoctorContext) -> Mapping[str, object]:
    """Return the user's Codex config; empty if it cannot be read."""
    place = Path(os.path.expanduser(context.environment.get("CODEX_HOME") or "~/.codex")) / "config.toml"
    try:
        return tomllib.loads(place.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


async def _usable(cli: Cli, context: DoctorContext) -> FoundProgram | None:
    """Return the program, if `program` reports no problem with it: no problem is reported twice."""
    try:
        found = find_cli(cli, context.environment)
    except CliMissing:
        return None
    answer = await _version(found, context)
    version = _version_in(cli, answer)
    if version is None:
        return None
    try:
        check_version(found, version)
    except CliTooOld:
        return None
    return found


async def _version(found: FoundProgram, context: DoctorContext) -> ProgramOutput:
    return await ask(found.path, "--version", limit=context.limit, env=context.environment)


def _version_in(cli: Cli, answer: ProgramOutput) -> str | None:
    """Return the version; a warning before it may contain another one."""
    if answer.status != 0:
        return None
    lines = answer.text.splitlines()
    own = [line for line in lines if cli.title in line or line.startswith(cli.program)]
    return next((version for line in (*own, *lines) if (version := version_in(line))), None)


def _is_chosen(cli: Cli, context: DoctorContext) -> bool:
    """Whether the user chose a program, which then has to exist."""
    if context.environment.get(cli.variable):
        return True
    file = context.loaded.sources.user
    return file is not None and read(file.text).text("engines", cli.name, "executable") is not None


def _login_in(output: str) -> ClaudeLogin | None:
    """Return the JSON object in the output, which may begin with a warning."""
    start = output.find("{")
    try:
        return msgspec.json.decode(output[start : output.rfind("}") + 1], type=ClaudeLogin) if start >= 0 else None
    except (msgspec.DecodeError, UnicodeError):
        return None


def _silent(cli: Cli, answer: ProgramOutput, hint: str) -> Sequence[Finding]:
    why = answer.trouble or f"it ended with {answer.status}"
    return problem(f"{cli.title} does not report whether you are signed in: {why}", hint)
