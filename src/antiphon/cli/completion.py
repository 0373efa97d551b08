"""`antiphon completion`: a script for bash, zsh or fish, generated from the parsers of the commands."""

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from antiphon.cli.arguments import Parser
from antiphon.cli.main import COMMANDS, load
from antiphon.cli.outcome import COLORS

__all__ = ["SHELLS", "Node", "Option", "Value", "bash", "fish", "parser", "run", "tree", "zsh"]

SHELLS: Final = ("bash", "zsh", "fish")

EPILOG: Final = """\
To have it in every shell:
  bash  echo 'eval "$(antiphon completion bash)"' >> ~/.bashrc
  zsh   echo 'eval "$(antiphon completion zsh)"' >> ~/.zshrc       (after compinit)
  fish  antiphon completion fish > ~/.config/fish/completions/antiphon.fish
"""


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    top = Parser(
        prog="antiphon completion",
        description="Print a script that completes the words of antiphon's command line.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")
    return top


def run(arguments: list[str]) -> int:
    """Print the script."""
    options = parser().parse_args(arguments)
    write = {"bash": bash, "zsh": zsh, "fish": fish}[options.shell]
    sys.stdout.write(write(tree(COMMANDS)))
    return 0


# --- the tree of commands --------------------------------------------------------------------------------------------

Value: TypeAlias = Literal["file", "directory", "agent", "anything"] | tuple[str, ...]
"""What can stand for a value: something of this kind, or one of these words."""

