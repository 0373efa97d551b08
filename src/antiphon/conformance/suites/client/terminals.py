"""`terminal/…`, for clients that offer it: real commands, watched from outside."""

import os
from typing import Final

from antiphon.conformance.client_run import ClientRun
from antiphon.conformance.requirements import Blocked, Requirement, advice, capability
from antiphon.conformance.suites.client.file_system import allowed, workspace
from antiphon.conformance.suites.client.suite import SUITE
from antiphon.conformance.wire import PeerResponse
from antiphon.traffic.entries import JsonObject

__all__: list[str] = []

SHELL: Final = "/bin/sh"
LIMIT: Final = 10
"""Bytes of output that are to be kept: three letters of two bytes each, and `END`."""

LOOKS: Final = 200
"""How often something that takes a moment is looked at, each time after a moment of silence."""


def _needs(id: str, text: str, anchor: str, fix: str, *needs: str) -> Requirement:
    return capability(id, text, link=f"terminals#{anchor}", fix=fix, needs=needs)


CREATING = "executing-commands"
ALLOW = "(The command has to let the agent run programs.)"


async def _create(run: ClientRun, command: str, *args: str, **more: object) -> str:
    """The id of a terminal in which this runs.

    Raises:
        Unseen: the client does not let the agent run it.
        Blocked: it does not run.
    """
    response = allowed(await run.here("terminal/create", command=command, args=list(args), **more), ALLOW)
    terminal = response.get("terminalId")
    if not isinstance(terminal, str):
        raise Blocked(f"`terminal/create` gave no terminal but the error {response.error}. {ALLOW}")
    return terminal


async def _ran(run: ClientRun, command: str, *args: str, **more: object) -> tuple[PeerResponse, PeerResponse]:
    """Run it to its end: how it ended, and its output."""
    terminal = await _create(run, command, *args, **more)
    exit = await run.here("terminal/wait_for_exit", terminalId=terminal)
    output = await run.here("terminal/output", terminalId=terminal)
    await run.here("terminal/release", terminalId=terminal)
    return exit, output


def _output(run: ClientRun, id: str, output: PeerResponse, wanted: str) -> None:
    found = output.get("output")
    held = isinstance(found, str) and found.strip() == wanted
    run.holds(id, held, f"the output is {found!r:.80}, not {wanted!r:.80}", output)


@SUITE.scenario(
    "commands",
    "the agent runs commands",
    shows=(
        _needs(
            "terminals.runs", "A command is started, and a terminal is given for it.", CREATING,
            f"Answer `terminal/create` with a `terminalId` at once. {ALLOW}",
        ),
        _needs(
            "terminals.exit", "`terminal/wait_for_exit` returns the exit code.", "waiting-for-exit",
            "Answer with `exitCode` when the command has ended.", "terminals.runs",
        ),
        _needs(
            "terminals.output", "`terminal/output` has stdout and stderr, and how the command ended.", "getting-output",
            "Keep both streams, and put `exitStatus` into the answer once the command has ended.", "terminals.runs",
        ),
        _needs(
            "terminals.arguments", "Arguments reach the program as they are: not split, not expanded.", CREATING,
            "Start the program with its arguments as a list, without a shell.", "terminals.runs",
        ),
        _needs(
            "terminals.environment", "Variables of the request are in the command's environment.", CREATING,
            "Add `env` to the environment that the command gets.", "terminals.runs",
        ),
        _needs(
            "terminals.folder", "The command runs in the directory that the request names.", CREATING,
            "Start it in `cwd`; without one in the session's directory.", "terminals.runs",
        ),
        _needs(
            "terminals.limit", "Output over `outputByteLimit` loses its beginning, and is marked as truncated.",
            "getting-output", "Keep the last bytes, and answer with `truncated: true`.", "terminals.runs",
        ),
        _needs(
            "terminals.boundary", "Output is never cut within a character.", CREATING,
            "Drop the rest of a character that the limit cuts, even if less than the limit is left.",
            "terminals.runs", "terminals.limit",
        ),
        advice(
            "terminals.missing", "A program that is not there is an error, or ends with one.", link=f"terminals#{CREATING}",
            fix="Answer `terminal/create` with an error that names what is missing.", needs=("terminals.runs",),
        ),
        _needs(
            "terminals.unknown", "A terminal that there is not is an error.", "getting-output",
            "Answer with an error, for instance -32002.",
        ),
    ),
)  # fmt: skip
async def commands(run: ClientRun) -> None:
    await run.start()
    turn = await run.prompted()
    run.need("terminal")
    folder = workspace(run)
    try:
        exit, output = await _ran(run, SHELL, "-c", "printf out; printf err >&2; exit 3")
    except Blocked as problem:
        run.holds("terminals.runs", False, str(problem), *run.wire.trace[-2:])
        return
    run.holds("terminals.runs", True, "")
    run.holds("terminals.exit", exit.get("exitCode") == 3, f"the exit code is {exit.get('exitCode')}, not 3", exit)
    found, status = output.get("output"), output.get("exitStatus", "exitCode")
    whole = isinstance(found, str) and "out" in found and "err" in found and status == 3
    run.holds("terminals.output", whole, f"the output is {found!r:.80}, the status {status}", output)
    _, output = await _ran(run, "printf", "<%s>", "two  words", "$HOME", "*", "a'b")
    _output(run, "terminals.arguments", output, "<two  words><$HOME><*><a'b>")
    variable = [{"name": "ANTIPHON_CHECK", "value": "sung aloud"}]
    _, output = await _ran(run, SHELL, "-c", 'printf "%s" "$ANTIPHON_CHECK"', env=variable)
    _output(run, "terminals.environment", output, "sung aloud")
    (folder / "sub").mkdir()
    _, output = await _ran(run, SHELL, "-c", "pwd -P", cwd=str(folder / "sub"))
    _output(run, "terminals.folder", output, str(folder / "sub"))
    await _limits(run)
    await _mistakes(run)
    await turn.end()


