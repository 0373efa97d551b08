"""The result of a run: the last message of each engine, changed files, denials, failures and the exit status."""

import os
import shlex
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from antiphon.cli.outcome import (
    CANCELLED,
    DENIED,
    DONE,
    HALF_FAILED,
    LIMITED,
    REFUSED,
    is_retryable,
    kind_of,
    retry_after,
)
from antiphon.client.files import Files
from antiphon.errors import AuthRequired, Code, RequestRefused, sentence_and_hint
from antiphon.permission.settings import BROKEN
from antiphon.protocol import v1
from antiphon.runs import events
from antiphon.transcript.presentation import antiphon_meta, engine_of, is_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from antiphon.local.files import Roots
    from antiphon.permission.gate import Denial
    from antiphon.policy import Action
    from antiphon.transcript.transcript import Transcript

__all__ = [
    "MORE",
    "AnswerText",
    "NotedFiles",
    "NotedWarnings",
    "advice_for",
    "changed_files",
    "denied_line",
    "failure_of",
    "failures_in",
    "status_of_turn",
]

_STATUSES: Final = {
    v1.StopReason.END_TURN: DONE,
    v1.StopReason.MAX_TOKENS: LIMITED,
    v1.StopReason.MAX_TURN_REQUESTS: LIMITED,
    v1.StopReason.REFUSAL: REFUSED,
    v1.StopReason.CANCELLED: CANCELLED,
}

MORE: Final = "`--verbose` shows the log"
"""The hint of an error that has none."""

How: TypeAlias = Literal["created", "edited", "deleted", "moved"]
"""What happened to a file."""

_CHANGING: "Final[dict[v1.ToolKind, How]]" = {
    v1.ToolKind.EDIT: "edited",
    v1.ToolKind.DELETE: "deleted",
    v1.ToolKind.MOVE: "moved",
}

_WARNS: Final = frozenset({"untrusted", "unsaved"})
"""What `_meta.antiphon` of a notice has if it warns of settings that do not count, or of a session that is not stored."""


def status_of_turn(stop_reason: v1.StopReason, *, denied: bool = False, half_failed: bool = False) -> int:
    """Return the exit status of a turn that we did not cancel.

    A denial without asking matters more than the stop reason: many agents end such a turn with `cancelled`. An engine that failed beside
    one that answered only counts where the turn seems to have ended well.
    """
    if denied:
        return DENIED
    status = _STATUSES[stop_reason.meaning]
    return HALF_FAILED if half_failed and status == DONE else status


def failures_in(result: v1.PromptResult) -> list[events.EngineFailure]:
    """Return the engines that failed in a turn to which others answered, as our own agent reports them."""
    listed = antiphon_meta(result.meta).get("failures")
    found = []
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and isinstance(each.get("engine"), str) and isinstance(each.get("message"), str):
            hint = each.get("hint")
            error = RequestRefused(Code.INTERNAL_ERROR, each["message"], each)
            found.append(
                events.EngineFailure(
                    engine=each["engine"],
                    message=each["message"],
                    hint=hint if isinstance(hint, str) else None,
                    kind=kind_of(error),
                    retryable=is_retryable(error),
                    retry_after=retry_after(error),
                )
            )
    return found


class _AnswerMessage:
    """One message of the agent: its engine, and its text with and without the engine's name."""

    def __init__(self, engine: str | None) -> None:
        self.engine = engine
        self._label: list[str] = []
        self._pieces: list[str] = []

    def add(self, text: str, *, label: bool) -> None:
        (self._label if label else self._pieces).append(text)

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    @property
    def labelled(self) -> str:
        return "".join(self._label) + self.text


class AnswerText:
    """The messages of a turn, kept apart."""

    def __init__(self) -> None:
        self._messages: list[_AnswerMessage] = []
        self._id: str | None = None
        self._open = False

    def add_update(self, update: v1.Update) -> None:
        """Add an update. A new call, a thought or another engine ends the current message; an update of a running call does not."""
        match update:
            case v1.AgentMessageChunk(content=content, message_id=id):
                engine = engine_of(update)
                another = self._open and self._messages[-1].engine != engine
                if not self._open or another or (id is not None and id != self._id):
                    self._messages.append(_AnswerMessage(engine))
                self._open, self._id = True, id
                if isinstance(content, v1.TextBlock):
                    self._messages[-1].add(content.text, label=is_label(update))
            case v1.ToolCall() | v1.AgentThoughtChunk() | v1.UserMessageChunk():
                self._open = False
            case _:
                pass

    def end_turn(self) -> None:
        """End the current message: the next turn begins another."""
        self._open = False

    @property
    def last(self) -> str:
        """The last message that is not empty; of several engines, the last one of each, with its name."""
        found = self._last_of_each()
        if len(found) == 1:
            return found[0].labelled.lstrip("\n") if found[0].engine is not None else found[0].text
        return "\n\n".join(each.labelled.strip("\n") for each in found)

    @property
    def final(self) -> str:
        """The last message of the turn that is not empty, without its engine's name."""
        return next((each.text for each in reversed(self._messages) if each.text.strip()), "")

    @property
    def answers(self) -> list[events.EngineAnswer]:
        """The last message of each engine, without its name; empty if the agent names no engines."""
        return [
            events.EngineAnswer(engine=each.engine, text=each.text)
            for each in self._last_of_each()
            if each.engine is not None
        ]

    def _last_of_each(self) -> list[_AnswerMessage]:
        """Return the last message of each engine that sent one, in the order in which they came.

        Messages of the agent in its own name count only if no engine sent one.
        """
        messages = [each for each in self._messages if each.text.strip()]
        last = {each.engine: place for place, each in enumerate(messages)}
        if len(last) > 1:
            last.pop(None, None)
        return [messages[place] for place in sorted(last.values())]


