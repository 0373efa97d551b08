"""Whether rules match an action, with opposite care: a deny matches if it perhaps applies, an allow if it surely covers."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from antiphon.policy.action import Action
from antiphon.policy.arguments import changes_places, levels, reads_data
from antiphon.policy.grammar import RunContext
from antiphon.policy.nested import NestedCommands, nested_commands
from antiphon.policy.paths import PathResolver, inside, through
from antiphon.policy.patterns import CommandLine, Match, Piece, SimpleCommand, Words, folded, segments_match
from antiphon.policy.programs import program_name, starts_others, takes_commands
from antiphon.policy.protected import mentioned, named_by, protected, protected_move, protected_words
from antiphon.policy.rules import FILE_KINDS, KIND_OF, PathPattern, Rule, also_forbidden_as, permitted_as

__all__ = ["RuleMatcher", "host_of", "path_covered", "path_forbidden"]

# --- paths


def path_covered(pattern: PathPattern, path: str, action: Action) -> bool:
    """Whether an allow with this pattern permits the path: exactly, and only as a whole."""
    return any(segments_match(pattern.segments, names) for names in _all_names([path], _bases(pattern, action)))


def path_forbidden(pattern: PathPattern, action: Action) -> Match:
    """Whether a deny with this pattern meets any path, under any of its names, or a directory above it.

    Perhaps: not all paths are known; it is the same but for upper and lower case or the form of an accent, which on some
    disks is the same file; or a directory is moved or deleted that the pattern reaches into.
    """
    unknown = action.unread or not action.paths or (pattern.base == "~" and action.home is None)
    paths = (*action.paths, *action.spellings)
    bases = _bases(pattern, action)
    if any(segments_match(pattern.segments, names, above=True) for names in _all_names(paths, bases)):
        return Match.YES
    if unknown or _perhaps(pattern, action, paths, bases):
        return Match.MAYBE
    return Match.NO


def _perhaps(pattern: PathPattern, action: Action, paths: Iterable[str], bases: Iterable[str]) -> bool:
    if pattern.folded != pattern.segments or any(path != folded(path) for path in paths):
        known = _all_names([folded(path) for path in paths], [folded(base) for base in bases])
        if any(segments_match(pattern.folded, names, above=True) for names in known):
            return True
    takes_directories = action.kind in ("delete", "move") or action.plain_files
    return takes_directories and any(
        _reaches_into(pattern.segments, path, base) for path in action.paths for base in bases
    )


def _reaches_into(segments: tuple[Piece, ...], path: str, base: str) -> bool:
    """Whether the pattern may match something below `path`: every name of the path fits the beginning of the pattern."""
    names = _names_below(path, base)
    if names is None:
        return _names_below(base, path) is not None
    return any(segments_match(segments[:end], names) for end in range(len(segments) + 1))


def _all_names(paths: Iterable[str], bases: Iterable[str]) -> Iterator[list[str]]:
    """Every path below every base, as names; each once."""
    for path in dict.fromkeys(paths):
        for base in dict.fromkeys(bases):
            names = _names_below(path, base)
            if names is not None:
                yield names


def _bases(pattern: PathPattern, action: Action) -> tuple[str, ...]:
    if pattern.base == "/":
        return ("/",)
    if pattern.base == "~":
        return () if action.home is None else (action.home,)
    return action.roots


def _names_below(path: str, base: str) -> list[str] | None:
    base = base.rstrip("/") + "/"
    if not path.startswith(base) and path + "/" != base:
        return None
    return [name for name in path[len(base) :].split("/") if name]


_ADDRESS: Final = re.compile(r"https?://([A-Za-z0-9.-]+)(?::[0-9]{1,5})?(?:[/?#][\x21-\x5b\x5d-\x7e]*)?", re.IGNORECASE)
MAX_DIRECTORIES: Final = 8
"""Directories that a part of a line may run in. With more `cd` before it, it is not followed where it runs."""

_GOING: Final = frozenset({"cd", "popd", "pushd"})
_MCP: Final = "mcp__"
_FILE_TOOLS: Final = frozenset({"Delete", "Edit", "Move", "Write"})


class RuleMatcher:
    """Matches rules with one action; what is costly about the action is worked out once, and only if a rule needs it."""

    def __init__(self, action: Action) -> None:
        self.action = action

    # --- what the action is ---

    @cached_property
    def line(self) -> CommandLine:
        """The command, read. This is what loads the shell grammar."""
        action = self.action
        if action.words is not None:
            line = CommandLine.of_words(action.words)
        elif action.command:
            from antiphon.policy.shell import read_line  # late: most calls are not commands

            line = read_line(action.command)
        else:
            return CommandLine(unclear="it does not name the command it runs")
        if action.unread:
            return CommandLine(line.parts, line.unclear or "it names more than one thing to run", line.special)
        if action.variables:
            return CommandLine(line.parts, line.unclear, line.special or f"it sets `{action.variables[0]}`")
        return line

    @property
    def uncovered(self) -> str:
        """Why no Bash pattern can cover this command, whatever the pattern is; empty if one can."""
        if not (inside(self.action.cwd, self.action.roots) or self.action.cwd in self.action.roots):
            return "it runs outside the session's directories"
        return self.line.unclear or self.line.special or ("" if self.line.parts else "it has no command")

    @cached_property
    def _hidden(self) -> NestedCommands:
        found = nested_commands(self.line, self._here)
        if self.action.variables:
            found.unknown = found.unknown or f"`{self.action.variables[0]}` may change what runs"
        return found

    @cached_property
    def _here(self) -> RunContext:
        return RunContext((self.action.cwd,), self.action.roots, self.action.resolve, self.action.exists)

    @cached_property
    def _contexts(self) -> list[RunContext]:
        """The directories in which each part of the line may run: a `cd` before it may have worked or not."""
        context = self._here
        spots = []
        for part in self.line.parts:
            spots.append(context)
            if part.command and part.command[0] in _GOING:
                there = part.command[1] if len(part.command) == 2 else None
                if there is None or len(context.directories) > MAX_DIRECTORIES:
                    context = context.nowhere_known()
                else:
                    moved = (posixpath.normpath(posixpath.join(here, there)) for here in context.directories)
                    context = context.also_at(tuple(moved))
            elif changes_places(part.command):
                context = context.after_changes()
        return spots

    @cached_property
    def _permitted_names(self) -> frozenset[str]:
        tool = self.action.tool
        # A `Read` that claims to edit is covered by neither rule.
        if tool is None or KIND_OF[tool] != self.action.kind:
            return frozenset()
        return permitted_as(tool)

    @cached_property
    def _forbidden_names(self) -> frozenset[str]:
        action = self.action
        names = set(permitted_as(action.tool)) if action.tool is not None else set()
        for kind in {action.kind, *action.claimed}:
            names |= also_forbidden_as(kind, named=action.name is not None)
        return frozenset(names)

    # --- files that name programs to run ---

    @cached_property
    def protected(self) -> str:
        """The name for which what it would write is protected; empty if nothing is. For a command that may be a guess."""
        action = self.action
        if action.kind in FILE_KINDS or action.plain_files:
            names = (*action.paths, *action.spellings)
            made = frozenset(action.made_directories)
            found = (protected(name, directory=name in made) for name in names)
            return next(filter(None, found), "") or protected_move(action.moved)
        if action.kind != "execute":
            return ""
        line = self.line
        if line.unclear or line.special:
            return mentioned(" ".join(action.words or ()) or action.command or "")
        words = (part.command[at] for part in line.parts for at in sorted(self._protected_words(part)))
        return next(("an unknown file" if word is None else word for word in words), "")

    def _protected_words(self, part: SimpleCommand) -> frozenset[int]:
        return protected_words(part.command, self._names_of)

    @cached_property
    def _places(self) -> tuple[tuple[PathResolver, ...], tuple[tuple[str, str], ...]]:
        """Directories that the words of a line may refer to: where it runs, and where it goes. And the protected links of the roots."""
        action = self.action
        going = [part.command[1] for part in self.line.parts if len(part.command) == 2 and part.command[0] in _GOING]
        directories = [directory for directory in going if directory]
        here = PathResolver(action.cwd, action.roots, action.home, action.resolve)
        joined = posixpath.join(".", *directories)
        return tuple(here.at(directory) for directory in dict.fromkeys([".", *directories, joined])), here.links()

    def _names_of(self, word: str) -> Sequence[str]:
        places, links = self._places
        names = dict.fromkeys(path for resolver in places for path in resolver.real([word]))
        written = (posixpath.normpath(posixpath.join(resolver.cwd, word)) for resolver in places)
        return tuple(names | dict.fromkeys([*written, *through(links, names)]))

    @cached_property
    def _protected_elsewhere(self) -> frozenset[str]:
        """Protected names that only another spelling of its paths has, through a link."""
        action = self.action
        return frozenset(map(protected, action.spellings)) - set(map(protected, action.paths))

    def covers_but_for_protection(self, rule: Rule) -> bool:
        """Whether an allow rule about files would cover the action if none of its files were protected."""
        if not self._may_permit(rule):
            return False
        return rule.bare or (
            rule.path is not None and any(path_covered(rule.path, path, self.action) for path in self.action.paths)
        )

    # --- deny and ask ---

    def forbids(self, rule: Rule) -> Match:
        """Whether a deny or ask rule meets the action, in any part and under any name."""
        action = self.action
        if rule.kind is not None:
            return _yes(rule.kind == action.kind or rule.kind in action.claimed)
        if not self._is_meant(rule.tool or ""):
            return self._forbids_file_work(rule)
        if rule.command is not None:
            return self._forbids_command(rule)
        if rule.path is not None:
            return path_forbidden(rule.path, action)
        if rule.host is not None:
            return _forbids_host(rule.host, action.url)
        return Match.YES

    def _forbids_file_work(self, rule: Rule) -> Match:
        """`rm` and its like are commands, but what they do to files is what rules about files are meant to stop."""
        if not self.action.plain_files or rule.tool not in _FILE_TOOLS:
            return Match.NO
        return path_forbidden(rule.path, self.action) if rule.path is not None else Match.MAYBE

    def _is_meant(self, tool: str) -> bool:
        if tool in self._forbidden_names:
            return True
        name = self.action.name
        if name is None:
            return False
        mine, its = tool.casefold(), name.casefold()
        return mine == its or (mine.startswith(_MCP) and its.startswith(f"{mine}__"))

    def _forbids_command(self, rule: Rule) -> Match:
        assert rule.command is not None  # noqa: S101 - for the type checker; `forbids` asked
        nested = self._hidden
        best = Match.MAYBE if self.line.unclear or nested.unknown else Match.NO
        for words in nested.found:
            match = rule.command.forbids(words)
            if match is Match.YES:
                return match
            best = match if best is Match.NO else best
        if best is Match.NO and self._may_name(rule):
            best = Match.MAYBE
        return best

    def _may_name(self, rule: Rule) -> bool:
        """Whether a word of a program that is not known may be the name of what the rule denies."""
        command = rule.command
        if command is None or not (self._hidden.perhaps or self._hidden.globs):
            return False
        names: Iterable[str] = self._hidden.perhaps
        first = command.items[0].literal if command.items and command.items[0] is not None else None
        if first is not None:
            names = (name for name in names if program_name(name) == program_name(first))
        return any(command.forbids((name, None)) is not Match.NO for name in names) or any(
            command.may_begin_with(text) for text in self._hidden.globs
        )

    def doubt(self, rule: Rule) -> str:
        """Why a rule about commands may match and may not."""
        if self.line.unclear or self._hidden.unknown:
            return self.line.unclear or self._hidden.unknown
        return "what it runs cannot be determined for sure"

    # --- allow ---

    def permitted_by(self, rules: Iterable[Rule]) -> Rule | None:
        """The rule that permits all of the action, or one of those that together do."""
        commands: list[Rule] = []
        paths: list[Rule] = []
        for rule in rules:
            if not self._may_permit(rule):
                continue
            if rule.bare and self.action.kind in FILE_KINDS and self.protected:
                continue  # all edits are not all files: one that names programs has to be named
            if rule.bare or (rule.host is not None and host_fits(rule.host, host_of(self.action.url))):
                return rule
            if rule.command is not None:
                commands.append(rule)
            elif rule.path is not None:
                paths.append(rule)
        return (self._commands_covered(commands) if commands else None) or (
            self._paths_covered(paths) if paths else None
        )

    def _may_permit(self, rule: Rule) -> bool:
        action = self.action
        if rule.kind is not None:
            return rule.kind == action.kind
        tool = rule.tool or ""
        if tool in self._permitted_names:
            return True
        if action.name is None or action.tool is not None:
            return False
        # `mcp__a` permits the tools of server `a`, but not those of a server that calls itself `a__b`.
        prefix = f"{tool}__"
        if tool.startswith(_MCP) and action.name.startswith(prefix):
            return "__" not in tool.removeprefix(_MCP) and "__" not in action.name.removeprefix(prefix)
        return tool == action.name

    def _commands_covered(self, rules: list[Rule]) -> Rule | None:
        if self.uncovered:
            return None
        covering = [self._covering(rules, at) for at in range(len(self.line.parts))]
        return covering[0] if all(covering) else None

    def missing(self, rules: Iterable[Rule]) -> str:
        """The part of the command that no rule covers, and why."""
        if self.uncovered:
            return self.uncovered
        commands = [rule for rule in rules if rule.command is not None and self._may_permit(rule)]
        for at, part in enumerate(self.line.parts):
            if self._covering(commands, at) is None:
                return f"`{part.shown}` {self._closed(at) or self._guards(commands, at) or 'matches no pattern'}"
        return ""

    def _covering(self, rules: list[Rule], at: int) -> Rule | None:
        part = self.line.parts[at]
        if not rules or self._closed(at):
            return None
        if part.command and part.command[0] in _GOING and not self._stays(at):
            # Other rules count on being inside the session's directories: no `*` leads out of them, also not one that stands for nothing.
            rules = [rule for rule in rules if rule.command is not None and None not in rule.command.items]
            return _first(rules, self._spelled(at), frozenset(range(len(part.words))))
        return _first(rules, self._spelled(at), self._guarded(at))

    def _closed(self, at: int) -> str:
        """Why no rule at all covers this part; empty if one can."""
        part, context = self.line.parts[at], self._contexts[at]
        first = part.command[0] if part.command else None
        if part.fed and not reads_data(part.command):
            return "may run what it is fed"
        if first is not None and program_name(first) == "git":
            if not context.directories:
                return "runs in a directory that is not known"
            if context.strays:
                return "may find a repository there that is not the session's"
        return ""

    def _guarded(self, at: int) -> frozenset[int]:
        """Words that no `*` covers: assignments, wrappers with all that stands behind them, arguments that are not on a program's list."""
        part = self.line.parts[at]
        command = part.command
        first = command[0] if command else None
        if first is None or starts_others(first) or takes_commands(first):
            return frozenset(range(len(part.words)))
        found = levels(command, self._contexts[at])
        found_words = {
            *range(part.settings),
            *(word + part.settings for word in (*found, *self._protected_words(part))),
        }
        return frozenset(found_words)

    def _guards(self, rules: list[Rule], at: int) -> str:
        """The word that no `*` covers, where some rule would match without it."""
        part = self.line.parts[at]
        if part.command and part.command[0] in _GOING and not self._stays(at):
            return "may lead out of the session's directories"
        guarded = self._guarded(at)
        if not guarded or _first(rules, [part.words], frozenset()) is None:
            return ""
        word = part.texts[min(guarded)] if min(guarded) < len(part.texts) else ""
        return f"has `{word}`, which a `*` does not cover"

    def _spelled(self, at: int) -> list[Words]:
        """The words of a part, and the same with the whole path of its program: what an "always" is remembered as."""
        part = self.line.parts[at]
        whole = self.whole_program(at)
        if whole is None:
            return [part.words]
        return [part.words, (*part.words[: part.settings], whole, *part.command[1:])]

    def whole_program(self, at: int) -> str | None:
        """The whole path of a program that is named by a relative one; None if it is not, or may be in several directories."""
        part, directories = self.line.parts[at], self._contexts[at].directories
        first = part.command[0] if part.command else None
        if first is None or "/" not in first or first.startswith("/") or len(directories) != 1:
            return None
        if posixpath.basename(first) in ("", ".", ".."):
            return None  # a directory
        return posixpath.normpath(posixpath.join(directories[0], first))

    def _stays(self, at: int) -> bool:
        command, context = self.line.parts[at].command, self._contexts[at]
        directory = command[1] if len(command) == 2 else None
        if command[0] == "popd" or not directory or directory[0] in "-+~" or not context.directories:
            return False
        if context.changed and not all(
            posixpath.join(here, directory) in context.roots for here in context.directories
        ):
            return False  # it may be a link by then
        return context.holds(directory)

    def _paths_covered(self, rules: list[Rule]) -> Rule | None:
        action = self.action
        if action.unread or not action.paths:
            return None
        writes = action.kind in FILE_KINDS
        if writes and (name := protected_move(action.moved)):
            rules = [rule for rule in rules if rule.path is not None and _names(rule.path, name)]
        covering = [
            next((rule for rule in rules if self._path_covered(rule, path, writes)), None) for path in action.paths
        ]
        return covering[0] if all(covering) else None

    def _path_covered(self, rule: Rule, path: str, writes: bool) -> bool:
        pattern, action = rule.path, self.action
        if pattern is None or not path_covered(pattern, path, action):
            return False
        if not writes:
            return True
        names = {protected(path)} | self._protected_elsewhere
        return all(_names(pattern, name) for name in names if name)


def host_of(url: str | None) -> str | None:
    """The host of an address that every reader reads alike; None for any other: no user, no backslash, nothing unusual."""
    found = _ADDRESS.fullmatch(url or "")
    return found[1].casefold().rstrip(".") if found else None


def host_fits(pattern: str, host: str | None) -> bool:
    """`example.org` is itself; `*.example.org` is everything below."""
    if host is None:
        return False
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern


def _forbids_host(pattern: str, url: str | None) -> Match:
    host = host_of(url)
    return Match.MAYBE if host is None else _yes(host_fits(pattern, host))


def _names(pattern: PathPattern, name: str) -> bool:
    """Whether a path pattern itself names a protected name: it has it, or has no wildcard at all."""
    literal = all(len(piece) == 1 and piece[0] for piece in pattern.segments)
    return literal or named_by(pattern.segments, name)


def _first(rules: list[Rule], spellings: list[Words], guarded: frozenset[int]) -> Rule | None:
    return next(
        (
            rule
            for rule in rules
            if rule.command is not None and any(rule.command.covers(words, guarded) for words in spellings)
        ),
        None,
    )


def _yes(matches: bool) -> Match:
    return Match.YES if matches else Match.NO
