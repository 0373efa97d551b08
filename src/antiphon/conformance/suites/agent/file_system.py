"""The client's files: an agent uses their content as the client sends it, and survives its refusals."""

from pathlib import Path

from antiphon.conformance.agent_run import AgentRun
from antiphon.conformance.requirements import NotSeen, advice, must, should
from antiphon.conformance.suites.agent.suite import SUITE
from antiphon.conformance.suites.agent.turns import breaks_off, calls, ended, hold, requests, usable, writes
from antiphon.traffic.entries import Entry

__all__: list[str] = []

READ, WRITE = "fs/read_text_file", "fs/write_text_file"
TEXT = "written by the check"
OVER = ("completed", "failed")
ON_DISK, UNSAVED = "antiphonsaved", "antiphonunsaved"


def _file(run: AgentRun, name: str) -> Path:
    file = run.cwd / name
    file.write_text(f"{ON_DISK}\n", encoding="utf-8")
    return file


@SUITE.scenario(
    "files-read",
    "the agent reads a file that has unsaved changes",
    files=True,
    shows=(
        should(
            "files.read-path",
            "A file that the user names is asked for by that path.",
            link="file-system#reading-files",
            fix="Send the absolute path of the file, with nothing taken away from it.",
        ),
        advice(
            "files.unsaved",
            "The agent works with the content of a file as the client sends it, also where the disk has another.",
            link="file-system#reading-files",
            fix="Use the answer to `fs/read_text_file`: it has what the user has not saved.",
        ),
    ),
)
async def reading(run: AgentRun) -> None:
    session = await run.session()
    file = _file(run, "read.txt")
    run.client.unsaved[str(file)] = f"{UNSAVED}\n"
    response = await run.turn(session, "read", file=file)
    asked = [one for one in requests(run, READ, after=response.request.number) if _names(one, file)]
    if not asked:
        raise NotSeen("the agent did not read the file through the client")
    paths = [one.params.get("path") for one in asked]
    if not run.holds("files.read-path", str(file) in paths, f"it was asked for as {paths}", *asked):
        return
    updates = run.updates(session, after=asked[0].number)
    shown, wrong = ([one for one in updates if word.encode() in one.raw] for word in (UNSAVED, ON_DISK))
    if not shown and not wrong:
        raise NotSeen("the agent did not write what it read")
    run.holds("files.unsaved", bool(shown), "it showed what is on the disk", *asked, *wrong)


def _names(entry: Entry, file: Path) -> bool:
    path = entry.params.get("path")
    return isinstance(path, str) and Path(path).name == file.name


@SUITE.scenario(
    "files-missing",
    "the agent reads a file that is not there",
    files=True,
    shows=(
        must(
            "files.missing",
            "A turn ends if the client has no such file.",
            link="file-system#reading-files",
            fix="Report to the model that there is no such file: that is not a reason for the turn to hang.",
        ),
        should(
            "files.missing-result",
            "A turn in which a file was missing is answered with a result.",
            link="tool-calls#status",
            fix="Let the tool call fail rather than the turn.",
            needs=("files.missing",),
        ),
        must(
            "files.missing-next",
            "After a file was missing the session takes another turn.",
            link="prompt-turn",
            fix="Catch the error where you asked for the file.",
            needs=("files.missing",),
        ),
    ),
)
async def missing(run: AgentRun) -> None:
    session = await run.session()
    pending = await run.prompt(session, run.words("read", file=run.cwd / "not-there.txt"))
    response = await ended(run, "files.missing", pending, "the turn did not end")
    asked = [one for one in requests(run, READ, after=pending.request.number) if _names(one, Path("not-there.txt"))]
    if not asked:
        raise NotSeen("the agent did not read the file through the client")
    run.holds("files.missing", True, "", response)
    run.holds("files.missing-result", response.error is None, "it was answered with an error", *asked, response)
    await usable(run, "files.missing-next", session)


@SUITE.scenario(
    "files-write",
    "the agent writes a file",
    files=True,
    shows=(
        must(
            "files.written",
            "A file that the agent reports as written has been written.",
            link="file-system#writing-files",
            fix="Set a tool call to `completed` only after the file is written.",
        ),
    ),
)
async def writing(run: AgentRun) -> None:
    session = await run.session()
    file = run.cwd / "written.txt"
    response = await run.turn(session, "write", file=file, text=TEXT)
    found = writes(calls(run, session, after=response.request.number).values(), file, TEXT)
    done = [one for one in found if one.status == "completed"]
    if not done:
        raise NotSeen("no tool call of the turn that writes the file was completed")
    holds = _holds(file)
    run.holds("files.written", TEXT in holds, f"{file.name} holds {holds!r}", done[-1].entries[-1])


def _holds(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else "nothing"


@SUITE.scenario(
    "files-locked",
    "the agent writes a file that the client cannot write",
    files=True,
    shows=(
        must(
            "files.locked",
            "A turn ends if the client cannot write a file.",
            link="file-system#writing-files",
            fix="Report to the model that it could not be written: that is not a reason for the turn to hang.",
        ),
        should(
            "files.locked-told",
            "A tool call whose file could not be written is not shown as completed.",
            link="tool-calls#status",
            fix="Set the tool call to `failed` if `fs/write_text_file` is answered with an error.",
            needs=("files.locked",),
        ),
    ),
)
async def locked(run: AgentRun) -> None:
    session = await run.session()
    file = run.cwd / "locked.txt"
    pending, asked = await hold(run, WRITE, session, "write", file=file, text=TEXT)
    await run.client.refuse(asked, -32603, "The file is locked")
    response = await ended(run, "files.locked", pending, "the turn did not end")
    run.holds("files.locked", True, "", response)
    begun = calls(run, session, after=pending.request.number, before=asked.number)
    meant = [id for id, one in begun.items() if one.status not in OVER and writes([one], file, TEXT)]
    if not meant:
        raise NotSeen("no tool call writes the file")
    if TEXT in _holds(file):
        raise NotSeen("the agent wrote the file by itself")
    after = calls(run, session, after=pending.request.number)
    done = [after[id] for id in meant if after[id].status == "completed"]
    run.holds(
        "files.locked-told", not done, "its tool call was completed after it", asked, *(one.entries[-1] for one in done)
    )


@SUITE.scenario(
    "files-read-only",
    "a client whose files can only be read",
    files=True,
    alone=True,
    shows=(
        must(
            "files.read-only",
            "A turn that would write ends, also with a client that can only read.",
            link="file-system#checking-support",
            fix="Write by yourself, or report to the model that it cannot.",
        ),
    ),
)
async def read_only(run: AgentRun) -> None:
    await run.initialize(capabilities={"fs": {"readTextFile": True, "writeTextFile": False}})
    session = await run.session()
    pending = await run.prompt(session, run.words("write", file=run.cwd / "mine.txt", text=TEXT))
    response = await ended(run, "files.read-only", pending, "the turn did not end")
    if not calls(run, session, after=pending.request.number):
        raise NotSeen("the agent did not try to write: a prompt file can name words that make it")
    run.holds("files.read-only", True, "", response)


breaks_off("files.missing", "files.locked", "files.read-only")