async def _limits(run: ClientRun) -> None:
    _, output = await _ran(run, SHELL, "-c", f"printf '%s' 'BEGIN {'é' * 40}END'", outputByteLimit=LIMIT)
    found = output.get("output")
    text = found if isinstance(found, str) else ""
    proper = text.endswith("END") and len(text.encode()) <= LIMIT and output.get("truncated") is True
    otherwise = f"the output is {text!r:.80}, with truncated: {output.get('truncated')}"
    run.holds("terminals.limit", proper, otherwise, output)
    run.holds("terminals.boundary", "\ufffd" not in text and not text.startswith("\u00a9"), otherwise, output)


async def _mistakes(run: ClientRun) -> None:
    response = await run.here("terminal/create", command="antiphon-no-such-program", args=["x"])
    missed = response.error is not None
    if not missed:
        exit = await run.here("terminal/wait_for_exit", terminalId=response.get("terminalId"))
        missed = exit.error is not None or exit.get("exitCode") != 0
    run.holds("terminals.missing", missed, "it was started, and ended well", response)
    unknown = await run.here("terminal/output", terminalId="antiphon-nobody")
    run.holds("terminals.unknown", unknown.error is not None, "it was answered with a result", unknown)


@SUITE.scenario(
    "long-commands",
    "the agent waits for commands, kills them and releases their terminals",
    shows=(
        _needs(
            "terminals.waits", "`terminal/wait_for_exit` waits for the end, and other requests are answered meanwhile.",
            "waiting-for-exit", "Answer it when the command has ended, and read on until then.",
        ),
        _needs(
            "terminals.kill", "`terminal/kill` ends the command, and every request that waits for it is answered.",
            "killing-commands", "End the command; answer all `terminal/wait_for_exit` that are open.", "terminals.waits",
        ),
        _needs(
            "terminals.after-kill", "The output of a killed command can still be read.", "killing-commands",
            "Keep the terminal until it is released.", "terminals.kill",
        ),
        advice(
            "terminals.signal", "A killed command did not end with status 0.", link="terminals#waiting-for-exit",
            fix="Answer with `signal`, or with an exit code that is not 0.", needs=("terminals.kill",),
        ),
        _needs(
            "terminals.release", "`terminal/release` ends a command that still runs.", "releasing-terminals",
            "End the command before you forget its terminal.",
        ),
        _needs(
            "terminals.forgets", "A released terminal is unknown.", "releasing-terminals",
            "Answer requests for a released terminal with an error.",
        ),
    ),
)  # fmt: skip
async def long_commands(run: ClientRun) -> None:
    await run.start()
    turn = await run.prompted()
    run.need("terminal")
    workspace(run)
    terminal, _ = await _started(run)
    waiting = [await run.send_request("terminal/wait_for_exit", _of(run, terminal)) for _ in range(2)]
    await run.settle()
    early = [one for one in (each.peek() for each in waiting) if one is not None]
    run.holds("terminals.waits", not early, "it was answered while the command ran", *early)
    killed = await run.here("terminal/kill", terminalId=terminal)
    ended = [await one.response() for one in waiting]
    succeeded = killed.error is None and all(one.error is None for one in ended)
    run.holds("terminals.kill", succeeded, "it was answered with an error", killed, *ended)
    run.holds("terminals.signal", ended[0].get("exitCode") != 0, "the exit code is 0", ended[0])
    output = await run.here("terminal/output", terminalId=terminal)
    text = output.get("output")
    kept = isinstance(text, str) and "pid" in text
    run.holds("terminals.after-kill", kept, f"the output is {text!r:.80}", output)
    await run.here("terminal/release", terminalId=terminal)
    await _release(run)
    await turn.end()


def _of(run: ClientRun, terminal: str) -> JsonObject:
    return {"sessionId": run.session, "terminalId": terminal}


async def _started(run: ClientRun) -> tuple[str, int]:
    """A command that takes long and has printed something: its terminal and its number."""
    terminal = await _create(run, SHELL, "-c", "echo pid $$; exec sleep 60")
    for _ in range(LOOKS):
        output = (await run.here("terminal/output", terminalId=terminal)).get("output")
        words = output.split() if isinstance(output, str) else []
        if len(words) == 2 and words[1].isdecimal():
            return terminal, int(words[1])
        await run.wire.silence(run.options.silence)
    raise Blocked("a command that prints something did not")


async def _release(run: ClientRun) -> None:
    terminal, pid = await _started(run)
    released = await run.here("terminal/release", terminalId=terminal)
    looks = 0
    while (running := _runs(pid)) and looks < LOOKS:
        looks += 1
        await run.wire.silence(run.options.silence)
    run.holds("terminals.release", not running and released.error is None, "the command still runs", released)
    again = await run.here("terminal/output", terminalId=terminal)
    run.holds("terminals.forgets", again.error is not None, "its output could still be read", again)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