class NotedFiles(Files):
    """Files that remember which of them the agent has written through us."""

    def __init__(self) -> None:
        super().__init__(write=True)
        self.written: dict[str, How] = {}

    async def write(self, roots: "Roots | Iterable[str]", request: v1.WriteTextFile) -> v1.WriteTextFileResult:
        there = os.path.lexists(request.path)  # noqa: ASYNC240 - one look, and the write itself goes to a thread
        result = await super().write(roots, request)
        self.written.setdefault(request.path, "edited" if there else "created")
        return result


class NotedWarnings:
    """The warnings of a run, each once: our own, and those of our agent about settings and storage."""

    def __init__(self) -> None:
        self._found: dict[str, events.RunWarning] = {}

    def add(self, message: str, hint: str | None = None) -> None:
        """Add a warning."""
        self._found.setdefault(message, events.RunWarning(message=message, hint=hint))

    def add_update(self, update: v1.Update) -> None:
        """Add an update, if it is such a warning."""
        if isinstance(update, v1.NoticeUpdate) and not _WARNS.isdisjoint(antiphon_meta(update.meta)):
            self.add(update.title, update.description)

    @property
    def found(self) -> list[events.RunWarning]:
        """All of them, in the order in which they came."""
        return list(self._found.values())


def changed_files(transcript: "Transcript", begin: int, written: "dict[str, How]") -> dict[str, How]:
    """Return changed paths and how they changed: files written through Antiphon, and what tool calls report.

    Changes made by commands are not reported to us.
    """
    from antiphon.transcript.entries import CallEntry

    changed = dict(written)
    for entry in transcript.entries[begin:]:
        if not isinstance(entry, CallEntry) or entry.status != v1.ToolStatus.COMPLETED:
            continue
        diffs = [item for item in entry.content if isinstance(item, v1.Diff)]
        for diff in diffs:
            changed.setdefault(diff.path, "created" if diff.old_text is None else "edited")
        how = _CHANGING.get(entry.kind.meaning)
        if how is not None and not diffs:
            for place in entry.locations:
                changed.setdefault(place.path, how)
        elif how == "deleted":
            changed.update({diff.path: how for diff in diffs})
    return changed


# --- errors ----------------------------------------------------------------------------------------------------------


def failure_of(error: Exception) -> events.RunFailure:
    """Return an error as the result has it."""
    if isinstance(error, AuthRequired):
        why = error.reason.removeprefix("Authentication required: ")
        sentence, hint = f"the agent wants you to sign in: {why}", _login_hint(error)
    else:
        sentence, found = sentence_and_hint(error)
        hint = found or MORE
    return events.RunFailure(
        kind=kind_of(error),
        message=sentence,
        hint=hint,
        retryable=is_retryable(error),
        retry_after=retry_after(error),
    )


def _login_hint(error: AuthRequired) -> str:
    if isinstance(error.data, dict) and isinstance(found := error.data.get("hint"), str):
        return found
    ways = []
    for method in error.methods:
        name, description = getattr(method, "name", ""), getattr(method, "description", None)
        ways.append(f"`{getattr(method, 'id', method)}` ({name}{f': {description}' if description else ''})")
    if not ways:
        return "it offers no way to sign in here: see its documentation."
    return f"it offers {'; '.join(ways)}. Sign in with its own program, or in `antiphon chat`, and run this again."


# --- what would have allowed a denied action -------------------------------------------------------------------------

_OTHERWISE: Final = (
    (BROKEN, "mend the config file that the warning names"),
    ("the shell grammar is not installed", "pip install 'antiphon[policy]', which reads command lines"),
    (
        "What was decided before cannot be read.",
        "`antiphon doctor` shows what is wrong with the database",
    ),
    ("cannot be understood; `antiphon policy revoke", "revoke that decision, as shown above"),
)
"""Reasons that stand in the way of any rule, and what helps instead."""

RULES: Final = 3
"""Rules that are named; more are no hint any more."""


def denied_line(denials: "Sequence[Denial]", count: int) -> str:
    """Return how many things were denied for lack of a terminal, and what would allow them."""
    unasked = [denial for denial in denials if denial.unattended]
    what = "one thing was" if count == 1 else f"{count} things were"
    return f"{what} denied because there is no terminal to ask in (exit status 5); {advice_for(unasked)}"


def advice_for(denials: "Sequence[Denial]") -> str:
    """Return what would allow denied actions: rules, or what is in their way."""
    for denial in denials:
        for reason, help in _OTHERWISE:
            if reason in denial.why:
                return help
    rules = list(dict.fromkeys(rule for denial in denials for rule in _rules(denial.action)))
    if not rules or len(rules) > RULES:
        return "`--allow RULE` allows what a rule names, `--on-ask allow` everything that would be asked"
    words = " ".join(f"--allow {shlex.quote(rule)}" for rule in rules)
    return f"`{words}` allows it"


def _rules(action: "Action") -> list[str]:
    """Return the shortest rules that would have allowed an action; empty if none would."""
    from antiphon.policy import suggest

    rules = [rule.text for rule in suggest(action)]
    near = [text.replace(f"({os.path.join(action.cwd, '')}", "(") for text in rules]
    return next((texts for texts in (near, rules) if texts and _allowed(action, texts)), [])


def _allowed(action: "Action", texts: list[str]) -> bool:
    from antiphon.policy import PolicyMode, RuleError, Rules, Verdict, decide

    try:
        rules = Rules.parse(allow=texts, source="command line")
    except RuleError:
        return False
    return decide(action, rules, PolicyMode.DEFAULT).verdict is Verdict.ALLOW
