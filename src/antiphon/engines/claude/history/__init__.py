"""Sessions in Claude Code's own files, also those from a terminal. Only `delete` changes anything.

Files grow to hundreds of megabytes, so a list reads the ends of a file and a replay one line at a time.

    records.py        where the files are, an index of their lines, and which lines are the current branch of the session
    replay.py         a file as the lines that the CLI would have sent, with its sub-agents
    session_list.py   pages of sessions, and the summary of each
"""

from typing import TYPE_CHECKING

from antiphon.engines.claude.history.records import SUFFIX, config_dir, is_id, projects

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from antiphon.engines.claude.history.session_list import SessionList, Summary
    from antiphon.engines.claude.translate.events import ClaudeEvent
    from antiphon.engines.claude.translate.translator import ClaudeTranslator
    from antiphon.protocol import v1

__all__ = ["History"]

# Modules that read the files are imported when a file is read: a new session does not wait for them.


class History:
    """The sessions in Claude Code's own files. Everything here waits for the disk: call it in a thread."""

    def __init__(self, config_dir: "Path | None" = None) -> None:
        self._given = config_dir
        self._listings: dict[Path, SessionList] = {}

    @property
    def root(self) -> "Path":
        """Claude Code's configuration directory."""
        return self._given or config_dir()

    def find(self, session_id: str) -> "Path | None":
        """Return the file of a session; of several with its name, the one written last."""
        return max(self._files(session_id), key=_written, default=None)

    def list(self, query: "v1.ListSessions") -> "v1.ListSessionsResult":
        """Return a page of sessions, the last used first.

        Raises:
            RequestError: the cursor is not one of ours.
        """
        return self._listing().page(query)

    def replay(self, session_id: str, translator: "ClaudeTranslator") -> "Iterator[ClaudeEvent]":
        """Replay a session through the translator; nothing when there is no such session."""
        path = self.find(session_id)
        if path is None:
            return
        from antiphon.engines.claude.history.replay import wire_lines

        for line in wire_lines(path):
            yield from translator.feed(line)
        yield from translator.close_open(background=True)

    def line_before(self, session_id: str, dropped: "Sequence[str]") -> str | None:
        """Return the last line of a session before the first of these prompts; None: that is its first prompt.

        Raises:
            RequestError: it is not certain which prompt that is.
        """
        from antiphon.engines.claude.history.replay import prompts_in
        from antiphon.transcript.fork_point import cut_point, no_cut

        path = self.find(session_id)
        prompts = [] if path is None else [*prompts_in(path)]
        cut = cut_point([each.text for each in prompts], dropped)
        if cut is None:
            raise no_cut()
        if prompts[cut].before is None and cut > 0:  # the first line of what is left was compacted away
            raise no_cut()
        return prompts[cut].before

    def delete(self, session_id: str) -> bool:
        """Remove a session with its sub-agents; whether there was one."""
        import shutil

        files = self._files(session_id)
        for path in files:
            path.unlink(missing_ok=True)
            folder = path.with_suffix("")
            if folder.is_dir() and not folder.is_symlink():
                shutil.rmtree(folder, ignore_errors=True)
        return bool(files)

    def cwd_of(self, session_id: str) -> str | None:
        """Return the directory of a session."""
        found = self._summary(session_id)
        return found.cwd if found else None

    def _summary(self, session_id: str) -> "Summary | None":
        path = self.find(session_id)
        return self._listing().summary(path) if path else None

    def _listing(self) -> "SessionList":
        from antiphon.engines.claude.history.session_list import SessionList

        return self._listings.setdefault(self.root, SessionList(self.root))

    def _files(self, session_id: str) -> "tuple[Path, ...]":
        if not is_id(session_id):
            return ()
        found = (folder / f"{session_id}{SUFFIX}" for folder in projects(self.root))
        return tuple(path for path in found if path.is_file())


def _written(path: "Path") -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:  # removed at this moment
        return 0