_SAFE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Words that mean themselves in every shell; others are not offered."""

_BY_METAVAR: Final[Mapping[str, Value]] = {
    "FILE": "file",
    "PATH": "file",
    "FILE|URL": "file",
    "PROMPT": "file",
    "DIR": "directory",
    "AGENT": "agent",
}


class Option(msgspec.Struct, frozen=True):
    """An option of a command; `value` is None if it takes no value."""

    names: tuple[str, ...]
    help: str
    value: Value | None = None


class Node(msgspec.Struct, frozen=True):
    """A command or subcommand: its words, options, argument and subcommands."""

    path: tuple[str, ...]
    help: str
    options: tuple[Option, ...] = ()
    value: Value | None = None
    """What its first argument is, if it has any."""
    commands: tuple["Node", ...] = ()

    def walk(self) -> Iterator["Node"]:
        """Yield this command and all below it."""
        yield self
        for command in self.commands:
            yield from command.walk()


def tree(commands: Mapping[str, str]) -> Node:
    """Return the tree of all commands. `commands` has the description of each name."""
    nodes = tuple(_node(("antiphon", name), help, _parser_of(name)) for name, help in commands.items())
    options = (
        Option(("-h", "--help"), "show this help"),
        Option(("--version",), "show the version"),
        Option(("--color",), "when to use colours", COLORS),
    )
    return Node(("antiphon",), "", options, commands=nodes)


def _parser_of(name: str) -> argparse.ArgumentParser | None:
    """Return the parser of a command; None if an extra that it needs is not installed."""
    try:
        return load(name).parser()
    except ImportError:
        return None


def _node(path: tuple[str, ...], help: str, parser: argparse.ArgumentParser | None) -> Node:
    if parser is None:
        return Node(path, help, (Option(("-h", "--help"), "show this help"),))
    options: list[Option] = []
    commands: list[Node] = []
    value: Value | None = None
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            commands += [_node((*path, name), helps.get(name, ""), below) for name, below in action.choices.items()]
        elif action.help == argparse.SUPPRESS:
            continue
        elif action.option_strings:
            takes = None if action.nargs == 0 else _value(action)
            options.append(Option(tuple(action.option_strings), _sentence(action.help), takes))
        elif value is None:
            value = _value(action)
    return Node(path, help, tuple(options), value, tuple(commands))


def _value(action: argparse.Action) -> Value:
    if action.choices is not None:
        return tuple(word for word in map(str, action.choices) if _SAFE.fullmatch(word))
    if {"--agent", "--engine"} & set(action.option_strings):
        return "agent"
    return _BY_METAVAR.get(str(action.metavar), "anything")


def _sentence(help: str | None) -> str:
    return (help or "").replace("%%", "%").partition("; ")[0]


# --- the scripts -----------------------------------------------------------------------------------------------------
# Each walks from `antiphon` to the command that the words lead to, steps over the values of options, and then offers options, values or
# commands. Names of agents are asked of the program when they are needed; everything else stands in the script.

_BASH = r"""# Completion of antiphon for bash: eval "$(antiphon completion bash)"
_antiphon() {
    local word=${COMP_WORDS[COMP_CWORD]} where=antiphon option= value= at=1 each IFS=$' \t\n'
    COMPREPLY=()
    while ((at < COMP_CWORD)); do
        each=${COMP_WORDS[at++]}
        [[ $each == = ]] && continue # bash makes three words of --option=value
        if [[ -n $option ]]; then
            option=
            continue
        fi
        [[ $each == -- ]] && return
        if [[ $each == -* ]]; then
            _antiphon_value "$where $each"
            [[ -n $value ]] && option=$each
            continue
        fi
        case "$where $each" in
@PATHS@
                where="$where $each" ;;
        esac
    done
    [[ $word == = ]] && word=
    if [[ -n $option ]]; then
        _antiphon_value "$where $option"
        _antiphon_offer "$value" "$1"
    elif [[ $word == -* ]]; then
        case "$where" in
@OPTIONS@
        esac
    else
        case "$where" in
@WORDS@
        esac
    fi
}
_antiphon_value() {
    case "$1" in
@VALUES@
        *) value= ;;
    esac
}
_antiphon_offer() { # words, or a kind of value; COMPREPLY left empty means a file
    local each
    case "$1" in
        @file | @anything) ;;
        @directory)
            local IFS=$'\n'
            compopt -o filenames 2>/dev/null
            COMPREPLY=($(compgen -d -- "$word")) ;;
        @agent)
            for each in $("$2" agents --names 2>/dev/null); do
                [[ $each == "$word"* ]] && COMPREPLY+=("$each")
            done ;;
        *)
            for each in $1; do
                [[ $each == "$word"* ]] && COMPREPLY+=("$each")
            done ;;
    esac
}
complete -o default -F _antiphon antiphon
"""

_ZSH = r"""#compdef antiphon
# Completion of antiphon for zsh: eval "$(antiphon completion zsh)", after compinit
_antiphon() {
    local where=antiphon option= value= each word=${words[CURRENT]}
    local -a offers
    for each in ${words[2,CURRENT-1]}; do
        if [[ -n $option ]]; then
            option=
            continue
        fi
        if [[ $each == -- ]]; then
            _files
            return
        fi
        if [[ $each == -* ]]; then
            _antiphon_value "$where $each"
            [[ -n $value ]] && option=$each
            continue
        fi
        case "$where $each" in
@PATHS@
                where="$where $each" ;;
        esac
    done
    if [[ -z $option && $word == --*=* ]]; then
        option=${word%%=*}
        compset -P '*='
    fi
    if [[ -n $option ]]; then
        _antiphon_value "$where $option"
        _antiphon_offer "$value"
        return
    fi
    if [[ $word == -* ]]; then
        case "$where" in
@OPTIONS@
        esac
        _describe -o option offers
    else
        case "$where" in
@WORDS@
        esac
    fi
}
_antiphon_value() {
    case "$1" in
@VALUES@
        *) value= ;;
    esac
}
_antiphon_offer() {
    case "$1" in
        @file | @anything) _files ;;
        @directory) _files -/ ;;
        @agent) compadd -- ${(f)"$(_call_program agents $service agents --names 2>/dev/null)"} ;;
        *) compadd -- ${=1} ;;
    esac
}
if [[ ${funcstack[1]} == _antiphon ]]; then
    _antiphon "$@"
else
    compdef _antiphon antiphon
fi
"""

_FISH = r"""# Completion of antiphon for fish: antiphon completion fish > ~/.config/fish/completions/antiphon.fish
function __antiphon_at --argument-names want
    set -l where antiphon
    set -l said (commandline -opc)
    for each in $said[2..-1]
        switch "$where $each"
            case @PATHS@
                set where "$where $each"
        end
    end
    test "$where" = "$want"
