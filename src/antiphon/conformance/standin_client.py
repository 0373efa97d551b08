"""A correct client that handles the agent's requests: files of a workspace, real commands, and permission for everything.

A scenario that wants to respond itself, or not at all, holds a method back.
"""

import os
from pathlib import Path
from typing import Final

from antiphon.conformance.wire import PeerRefusal, PeerWire, Responder
from antiphon.errors import AcpError, Code
from antiphon.local.commands import OUTPUT_LIMIT, Exit, LocalCommand
from antiphon.traffic.entries import JsonObject, objects_in, texts_in

__all__ = ["EVERYTHING", "StandinClient"]

EVERYTHING: Final[JsonObject] = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
    "elicitation": {"form": {}, "url": {}},
    "auth": {"terminal": True},
}
"""The capabilities of a client that can do all that the stable protocol has."""


COMMANDS: Final = frozenset({"echo antiphonprinted", "echo modest", "false", "pwd", "sleep 60"})
"""The commands that scenarios have an agent run."""

SHELLS: Final = frozenset({"sh", "/bin/sh", "bash", "/bin/bash"})
"""Programs in which an agent may run one of them."""


class StandinClient(Responder):
    """Handles the requests of an agent. `allows` is the kind of option that it picks when it is asked for permission.

    It writes no file outside of the workspace, as a correct client. `confined`: it reads none there either, and runs only the commands
    that scenarios name. An agent on a network is not trusted with this machine, as a program of the user is that runs on it.
    """

    def __init__(self, wire: PeerWire, workspace: Path, *, confined: bool = False) -> None:
        super().__init__(wire)
        self._workspace = workspace
        self._confined = confined
        self.allows = "allow_once"
        self.unsaved: dict[str, str] = {}
        """What files hold that the user has not saved: path → text."""
        self._commands: dict[str, LocalCommand] = {}

    async def result_for(self, method: str, params: JsonObject) -> object:
        match method:
            case "session/request_permission":
                return {"outcome": self._chosen(params)}
            case "fs/read_text_file":
                if self._confined:
                    self._check_inside(params["path"])
                return {"content": _read(params, self.unsaved)}
            case "fs/write_text_file":
                return _write(params, self._workspace)
            case "elicitation/create":
                return {"action": "decline"}
            case "terminal/create":
                return await self._create(params)
            case _ if method.startswith("terminal/"):
                return await self._terminal(method, params)
            case _:
                raise PeerRefusal(Code.METHOD_NOT_FOUND, f"method not found: {method}")

    def _chosen(self, params: JsonObject) -> dict[str, str]:
        """Exactly what is wanted, or else of the same verb: an agent must not take our no for a yes, or the other way round."""
        options = objects_in(params.get("options"))
        exact = [one for one in options if one.get("kind") == self.allows]
        alike = [one for one in options if str(one.get("kind")).startswith(self.allows.partition("_")[0])]
        found = next(iter(texts_in([*exact, *alike], "optionId")), None)
        return {"outcome": "cancelled"} if found is None else {"outcome": "selected", "optionId": found}

    async def _create(self, params: JsonObject) -> object:
        words = [params["command"], *params.get("args", [])]
        if len(words) == 1 and " " in words[0]:  # many agents send a whole line
            words = ["/bin/sh", "-c", words[0]]
        env = dict(os.environ) | {one["name"]: one["value"] for one in params.get("env") or []}
        if self._confined:
            in_shell = len(words) == 3 and words[0] in SHELLS and words[1] in ("-c", "-lc")
            if (words[2] if in_shell else " ".join(words)) not in COMMANDS:
                raise PeerRefusal(Code.INVALID_PARAMS, "this client runs only commands that its user named")
            self._check_inside(params.get("cwd"))
            env = dict(os.environ)
        limit = params.get("outputByteLimit")
        try:
            command = await LocalCommand.start(
                words, cwd=params.get("cwd"), env=env, output_limit=OUTPUT_LIMIT if limit is None else int(limit)
            )
        except AcpError as error:
            raise PeerRefusal(Code.INVALID_PARAMS, str(error)) from error
        terminal = f"terminal-{len(self._commands) + 1}-{os.urandom(4).hex()}"
        self._commands[terminal] = command
        return {"terminalId": terminal}

    def _check_inside(self, path: object) -> None:
        if not isinstance(path, str) or not Path(path).resolve().is_relative_to(self._workspace.resolve()):
            raise PeerRefusal(Code.INVALID_PARAMS, f"{path} is outside of the workspace")

    async def _terminal(self, method: str, params: JsonObject) -> object:
        command = self._commands.get(params["terminalId"])
        if command is None:
            raise PeerRefusal(Code.RESOURCE_NOT_FOUND, f"there is no terminal {params['terminalId']}")
        match method:
            case "terminal/output":
                status = {} if command.exit is None else {"exitStatus": _status(command.exit)}
                return {"output": command.output(), "truncated": command.truncated, **status}
            case "terminal/wait_for_exit":
                return _status(await command.wait())
            case "terminal/kill":
                await command.kill()
                return {}
            case "terminal/release":
                del self._commands[params["terminalId"]]
                await command.close()
                return {}
            case _:
                raise PeerRefusal(Code.METHOD_NOT_FOUND, f"method not found: {method}")

    @property
    def terminals(self) -> list[str]:
        """Terminals that are not released."""
        return list(self._commands)

    async def close(self) -> None:
        """End whatever is left."""
        await super().close()
        for command in self._commands.values():
            await command.close()
        self._commands.clear()


def _status(exit: Exit) -> dict[str, object]:
    return {"exitCode": exit[0], "signal": exit[1]}


def _read(params: JsonObject, unsaved: dict[str, str]) -> str:
    path = params["path"]
    try:
        text = unsaved[path] if path in unsaved else Path(path).read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise PeerRefusal(Code.RESOURCE_NOT_FOUND, f"cannot read {params['path']}: {error}") from error
    first = max(int(params.get("line") or 1), 1) - 1
    limit = params.get("limit")
    return "".join(lines[first:] if limit is None else lines[first : first + int(limit)])


def _write(params: JsonObject, workspace: Path) -> object:
    path = Path(params["path"])
    try:
        if not path.resolve().is_relative_to(workspace.resolve()):
            raise PeerRefusal(Code.INVALID_PARAMS, f"{path} is outside of the workspace")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(params["content"], encoding="utf-8")
    except OSError as error:
        raise PeerRefusal(Code.INTERNAL_ERROR, f"cannot write {params['path']}: {error}") from error
    return {}
