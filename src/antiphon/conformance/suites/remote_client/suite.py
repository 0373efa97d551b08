"""The suite for clients of the remote profiles, and the scenarios that both profiles have: redirects, and a server that is gone."""

from collections.abc import Awaitable, Callable
from typing import Final

from antiphon.conformance.remote.client_check import RemoteClientRun
from antiphon.conformance.requirements import NotSeen, Requirement, Suite
from antiphon.conformance.suites.server.suite import remote_must, remote_should
from antiphon.traffic.checker import Side

__all__ = ["REMOTE_CLIENT_SUITE"]

REMOTE_CLIENT_SUITE: Final[Suite[RemoteClientRun]] = Suite(Side.CLIENT, judges_traffic=False)

Play = Callable[[RemoteClientRun, str], Awaitable[None]]


def _for_both(name: str, title: str, *shows: Callable[[str], Requirement]) -> Callable[[Play], Play]:
    def made(play: Play) -> Play:
        for prefix in ("http", "ws"):
            listed = tuple(one(prefix) for one in shows)
            REMOTE_CLIENT_SUITE.scenario(f"{prefix}-{name}", title, shows=listed)(_with(play, prefix))
        return play

    return made


def _with(play: Play, prefix: str) -> Callable[[RemoteClientRun], Awaitable[None]]:
    async def played(run: RemoteClientRun) -> None:
        await play(run, prefix)

    return played


def _requirement(make: Callable[..., Requirement], id: str, text: str, fix: str) -> Callable[[str], Requirement]:
    return lambda prefix: make(f"{prefix}.{id}", text, fix=fix)


@_for_both(
    "redirect",
    "a server redirects the client to another",
    _requirement(
        remote_must,
        "redirect-token",
        "A token is not sent to another server than the one that it is for, also where that redirects.",
        "Do not follow redirects, or leave `Authorization` and cookies away at another origin.",
    ),
    _requirement(
        remote_should,
        "redirect",
        "A redirect to another server is not followed: prompts and files are not for that one.",
        "Do not follow redirects; show the address to the user.",
    ),
)
async def redirect(run: RemoteClientRun, prefix: str) -> None:
    await run.other.start()
    run.judge.script.redirect = run.other.url("http")
    await run.start(prefix)
    await run.ended()
    asked = run.judge.requests
    if not asked:
        raise NotSeen("the client sent no request")
    there = run.other.requests
    run.holds(f"{prefix}.redirect", not there, "it was followed", *(one.entry for one in there[:1]))
    if not any(run.token in one.head.get("authorization") for one in asked):
        raise NotSeen("the client sent no token: put {token} where its command takes one")
    leaked = [one for one in there if run.token in one.head.raw.decode("latin-1")]
    run.holds(f"{prefix}.redirect-token", not leaked, "it was", *(one.entry for one in leaked[:1]))


for _prefix in ("http", "ws"):  # a token is sent there by a client that goes there
    REMOTE_CLIENT_SUITE.follows[f"{_prefix}.redirect-token"] = (f"{_prefix}.redirect",)


@_for_both(
    "lost",
    "a server is gone in the middle of a turn",
    _requirement(
        remote_should,
        "lost",
        "A client whose connection is lost for good ends the turn with an error, and does not wait for ever.",
        "End the requests that wait where the connection ends; try again a few times at most.",
    ),
    _requirement(
        remote_should,
        "prompt-once",
        "A prompt whose turn has begun is not sent again.",
        "Load or resume the session after a lost connection, and leave the prompt to the user.",
    ),
)
async def lost(run: RemoteClientRun, prefix: str) -> None:
    run.judge.script.cut = "all"
    await run.start(prefix)
    await run.received("session/prompt")
    status = await run.ended()
    posted = [one.entry for one in run.judge.requests if one.asked == "session/prompt"]
    prompts = posted or [entry for entry in run.judge.messages if entry.method == "session/prompt"]
    run.holds(f"{prefix}.lost", status not in (0, None), run.how(status), *prompts[:1])
    run.holds(f"{prefix}.prompt-once", len(prompts) == 1, f"it was sent {len(prompts)} times", *prompts[:2])
