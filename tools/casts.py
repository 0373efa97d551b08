"""Record terminal sessions with the real program, as animated SVGs: `python tools/casts.py [NAME …]` writes them to docs/assets/casts.

`run` and `chat` use the demo agent. `duet` has the real Claude Code and Codex answer, each with a model that is scripted and listens on this machine.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from terminal_film import Film, FilmedTerminal  # type: ignore[import-not-found,unused-ignore]  # noqa: E402  # beside this one

CASTS: Final = ROOT / "docs" / "assets" / "casts"
PROMPT: Final = "song $ "


HOME: Final = Path(tempfile.gettempdir()).resolve() / "ada"
"""The home of every recording. It is shown on the screen, so it is short, and the same on every machine."""


def _environment(home: Path) -> dict[str, str]:
    path = os.pathsep.join([str(home / "bin"), os.path.dirname(sys.executable), os.environ["PATH"]])
    return {
        "HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "PS1": PROMPT, "BASH_SILENCE_DEPRECATION_WARNING": "1",
        "CLAUDE_CODE_EXECUTABLE": "/not/here/claude", "CODEX_EXECUTABLE": "/not/here/codex",
    }  # fmt: skip


def _shell(cwd: Path, env: Mapping[str, str], size: tuple[int, int], title: str) -> FilmedTerminal:
    terminal = FilmedTerminal(["bash", "--norc", "--noprofile"], cwd=cwd, env=env, size=size, title=title)
    terminal.wait_for_prompt(PROMPT, 0.6)
    return terminal


def _commands(terminal: FilmedTerminal, *commands: tuple[str, float]) -> Film:
    """Type commands into a shell, and show the end of each for so long."""
    for command, seconds in commands:
        terminal.type(command)
        terminal.press("\r")
        terminal.wait_for_prompt(PROMPT, seconds)
    film: Film = terminal.film
    terminal.close()
    return film


def _song(folder: Path) -> Path:
    song = folder / "song"
    song.mkdir()
    (song / "notes.txt").write_text("First voice\n", encoding="utf-8")
    return song


def run(folder: Path) -> Film:
    """A prompt, a permission that is denied, and the same with a rule."""
    title = "antiphon run: a prompt, an edit that is denied without a terminal, and the same edit with a rule that allows it"
    terminal = _shell(_song(folder), _environment(folder), (98, 20), title)
    return _commands(
        terminal,
        ("antiphon run --agent demo hello", 2.5),
        ('antiphon run --agent demo "/edit notes.txt Second voice" < /dev/null 2> /dev/null; echo $?', 3.0),
        ("antiphon run --agent demo --allow 'Edit(notes.txt)' \"/edit notes.txt Second voice\"", 4.0),
        ("antiphon policy explain --allow 'Bash(ls *)' Bash 'ls; rm -rf ~'", 4.5),
    )


def chat(folder: Path) -> Film:
    """A chat with the demo: an answer, an edit that is asked about, and the end."""
    title = "antiphon chat: a prompt, an edit that asks for permission, and the answer"
    terminal = _shell(_song(folder), _environment(folder), (88, 26), title)
    terminal.type("antiphon chat demo")
    terminal.press("\r")
    terminal.wait_for("/help", 1.5)
    terminal.type("hello")
    terminal.press("\r")
    terminal.wait_for("I am a demo without a model", 2.0)
    terminal.type("/edit notes.txt Second voice")
    terminal.press("\r")
    terminal.wait_for("First voice", 3.0)
    terminal.press("y")
    terminal.wait_for("has 2 lines now", 3.0)
    film: Film = terminal.film
    terminal.close()
    return film


def setup(folder: Path) -> Film:
    """An editor that is set up: the change, the question, and how to take it back."""
    song = _song(folder)
    (folder / ".config" / "zed").mkdir(parents=True)
    (folder / ".config" / "zed" / "settings.json").write_text(
        '// mine\n{\n  "theme": "One Dark"\n}\n', encoding="utf-8"
    )
    title = "antiphon setup zed: the change of the settings is shown, and made after a yes"
    terminal = _shell(song, _environment(folder), (98, 26), title)
    terminal.type("antiphon setup zed")
    terminal.press("\r")
    terminal.wait_for("(y yes, n no)", 3.5)
    terminal.press("y\r")
    terminal.wait_for_prompt(PROMPT, 4.0)
    film: Film = terminal.film
    terminal.close()
    return film


def duet(folder: Path) -> Film:
    """Claude Code and Codex answer one prompt; their models are scripted."""
    from tests.duet.e2e.editors import missing, place

    if words := missing():
        raise SystemExit(f"error: not installed: {words}")
    with place(folder) as at:
        at.answer("No: 91 is 7 \u00d7 13.", "It is not. 7 \u00d7 13 = 91.")
        env = {**_environment(folder), **at.environment}
        env["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), env["PATH"]])
        title = "antiphon run /duet: Claude Code and Codex both answer one prompt"
        terminal = _shell(at.folder, env, (72, 14), title)
        return _commands(terminal, ('antiphon run -q "/duet Is 91 a prime?"', 5.0))


RECORDED: Final[dict[str, Callable[[Path], Film]]] = {"run": run, "chat": chat, "setup": setup, "duet": duet}


def record(name: str) -> Film:
    """Record one of them, in a directory of its own."""
    HOME.mkdir()  # an error if another recording runs: two cannot share it
    try:
        (HOME / "bin").mkdir()
        (HOME / "bin" / "antiphon").symlink_to(Path(sys.executable).with_name("antiphon"))
        return RECORDED[name](HOME)
    finally:
        shutil.rmtree(HOME)


if __name__ == "__main__":
    CASTS.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or RECORDED:
        film = record(name)
        (CASTS / f"{name}.svg").write_text(film.svg(), encoding="utf-8")
        sys.stdout.write(f"{CASTS / name}.svg: {len(film.frames)} screens\n")
