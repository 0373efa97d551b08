"""What an "always" would remember: the narrowest rules that cover exactly what was shown, or none."""

from antiphon.policy.action import Action
from antiphon.policy.always import closed_reason
from antiphon.policy.globs import escape
from antiphon.policy.judging import Judge, host_of
from antiphon.policy.patterns import quoted
from antiphon.policy.rules import Rule, RuleError
from antiphon.policy.tools import KIND_OF, PATH_TOOLS

__all__ = ["suggest"]

SOURCE = "always"


def suggest(action: Action) -> tuple[Rule, ...]:
    """Rules that together allow this action and nothing that differs from it. Empty: only "once" can be offered."""
    judge = Judge(action)
    texts = _texts(action, judge)
    try:
        rules = tuple(Rule.parse(text, SOURCE) for text in dict.fromkeys(texts))
    except RuleError:  # a path that no glob can say
        return ()
    if any(closed_reason(rule) for rule in rules):
        return ()
    # Whatever is offered has to do what it says: a rule that would not allow this very action is not offered.
    return rules if rules and judge.permitted_by(rules) is not None else ()


def _texts(action: Action, judge: Judge) -> list[str]:
    tool = action.tool
    if tool is not None and KIND_OF[tool] != action.kind:
        return []
    if tool == "Bash":
        return [] if judge.uncovered else _commands(judge)
    if tool in PATH_TOOLS:
        return [f"{tool}({escape(path)})" for path in action.paths]
    if tool == "WebFetch":
        host = host_of(action.url)
        return [f"WebFetch(domain:{host})"] if host else []
    name = action.name
    # A tool of somebody's own: its name is all that a rule can say.
    return (
        [name]
        if name is not None and tool is None and name.replace("_", "").replace("-", "").isalnum() and name.isascii()
        else []
    )


def _commands(judge: Judge) -> list[str]:
    """A rule for each command of a line. A program that is named by a relative path is named by its whole path: it is that file."""
    texts = []
    for at, part in enumerate(judge.line.parts):
        if None in part.words:
            continue
        whole = judge.whole_program(at)
        texts.append(
            _command(part.words if whole is None else (*part.words[: part.settings], whole, *part.command[1:]))
        )
    return texts


def _command(words: tuple[str | None, ...]) -> str:
    return f"Bash({' '.join(quoted(word) for word in words if word is not None)})"
