"""`fs/read_text_file` and `fs/write_text_file`, for clients that offer them."""

from pathlib import Path
from typing import Final

from antiphon.conformance.client_run import ClientRun
from antiphon.conformance.requirements import Blocked, NotSeen, Requirement, capability, should
from antiphon.conformance.suites.client.suite import SUITE
from antiphon.conformance.wire import PeerResponse

__all__: list[str] = []

TEXT: Final = "first line\nzweite Zeile: äöü €\n\nfourth 🎵\nfifth, without an end"

FAULTS: Final = (-32601, -32602, -32603)
"""Errors that are no decision: not known, not understood, not managed."""

READING = "file-system#reading-files"
WRITING = "file-system#writing-files"
ALLOW = "(The command has to let the agent read and write in its directory.)"


def _read(id: str, text: str, fix: str, needs: tuple[str, ...] = ()) -> Requirement:
    return capability(id, text, link=READING, fix=fix, needs=needs)


def _write(id: str, text: str, fix: str, needs: tuple[str, ...] = ()) -> Requirement:
    return capability(id, text, link=WRITING, fix=fix, needs=needs)


def workspace(run: ClientRun) -> Path:
    """The directory of the session, if it is the one that the check made for it: no other is written into.

    Raises:
        Blocked: it is another.
    """
    cwd = Path(run.script.folders.get(run.session, "/"))
    if cwd.resolve() != run.cwd:
        raise Blocked(
            f"the client works in {cwd}, not in the directory that it was started in: {{cwd}} in its command names that"
        )
    return run.cwd


def allowed(response: PeerResponse, how: str) -> PeerResponse:
    """Go on unless the user or a policy refused: that is not a fault. Any other error for a correct request is one.

    Raises:
        Unseen: the client does not let the agent do this.
    """
    if response.error is not None and response.code not in FAULTS:
        raise NotSeen(f"the client refused: {response.error.get('message')} {how}")
    return response


def _same(run: ClientRun, id: str, response: PeerResponse, wanted: str) -> None:
    content = response.get("content")
    if response.error is not None:
        problem = f"it was answered with the error {response.code}. {ALLOW}"
    else:
        problem = f"the content is {str(content)[:80]!r}, not {wanted[:80]!r}"
    run.holds(id, content == wanted, problem, response)


def _refused(run: ClientRun, id: str, response: PeerResponse) -> None:
    run.holds(id, response.error is not None, "it was answered with a result", response)


@SUITE.scenario(
    "reading",
    "the agent reads files",
    shows=(
        _read(
            "files.read",
            "A file is read as it is: every character, and no line end more.",
            f"Answer with the text as it is. {ALLOW}",
        ),
        _read(
            "files.part",
            "`line` (from 1) and `limit` choose lines.",
            "Count lines from 1; without `limit` read to the end.",
            ("files.read",),
        ),
        _read("files.large", "A file of 1 MiB is read whole.", "Send the whole text in one answer.", ("files.read",)),
        _read("files.missing", "A file that is not there is an error.", "Answer with the error -32002."),
        _read("files.folder", "A directory is an error.", "Answer with an error."),
    ),
)
async def reading(run: ClientRun) -> None:
    await run.start()
    turn = await run.prompted()
    run.need("fs", "readTextFile")
    folder = workspace(run)
    path = folder / "a song.txt"
    path.write_text(TEXT, encoding="utf-8", newline="")
    _same(run, "files.read", await run.here("fs/read_text_file", path=str(path)), TEXT)
    part = await run.here("fs/read_text_file", path=str(path), line=2, limit=2)
    wanted = "".join(TEXT.splitlines(keepends=True)[1:3])
    content = part.get("content")  # whether the last of the lines keeps its end is not specified anywhere
    trimmed = isinstance(content, str) and content.rstrip("\n") == wanted.rstrip("\n")
    run.holds("files.part", trimmed, f"lines 2 and 3 are {content!r:.80}, not {wanted!r:.80}", part)
    large = "0123456789abcde\n" * (64 * 1024)
    (folder / "large.txt").write_text(large, encoding="utf-8")
    _same(run, "files.large", await run.here("fs/read_text_file", path=str(folder / "large.txt")), large)
    _refused(run, "files.missing", await run.here("fs/read_text_file", path=str(folder / "nothing.txt")))
    _refused(run, "files.folder", await run.here("fs/read_text_file", path=str(folder)))
    await turn.end()


@SUITE.scenario(
    "writing",
    "the agent writes files",
    shows=(
        _write(
            "files.write",
            "A file that is not there is made, with exactly the content.",
            f"Write the text as it is. {ALLOW}",
        ),
        _write(
            "files.replace",
            "A file that is there gets the new content and keeps nothing of the old.",
            "Replace the whole file.",
        ),
        _write("files.unwritable", "What cannot be written is an error.", "Answer with an error where writing fails."),
        should(
            "files.answered-last",
            "The answer to a write comes when it is written.",
            link=WRITING,
            fix="Answer when the file has its content, not before.",
            needs=("files.write",),
        ),
    ),
)
async def writing(run: ClientRun) -> None:
    await run.start()
    turn = await run.prompted()
    run.need("fs", "writeTextFile")
    folder = workspace(run)
    path = folder / "new song.txt"
    response = allowed(await run.here("fs/write_text_file", path=str(path), content=TEXT), ALLOW)
    found = path.read_text(encoding="utf-8") if path.exists() else None
    run.holds("files.answered-last", found is not None or response.error is not None, "there is no file yet", response)
    await run.settle()
    _written(run, "files.write", path, response, TEXT)
    path.write_text("something that is longer than what comes\n" * 9, encoding="utf-8")
    _written(run, "files.replace", path, await run.here("fs/write_text_file", path=str(path), content="short"), "short")
    _refused(run, "files.unwritable", await run.here("fs/write_text_file", path=str(folder), content="x"))
    await turn.end()


def _written(run: ClientRun, id: str, path: Path, response: PeerResponse, wanted: str) -> None:
    found = path.read_bytes().decode("utf-8", "replace") if path.exists() else None
    if response.error is not None:
        problem = f"it was answered with the error {response.code}. {ALLOW}"
    else:
        problem = f"the file has {found!r:.80}, not {wanted!r:.80}"
    run.holds(id, response.error is None and found == wanted, problem, response)