end
complete -c antiphon -f
"""


def bash(root: Node) -> str:
    """Return the script for bash, 3.2 or newer."""
    words = (_case(_path(node), f'_antiphon_offer "{_words(node)}" "$1"') for node in root.walk() if _words(node))
    options = (
        _case(_path(node), f'_antiphon_offer "{" ".join(name for option in node.options for name in option.names)}"')
        for node in root.walk()
    )
    return _filled(
        _BASH,
        PATHS="            " + " | ".join(f'"{path}"' for path in _paths(root)) + ")",
        OPTIONS="\n".join(options),
        WORDS="\n".join(words),
        VALUES="\n".join(_values(root)),
    )


def zsh(root: Node) -> str:
    """Return the script for zsh."""
    options = (
        _case(
            _path(node),
            "offers=("
            + " ".join(_quoted(f"{name}:{option.help}") for option in node.options for name in option.names)
            + ")",
        )
        for node in root.walk()
    )
    return _filled(
        _ZSH,
        PATHS="            " + " | ".join(f'"{path}"' for path in _paths(root)) + ")",
        OPTIONS="\n".join(options),
        WORDS="\n".join(filter(None, map(_zsh_words, root.walk()))),
        VALUES="\n".join(_values(root)),
    )


def fish(root: Node) -> str:
    """Return the script for fish, 3 or newer."""
    lines = [_filled(_FISH, PATHS=" ".join(_quoted(path) for path in _paths(root)))]
    for node in root.walk():
        here = f"complete -c antiphon -n \"__antiphon_at '{_path(node)}'\""
        lines += [f"{here} -a {below.path[-1]} -d {_quoted(below.help)}\n" for below in node.commands]
        if node.value is not None:
            lines.append(f"{here}{_fish_value(node.value)}\n")
        for option in node.options:
            names = "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names)
            takes = "" if option.value is None else f" -r{_fish_value(option.value)}"
            lines.append(f"{here}{names}{takes} -d {_quoted(option.help)}\n")
    return "".join(lines)


def _path(node: Node) -> str:
    return " ".join(node.path)


def _paths(root: Node) -> list[str]:
    return [_path(node) for node in root.walk() if node is not root]


def _words(node: Node) -> str:
    """Return what can follow a command besides options: its subcommands, or its argument."""
    if node.commands:
        return " ".join(below.path[-1] for below in node.commands)
    return "" if node.value is None else _kind(node.value)


def _kind(value: Value) -> str:
    return " ".join(value) if isinstance(value, tuple) else f"@{value}"


def _values(root: Node) -> Iterator[str]:
    """Return the options that take a value, each with the kind of value."""
    for node in root.walk():
        for option in node.options:
            if option.value is not None:
                patterns = " | ".join(f'"{_path(node)} {name}"' for name in option.names)
                yield f"        {patterns}) value='{_kind(option.value) or '@anything'}' ;;"


def _case(pattern: str, action: str) -> str:
    return f'            "{pattern}") {action} ;;'


def _zsh_words(node: Node) -> str:
    if node.commands:
        offers = " ".join(_quoted(f"{below.path[-1]}:{below.help}") for below in node.commands)
        return _case(_path(node), f"offers=({offers}); _describe command offers")
    return "" if node.value is None else _case(_path(node), f"_antiphon_offer '{_kind(node.value)}'")


def _fish_value(value: Value) -> str:
    match value:
        case "file" | "anything":
            return " -F"
        case "directory":
            return " -x -a '(__fish_complete_directories)'"
        case "agent":
            return " -x -a '(antiphon agents --names 2>/dev/null)'"
        case _:
            return f" -x -a '{' '.join(value)}'"


def _quoted(text: str) -> str:
    """Return a text in single quotes for zsh and fish, without quotes and backslashes in it."""
    return "'" + text.replace("\\", "").replace("'", "\u2019") + "'"


def _filled(template: str, **parts: str) -> str:
    for name, part in parts.items():
        template = template.replace(f"@{name}@", part)
    return template
