"""Signing in and out. What needs an account is only done if the user has named a method that may be used."""

from typing import Final

from antiphon.conformance.agent_run import AUTH_REQUIRED, AgentRun
from antiphon.conformance.requirements import NotOffered, NotSeen, capability, should
from antiphon.conformance.suites.agent.suite import SUITE

__all__: list[str] = []

UNNAMED: Final = "no method was named that may be used: `--auth METHOD` names one"


def _methods(run: AgentRun) -> list[object]:
    found = run.initialized.get("authMethods") if run.initialized else None
    return found if isinstance(found, list) else []


@SUITE.scenario(
    "signing-in-by-an-unknown-method",
    "a client signs in by a method that the agent does not offer",
    provokes=True,
    shows=(
        capability(
            "auth.unknown",
            "Signing in by a method that the agent does not offer is refused.",
            link="authentication",
            fix="Answer `authenticate` with -32602 where you do not know the method.",
        ),
        should(
            "auth.session",
            "A user who is not signed in gets a session, or the error -32000.",
            link="authentication",
            fix="Answer `session/new` with the error -32000 where the user has to sign in first.",
        ),
    ),
)
async def unknown(run: AgentRun) -> None:
    offered = bool(_methods(run))
    response = await run.request("authenticate", {"methodId": "antiphon-check-nothing"})
    if offered:
        run.holds("auth.unknown", response.error is not None, "it was answered with a result", response)
    opened = await run.request("session/new", {"cwd": str(run.cwd), "mcpServers": []})
    asks_login = opened.error is None or opened.code == AUTH_REQUIRED
    run.holds("auth.session", asks_login, f"the code is {opened.code}", opened)
    if not offered:
        raise NotOffered("the agent offers no method to sign in by")


@SUITE.scenario(
    "signing-in",
    "a client signs in by the given method, and out again",
    shows=(
        capability(
            "auth.signs-in",
            "Signing in by a method that the agent offers works, and opens sessions.",
            link="authentication",
            fix="Answer `authenticate` with a result when it is done, and `session/new` with a session from then on.",
        ),
        capability(
            "auth.logout",
            "Signing out is answered with a result.",
            link="authentication#logging-out",
            fix="Answer `logout` with an empty object, or do not offer `auth.logout`.",
        ),
        capability(
            "auth.after-logout",
            "After signing out `session/new` requires a login, or works without.",
            link="authentication#logging-out",
            fix="Answer `session/new` with the error -32000 after `logout`.",
            needs=("auth.logout",),
        ),
        capability(
            "auth.back",
            "After signing out one can sign in again.",
            link="authentication",
            fix="Let `authenticate` undo what `logout` did.",
        ),
    ),
)
async def signing_in(run: AgentRun) -> None:
    if not _methods(run):
        raise NotOffered("the agent offers no method to sign in by")
    if run.options.auth is None:
        raise NotSeen(UNNAMED)
    await _signs_in(run, "auth.signs-in")
    run.need("auth", "logout")
    left = await run.request("logout", {})
    if run.holds("auth.logout", left.error is None, "it was answered with an error", left):
        opened = await run.request("session/new", {"cwd": str(run.cwd), "mcpServers": []})
        asks_login = opened.error is None or opened.code == AUTH_REQUIRED
        run.holds("auth.after-logout", asks_login, f"the code is {opened.code}", left, opened)
    await _signs_in(run, "auth.back")


async def _signs_in(run: AgentRun, requirement: str) -> None:
    response = await run.request("authenticate", {"methodId": run.options.auth})
    opened = await run.request("session/new", {"cwd": str(run.cwd), "mcpServers": []})
    done = response.error is None and isinstance(opened.get("sessionId"), str)
    run.holds(requirement, done, "it was refused, or no session could be opened then", response, opened)
