"""Who may do what: the holders of tokens and shares against each role, and what is written down about it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from antiphon.gateway.base import AccessRole, Principal
from tests.gateway.peers import DRIVER, RawClient, stage
from tests.gateway.test_decisions import audited
from tests.gateway.test_turns import BOB, attach, end
from tests.rows import each_row
from tests.waits import idle

WATCHER: Final = Principal("eve", AccessRole.WATCH)
WATCH_GUEST: Final = Principal("guest", AccessRole.WATCH, frozenset({"key0"}))
DRIVE_GUEST: Final = Principal("guest", AccessRole.DRIVE, frozenset({"key0"}))
MINE, FOREIGN = "s1", "s2"
CHANGES: Final[Mapping[str, Mapping[str, object]]] = {
    "session/prompt": {"prompt": [{"type": "text", "text": "x"}]},
    "session/set_mode": {"modeId": "bypassPermissions"},
    "session/set_model": {"modelId": "m"},
    "session/set_config_option": {"configId": "c", "value": "v"},
    "session/cancel": {},
    "session/close": {},
    "session/delete": {},
    "session/fork": {"cwd": "CWD", "mcpServers": []},
    "_vendor/thing": {},
}
SEES: Final[Mapping[str, Mapping[str, object]]] = {
    "session/load": {"cwd": "CWD", "mcpServers": []},
    "session/resume": {"cwd": "CWD", "mcpServers": []},
    "_antiphon/session/attach": {"after": 0},
    "_antiphon/session/detach": {},
}
OPENS: Final[Mapping[str, Mapping[str, object]]] = {
    "session/new": {"cwd": "CWD", "mcpServers": []},
    "session/load": {"sessionId": "of the agent", "cwd": "CWD", "mcpServers": []},
    "session/delete": {"sessionId": "of the agent"},
    "_vendor/thing": {},
    "authenticate": {"methodId": "m"},
    "logout": {},
}


def cases() -> list[tuple[Principal, str, dict[str, object]]]:
    """Every request that a principal may not send."""
    refused: list[tuple[Principal, str, dict[str, object]]] = []
    for who in (WATCHER, WATCH_GUEST):
        refused += [(who, name, {"sessionId": MINE, **more}) for name, more in CHANGES.items()]
    for guest in (WATCH_GUEST, DRIVE_GUEST):
        refused += [(guest, name, {"sessionId": FOREIGN, **more}) for name, more in {**CHANGES, **SEES}.items()]
    for who in (WATCHER, WATCH_GUEST, DRIVE_GUEST):
        refused += [(who, name, {**params}) for name, params in OPENS.items()]
    refused += [
        (DRIVE_GUEST, name, {"sessionId": MINE, **CHANGES[name]})
        for name in ("session/delete", "session/fork", "_vendor/thing")
    ]
    refused.append((BOB, "session/delete", {"sessionId": MINE}))
    refused.append((BOB, "session/delete", {"sessionId": "of the agent"}))
    whole = ("authenticate", "logout", "providers/set", "providers/disable", "proxy/initialize", "proxy/successor")
    for name in whole:
        refused += [(BOB, name, {}), (BOB, name, {"sessionId": MINE})]
    return refused


async def test_no_client_does_more_than_the_role_of_the_token_or_share_allows(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        place.agent.capabilities = {
            "loadSession": True,
            "sessionCapabilities": {"fork": {}, "delete": {}, "list": {}, "close": {}},
        }
        place.agent.answers["session/list"] = lambda params: {"sessions": []}
        owner = await place.client()
        for _ in (MINE, FOREIGN):
            await owner.new(tmp_path)
        before = len(place.agent.lines)
        clients: dict[Principal, RawClient] = {}
        for who, method, params in cases():
            client = clients.get(who) or clients.setdefault(who, await place.client(who))
            if params.get("cwd") == "CWD":
                params["cwd"] = str(tmp_path)
            assert "code" in await client.refused(method, params), (who.name, method, params)
            client.notify(method, params)
        await idle()
        assert place.agent.lines[before:] == [], "nothing of it reached the agent"
        assert {each["sessionId"] for each in (await owner.request("session/list", {}))["sessions"]} == {MINE, FOREIGN}


async def listed(client: RawClient) -> set[str]:
    return {each["sessionId"] for each in (await client.request("session/list", {}))["sessions"]}


@each_row(
    "who, sessions, roots",
    [
        (DRIVER, {MINE, FOREIGN, "of the agent"}, True),
        (WATCHER, {MINE, FOREIGN}, False),
        (WATCH_GUEST, {MINE}, False),
        (DRIVE_GUEST, {MINE}, False),
    ],
)
async def test_the_list_has_what_its_reader_may_open(
    who: Principal, sessions: set[str], roots: bool, tmp_path: Path
) -> None:
    async with stage(tmp_path) as place:
        place.agent.capabilities = {"loadSession": True, "sessionCapabilities": {"list": {}}}
        own = [{"sessionId": "of the agent", "cwd": str(tmp_path)}, {"sessionId": "elsewhere", "cwd": "/etc"}]
        place.agent.answers["session/list"] = lambda params: {"sessions": own}
        owner = await place.client()
        for _ in (MINE, FOREIGN):
            await owner.new(tmp_path)
        client = await place.client(who)
        assert await listed(client) == sessions
        about: Any = client.messages[0]["result"]["_meta"]["antiphon"]
        assert ("roots" in about) is roots


async def test_who_opened_a_session_and_admins_delete_it(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        alice, bob = await place.client(), await place.client(BOB)
        admin = await place.client(Principal("root", AccessRole.ADMIN))
        first, second, third = await alice.new(tmp_path), await alice.new(tmp_path), await bob.new(tmp_path)
        assert "opened" in (await bob.refused("session/delete", {"sessionId": first}))["message"]
        await alice.request("session/delete", {"sessionId": first})
        await admin.request("session/delete", {"sessionId": second})
        await bob.request("session/delete", {"sessionId": third})
        assert await listed(alice) == set()


async def test_what_changes_the_power_of_an_agent_is_in_the_audit_log(tmp_path: Path) -> None:
    async with stage(tmp_path) as place:
        entries = audited(place.hub)
        place.agent.capabilities = {"loadSession": True, "sessionCapabilities": {"fork": {}}}
        place.agent.answers |= {
            "session/set_mode": lambda params: {},
            "session/set_config_option": lambda params: {"configOptions": []},
            "session/fork": lambda params: {"sessionId": "forked"},
            "session/load": lambda params: {},
        }
        client = await place.client()
        session = await client.new(tmp_path)
        here = {"cwd": str(tmp_path), "mcpServers": []}
        client.prompt(session, "x")
        await end(place)
        await client.request("session/set_mode", {"sessionId": session, "modeId": "bypassPermissions"})
        await client.request("session/set_config_option", {"sessionId": session, "configId": "c", "value": "v"})
        await client.request("session/fork", {"sessionId": session, **here})
        await client.request("session/load", {"sessionId": "of the agent", **here})
        assert entries == [
            ("alice", "new", str(tmp_path)),
            ("alice", "prompt", ""),
            ("alice", "session/set_mode", "bypassPermissions"),
            ("alice", "session/set_config_option", "c v"),
            ("alice", "fork", str(tmp_path)),
            ("alice", "load", str(tmp_path)),
        ]


async def test_a_permission_request_is_answered_by_those_of_its_session_alone(tmp_path: Path) -> None:
    """Whatever ids a client makes up, and although ids of connections are counted in the same way."""
    async with stage(tmp_path) as place:
        owner = await place.client()
        for _ in (MINE, FOREIGN):
            await owner.new(tmp_path)
        owner.prompt(FOREIGN, "work")
        await place.agent.got("session/prompt")
        guest, watcher = await place.client(DRIVE_GUEST), await place.client(WATCHER)
        await attach(guest, MINE)
        await attach(watcher, FOREIGN)
        place.agent.ask("p", FOREIGN)
        await owner.asked()
        before = len(place.agent.lines)
        for client in (guest, watcher):
            for id in range(20):
                client.answer(id, {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
                client.answer(str(id), {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
        await idle()
        assert len(place.agent.lines) == before and not guest.requests() and not watcher.requests()


async def test_a_notification_in_the_place_of_a_request_does_not_reach_the_agent(tmp_path: Path) -> None:
    """An agent that looks at the method alone would start the program, and nothing has looked at it."""
    async with stage(tmp_path) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        before = len(place.agent.lines)
        server = {"name": "x", "command": "/bin/evil", "args": [], "env": []}
        for method in ("session/new", "session/load", "session/fork", "session/resume", "session/prompt", "initialize"):
            client.notify(method, {"cwd": "/etc", "mcpServers": [server]})
            client.notify(method, {"sessionId": session, "cwd": "/etc", "mcpServers": [server]})
        client.notify("_vendor/hello", {"sessionId": session})
        await place.agent.got("_vendor/hello")
        assert len(place.agent.lines) == before + 1
