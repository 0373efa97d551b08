"""Every command has the same form: its errors, hints, suggestions, usage, defaults and JSON, found by walking all parsers."""

import argparse
import json
import os
import pkgutil
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import antiphon
from antiphon.cli.arguments import Parser, duration
from antiphon.cli.main import COMMANDS, load, main
from antiphon.cli.outcome import KINDS, STATUSES, Misused, did_you_mean
from tests.rows import each_row

Run = Callable[..., tuple[int, str, str]]
Actions = list[argparse.Action]


def parsers() -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Every command and subcommand with its parser."""
    waiting: list[tuple[tuple[str, ...], argparse.ArgumentParser]] = [
        ((name,), load(name).parser()) for name in COMMANDS
    ]
    while waiting:
        path, parser = waiting.pop(0)
        yield path, parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                waiting += [((*path, name), below) for name, below in action.choices.items()]


ALL = dict(parsers())
SPOKEN = {path: parser for path, parser in ALL.items() if path != ("help",)}  # `help` shows, whatever else is given
every = each_row("path", ALL, ids=" ".join)
spoken = each_row("path", SPOKEN, ids=" ".join)


def options_of(path: tuple[str, ...]) -> Actions:
    return [action for action in ALL[path]._actions if action.option_strings]


def long_names(path: tuple[str, ...]) -> list[str]:
    return [name for action in options_of(path) for name in action.option_strings if name.startswith("--")]


def swapped(word: str) -> str:
    """The word with its last two letters swapped; with one more letter where they are the same."""
    last = word[-1] + word[-2]
    return f"{word}{word[-1]}" if word.endswith(last) else word[:-2] + last


def words_before(path: tuple[str, ...]) -> list[str]:
    """A command line up to where an option of this command can stand."""
    return [*path, *(["zzz"] if path == ("sessions", "resume") else [])]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("ANTIPHON_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> tuple[int, str, str]:
        status = main(list(words))
        done = capsys.readouterr()
        return status, done.out, done.err

    return run


def error_and_hint(err: str) -> tuple[str, str]:
    """The two parts of an error; anything else fails."""
    found = re.fullmatch(r"error: (.+)\nhint: (.+)\n", err, re.DOTALL)
    assert found is not None, err
    return found[1], found[2]


# Errors.


@spoken
def test_an_unknown_option_ends_with_2_and_names_the_help_of_this_very_command(path: tuple[str, ...], run: Run) -> None:
    status, out, err = run(*words_before(path), "--zzzzzz")
    sentence, hint = error_and_hint(err)
    assert (status, out) == (2, "")
    if path == ("record",):  # what stands before its `--` is looked at when there is one
        status, out, err = run("record", "--zzzzzz", "--", "cat")
        sentence, hint = error_and_hint(err)
    assert sentence == "unknown option `--zzzzzz`"
    options_of_chat = path == ("sessions", "resume")
    named = "`antiphon chat --help`" if options_of_chat else f"`antiphon {' '.join(path)} --help`"
    named = "come after `--`" if path[0].startswith("check") else named
    assert named in hint


@spoken
def test_every_option_is_suggested_to_those_who_mistype_it(path: tuple[str, ...], run: Run) -> None:
    names = long_names(path)
    for name in names:
        wrong = swapped(name)
        if wrong in names:
            continue
        tail = ("--", "cat") if path == ("record",) else ()
        status, _, err = run(*words_before(path), wrong, *tail)
        assert (status, wrong in err) == (2, True)
        assert f"did you mean `{name}`?" in error_and_hint(err)[1], (path, wrong)


@every
def test_every_choice_is_suggested_to_those_who_mistype_it(path: tuple[str, ...], run: Run) -> None:
    for action in ALL[path]._actions:
        for choice in map(str, action.choices or ()):
            wrong = swapped(choice)
            if wrong in map(str, action.choices or ()) or path == ("doctor",):  # which knows more names than it offers
                continue
            words = [action.option_strings[-1], wrong] if action.option_strings else [wrong]
            status, _, err = run(*path, *words)
            sentence, hint = error_and_hint(err)
            meant = [each for each in map(str, action.choices or ()) if sorted(each) == sorted(wrong)] or [choice]
            assert status == 2 and wrong in sentence and any(f"did you mean `{each}`?" in hint for each in meant)


@each_row("name", COMMANDS)
def test_every_command_is_suggested_to_those_who_mistype_it(name: str, run: Run) -> None:
    for words in ((swapped(name),), ("help", swapped(name))):
        status, out, err = run(*words)
        assert (status, out) == (2, "") and f"did you mean `{name}`?" in error_and_hint(err)[1]


@spoken
def test_an_option_without_its_value_is_reported_in_our_words(path: tuple[str, ...], run: Run) -> None:
    for action in options_of(path):
        if action.nargs is None and action.option_strings[-1].startswith("--"):
            tail = ("--", "cat") if path == ("record",) else ()
            status, _, err = run(*words_before(path), action.option_strings[-1], *tail)
            assert status == 2
            if path != ("sessions", "resume"):
                assert error_and_hint(err)[0] == f"`{action.option_strings[-1]}` needs a value"


STARTERS = {("agent",), ("chat",), ("fleet", "up"), ("run",), ("serve",)}
"""Commands that start something and do not end by themselves."""


@every
def test_no_message_is_in_the_words_of_argparse(path: tuple[str, ...], run: Run) -> None:
    tries: list[tuple[str, ...]] = [(), ("a", "b", "c", "d"), ("--help=x",), ("--json=x",), ("--", "x")]
    for words in tries:
        if path in STARTERS and not any(word.startswith("--") and word != "--" for word in words):
            continue  # these would start
        err = run(*path, *words)[2]
        for theirs in (
            "argument ",
            "arguments are",
            "invalid choice",
            "unrecognized",
            "expected one",
            "ignored explicit",
        ):
            assert theirs not in err.replace("unexpected argument", "").replace("wrong arguments", ""), (words, err)


@every
def test_an_error_has_no_full_stop_and_begins_small(path: tuple[str, ...], run: Run) -> None:
    for words in ((), ("--zzzzzz",), ("nosuch",)):
        if path in STARTERS and "--zzzzzz" not in words:
            continue
        status, _, err = run(*path, *words)
        if status and err.startswith("error: "):
            for part in error_and_hint(err):
                assert not part.endswith(".") and (
                    part[0] in "`-'" or part[0].islower() or part.split()[0].isupper()
                ), part


ANYTHING = st.text(st.characters(exclude_categories=()), max_size=12)
VALUES = st.sampled_from(
    [
        "0",
        "-1",
        "1e999",
        "nan",
        "1m",
        "5",
        "\u0663",
        "3-5",
        "a=b",
        "=",
        "%",
        "%s",
        "{",
        "all",
        "-",
        "--",
        "",
        "\ud800",
        "9" * 5000,
    ]
)


@given(st.data())
@settings(max_examples=300 if not os.environ.get("ANTIPHON_EXAMPLES") else 100)
def test_any_arguments_are_parsed_or_refused_with_an_error(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(ALL)))
    known = [
        name for action in ALL[path]._actions for name in (*action.option_strings, *map(str, action.choices or ()))
    ]
    name = st.sampled_from(known)
    glued = st.builds(lambda option, value: f"{option}={value}", name, VALUES | ANYTHING)
    words = data.draw(st.lists(name | glued | VALUES | ANYTHING, max_size=6))
    top = load(path[0]).parser()
    for parse in (top.parse_args, top.parse_intermixed_args):
        if parse == top.parse_intermixed_args and any(
            isinstance(each, argparse._SubParsersAction) for each in top._actions
        ):
            continue
        text = ""
        with suppress(SystemExit), redirect_stdout(StringIO()):
            try:
                parse([*path[1:], *words])
            except Misused as error:
                text = str(error)
        assert "invalid " not in text and len(text) < 600, text


# JSON.


@every
def test_with_json_an_error_is_also_one_object_on_stdout(path: tuple[str, ...], run: Run) -> None:
    if "--json" not in long_names(path):
        return
    status, out, err = run(*path, "--json", "--zzzzzz")
    found = json.loads(out)
    assert out.count("\n") == 1 and found["type"] == "error" and found["exitCode"] == status == 2
    sentence, hint = error_and_hint(err)
    assert found["error"] == {"kind": "usage", "message": sentence, "hint": hint, "retryable": False}


@each_row(
    "words",
    [("agents",), ("sessions",), ("sessions", "list"), ("sessions", "search", "x"), ("policy", "list"), ("policy", "log"),
     ("policy", "explain", "Read", "x"), ("check", "--list"), ("check-client", "--list")],
    ids=" ".join,
)  # fmt: skip
def test_with_json_stdout_has_one_object_per_line_and_nothing_else(words: tuple[str, ...], run: Run) -> None:
    status, out, _ = run(*words, "--json")
    assert status == 0
    assert all(isinstance(json.loads(line), dict) for line in out.splitlines())


@each_row("form", [(), ("--json",)], ids=["text", "json"])
@each_row(
    "words",
    [("sessions",), ("sessions", "list"), ("sessions", "search", "x"), ("policy", "list"), ("policy", "log"), ("policy", "trust", "--list")],
    ids=" ".join,
)  # fmt: skip
def test_an_empty_list_is_0_with_nothing_on_stdout_and_a_word_on_stderr(
    words: tuple[str, ...], form: tuple[str, ...], run: Run
) -> None:
    if form and "--json" not in long_names(words[:2] if words[:2] in ALL else words[:1]):
        return
    status, out, err = run(*words, *form)
    assert (status, out) == (0, "") and err.count("\n") == 1


# Help.


@every
def test_every_usage_line_has_one_form(path: tuple[str, ...]) -> None:
    for line in ALL[path].format_usage().removeprefix("usage: ").splitlines():
        assert "..." not in line and "[-" not in line and "%" not in line
        assert line.strip().startswith(f"antiphon {' '.join(path)}")
        assert "[OPTIONS" in line or "--from" in line


@every
def test_defaults_are_shown_in_one_way(path: tuple[str, ...]) -> None:
    for action in ALL[path]._actions:
        help = action.help or ""
        assert not re.search(r"\(\d|without it|without this|if not given|unless told", help), (path, help)
        if isinstance(action.default, int | float) and not isinstance(action.default, bool) and action.nargs != 0:
            assert "(default: " in help, (path, help)


@every
def test_every_value_is_read_by_a_function_that_names_what_it_takes(path: tuple[str, ...]) -> None:
    for action in ALL[path]._actions:
        assert action.type not in (int, float), (path, action.option_strings)


@every
def test_times_have_one_grammar(path: tuple[str, ...]) -> None:
    for action in options_of(path):
        if {"--timeout", "--patience", "--slow"} & set(action.option_strings):
            assert (action.type, action.metavar) == (duration, "TIME"), path
        assert action.metavar != "SECONDS"


@given(st.floats(0.001, 1e6, allow_nan=False), st.sampled_from(["", "ms", "s", "m", "h"]))
def test_a_time_is_a_number_with_or_without_a_unit(number: float, unit: str) -> None:
    text = f"{number:.3f}"
    factor = {"": 1, "ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]
    assert duration(text + unit) == pytest.approx(float(text) * factor)


@given(st.text())
def test_no_text_is_read_as_a_time_that_is_not_above_zero(text: str) -> None:
    with suppress(argparse.ArgumentTypeError):
        assert 0 < duration(text) < float("inf")


@every
def test_the_help_of_a_command_is_the_same_behind_help(path: tuple[str, ...], run: Run) -> None:
    if path == ("help",):
        return
    assert run("help", *path) == run(*path, "--help")


def test_the_help_of_all_names_every_command_and_every_common_status(run: Run) -> None:
    status, out, _ = run("--help")
    assert status == 0 and all(
        re.search(rf"^  {name} +{re.escape(what)}$", out, re.MULTILINE) for name, what in COMMANDS.items()
    )
    flat = " ".join(out.split())
    assert all(f"{number} {what}" in flat for number, what in STATUSES.items())


@each_row(("name", "what"), COMMANDS.items())
def test_a_command_is_described_in_one_plain_line(name: str, what: str) -> None:
    assert re.fullmatch(r"[A-Z][a-z]+,? [^.:;]{5,50}", what), name


@pytest.mark.parametrize("word", ["soon", "x" * 60, "x" * 61, "x" * 5000])
def test_an_error_shortens_the_word_it_quotes_and_nothing_between_two_of_them(word: str, run: Run) -> None:
    _, _, err = run("run", "--timeout", word, "hi")
    shown = word if len(word) <= 60 else f"{word[:60]}…"
    sentence = f"`--timeout`: `{shown}` is not a time: give seconds, or a number with a unit, such as `90s`, `5m`, `1h`"
    assert error_and_hint(err)[0] == sentence


@given(st.text(min_size=1, max_size=20), st.lists(st.text(min_size=1, max_size=10), max_size=5))
def test_a_suggestion_is_one_of_the_known_words_or_nothing(word: str, known: list[str]) -> None:
    text = did_you_mean(word, known)
    assert text == "" or any(text == f"did you mean `{each}`? " for each in known)


# Colours.


@pytest.mark.parametrize(
    ("words", "environment", "coloured"),
    [
        ((), {}, False),
        ((), {"FORCE_COLOR": "1"}, True),
        ((), {"FORCE_COLOR": "0"}, False),
        ((), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        (("--color=always",), {}, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, False),
        (("--color", "auto"), {"FORCE_COLOR": "1"}, True),
    ],
)
@pytest.mark.parametrize("before", [True, False], ids=["before the command", "behind it"])
def test_the_colours_of_errors_follow_the_option_then_the_environment(
    words: tuple[str, ...],
    environment: dict[str, str],
    coloured: bool,
    before: bool,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    line = (*words, "agents", "check") if before else ("agents", "check", *words)
    status, _, err = run(*line)
    assert status == 2 and "AGENT is missing" in err
    assert ("\x1b[1;31merror:\x1b[0m" in err and "\x1b[36mhint:\x1b[0m" in err) is coloured


def test_every_kind_of_error_is_the_name_of_a_class_that_exists() -> None:
    names = {"OSError"}
    for info in pkgutil.walk_packages(antiphon.__path__, "antiphon."):
        if info.name != "antiphon.__main__":
            names |= {name for name, thing in vars(import_module(info.name)).items() if isinstance(thing, type)}
    assert set(KINDS) <= names


def test_every_parser_is_ours() -> None:
    assert all(isinstance(parser, Parser) for parser in ALL.values())
