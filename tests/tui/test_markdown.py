"""Markdown, links and images as a terminal shows them."""

import base64
import re
import stat
from pathlib import Path

from antiphon.protocol import v1
from antiphon.text import strip_ansi
from antiphon.tui.output.images import ImagePainter, image_protocol
from antiphon.tui.output.links import without_links
from antiphon.tui.painter import Painter
from antiphon.tui.screen import ChatScreen
from tests.rows import each_row

PAINTER = Painter(60, {"TERM": "xterm-256color"})
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (90).to_bytes(4, "big") + (50).to_bytes(4, "big") + b"\0" * 9000


def plain(text: str, cwd: str = "") -> list[str]:
    return [strip_ansi(line).rstrip() for line in PAINTER.markdown(text, cwd)]


def links(lines: list[str]) -> list[str]:
    return [uri for line in lines for uri in re.findall("\x1b\\]8;[^;]*;([^\x1b]+)\x1b", line)]


def test_tasks_have_boxes_and_other_items_their_bullets() -> None:
    text = "- [ ] open\n- [x] done\n- plain [x] item\n- [] none\n\n1. [ ] first"
    assert plain(text) == [" ☐ open", " ☑ done", " • plain [x] item", " • [] none", "", " 1 ☐ first"]
    assert plain("- [x] done\n  - a part\n    - [ ] open\n") == [" ☑ done", "    • a part", "       ☐ open"]


def test_a_link_can_be_clicked_and_its_address_is_shown() -> None:
    lines = PAINTER.markdown("see [the docs](https://example.org/a) and <https://example.org/b>")
    assert [strip_ansi(line) for line in lines] == [
        "see the docs (https://example.org/a) and",
        "https://example.org/b",
    ]
    assert set(links(lines)) == {"https://example.org/a", "https://example.org/b"}
    assert "\x1b]8" not in without_links("".join(lines)) and strip_ansi("".join(lines)) == strip_ansi(
        without_links("".join(lines))
    )


@each_row("address", ["javascript:alert(1)", "vscode://run?x", "data:text/html,x", "https://example.org/\u202e"])
def test_an_address_that_is_not_safe_to_open_is_text(address: str) -> None:
    lines = PAINTER.markdown(f"[x](<{address}>) ![y](<{address}>)")
    assert not links(lines) or all(uri.isascii() and uri.startswith("https:") for uri in links(lines))
    assert "x" in strip_ansi("".join(lines))


def test_a_path_in_code_can_be_clicked_if_there_is_such_a_file(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "calc.py").touch()
    lines = PAINTER.markdown("`src/calc.py:12`, `src/none.py`, `import os`, `src`", str(tmp_path))
    [uri] = links(lines)
    assert uri.endswith(f"{tmp_path}/src/calc.py") and uri.startswith("file://")
    assert not links(PAINTER.markdown("`src/calc.py`"))


def test_the_path_in_the_title_of_a_call_can_be_clicked() -> None:
    screen = ChatScreen(PAINTER, cwd="/w")
    place = v1.ToolLocation("/w/src/calc.py", 3)
    screen.apply(v1.ToolCall("1", "Edit src/calc.py", v1.ToolKind.EDIT, v1.ToolStatus.COMPLETED, locations=[place]))
    screen.end_turn()
    lines = screen.take()
    assert [uri.partition("/w")[2] for uri in links(lines)] == ["/src/calc.py"]
    assert strip_ansi(lines[0]) == "✓ Edit src/calc.py"


@each_row(
    ("setting", "environment", "protocol"),
    [
        ("auto", {"TERM": "xterm-kitty"}, "kitty"),
        ("auto", {"TERM": "xterm-256color", "TERM_PROGRAM": "ghostty"}, "kitty"),
        ("auto", {"TERM_PROGRAM": "iTerm.app"}, "iterm"),
        ("auto", {"LC_TERMINAL": "iTerm2"}, "iterm"),
        ("auto", {"TERM": "foot"}, "sixel"),
        ("auto", {"TERM": "xterm-256color"}, None),
        ("auto", {"TERM": "xterm-kitty", "TMUX": "x"}, None),
        ("off", {"TERM": "xterm-kitty"}, None),
        ("sixel", {"TERM": "xterm"}, "sixel"),
    ],
)
def test_a_terminal_is_known_by_its_variables(setting: str, environment: dict[str, str], protocol: str | None) -> None:
    assert image_protocol(setting, environment) == protocol


def test_an_image_is_sent_whole_in_the_protocol_of_the_terminal() -> None:
    data = base64.b64encode(PNG).decode()
    kitty = ImagePainter("kitty").line(data, 80) or ""
    chunks = re.findall("\x1b_G([^;]*);([^\x1b]*)\x1b\\\\", kitty)
    assert "".join(chunk for _, chunk in chunks) == data and "r=3" in chunks[0][0] and chunks[-1][0] == "m=0"
    iterm = ImagePainter("iterm").line(data, 80) or ""
    assert iterm.startswith("\x1b]1337;File=inline=1;") and iterm.endswith(f":{data}\x07")
    assert ImagePainter(None).line(data, 80) is None


@each_row("data", ["no base64", base64.b64encode(b"no image").decode(), base64.b64encode(b"\x89PNG").decode()])
def test_what_is_no_image_is_not_sent_to_the_terminal(data: str) -> None:
    assert ImagePainter("kitty").line(data, 80) is None


def test_sixels_are_made_by_a_program(tmp_path: Path) -> None:
    program = tmp_path / "img2sixel"
    program.write_text("#!/bin/sh\nprintf '\\033Pq#0~\\033\\\\'\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    data = base64.b64encode(PNG).decode()
    assert ImagePainter("sixel", {"PATH": str(tmp_path)}).line(data, 80) == "\x1bPq#0~\x1b\\"
    assert ImagePainter("sixel", {"PATH": "/nowhere"}).line(data, 80) is None


def test_an_image_stands_below_its_word_in_messages_and_calls() -> None:
    screen = ChatScreen(Painter(60, colour=False))
    screen.images = ImagePainter("kitty")
    image = v1.ImageBlock(base64.b64encode(PNG).decode(), "image/png")
    screen.apply(v1.AgentMessageChunk(v1.TextBlock("look: ")))
    screen.apply(v1.AgentMessageChunk(image))
    screen.apply(v1.ToolCall("1", "Draw", status=v1.ToolStatus.COMPLETED, content=[v1.ContentItem(image)]))
    assert not any("\x1b_G" in line for line in screen.live(20))
    screen.end_turn()
    shown = ["image" if line.startswith("\x1b_G") else line for line in screen.take() if line]
    assert shown == [
        "look:",
        "[image: image/png, 9024 bytes]",
        "image",
        "✓ Draw",
        "  [image: image/png, 9024 bytes]",
        "image",
    ]
