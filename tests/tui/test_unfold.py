"""What is shown in part can be shown whole: what the pager and the screen get is all of the output, line by line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import RenderableType

from antiphon.protocol import v1
from antiphon.text import strip_ansi
from antiphon.tui.output.pager import page_of, pager_command
from antiphon.tui.output.unfold import OutputViewer
from antiphon.tui.painter import Painter, clean
from antiphon.tui.screen import ChatScreen
from antiphon.tui.terminals import TerminalTail


class Viewed:
    """A screen with a viewer, and the pages that it opened."""

    def __init__(self, rows: int = 24, tails: dict[str, TerminalTail] | None = None, *, width: int = 60) -> None:
        self.screen = ChatScreen(Painter(width, {"TERM": "xterm-256color"}), (tails or {}).get, "/w")
        self.pages: list[list[str]] = []
        self.viewer = OutputViewer(self.screen, lambda: rows, self.pages.append, lambda: None)

    def output(self, id: str, text: str, kind: v1.ToolKind = v1.ToolKind.READ) -> None:
        content: list[v1.ToolContent] = [v1.ContentItem(v1.TextBlock(text))]
        self.screen.apply(v1.ToolCall(id, f"Call {id}", kind, v1.ToolStatus.COMPLETED, content=content))
        self.screen.end_turn()
        self.screen.take()

    def written(self) -> list[str]:
        return [strip_ansi(line).rstrip() for line in self.screen.take()]


def paged(lines: list[str]) -> list[str]:
    """What less is given."""
    return strip_ansi(page_of(lines, ["less"]).decode()).split("\n")[:-1]


LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029`"), max_size=60)
LONG_LINE = st.builds(lambda line, times: f"{line}." * times, LINE, st.integers(1, 20))


@settings(max_examples=30, deadline=None)
@given(st.lists(LINE | LONG_LINE, min_size=25, max_size=60), st.sampled_from([v1.ToolKind.READ, v1.ToolKind.EXECUTE]))
def test_the_pager_gets_every_line_of_an_output(lines: list[str], kind: v1.ToolKind) -> None:
    text = "\n".join(["first", *lines, "last"])
    viewed = Viewed()
    viewed.output("1", text, kind)
    viewed.viewer.show_next()
    [page] = viewed.pages
    assert paged(page) == ["✓ Call 1", *(f"  {clean(line)}".rstrip(" ") for line in text.split("\n"))]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(alphabet="ab é日", max_size=100), min_size=10, max_size=40))
def test_what_fits_on_the_screen_is_written_below_and_is_the_same(lines: list[str]) -> None:
    viewed = Viewed(rows=1000)
    viewed.output("1", "\n".join(["first", *lines, "last"]))
    viewed.viewer.show_next()
    shown = viewed.written()
    assert not viewed.pages and "✓ Call 1" in shown
    everything = "".join("".join(shown[shown.index("✓ Call 1") + 1 :]).split())
    assert everything == "".join("".join(["first", *lines, "last"]).split())


@pytest.mark.parametrize("kind", [v1.ToolKind.READ, v1.ToolKind.EXECUTE])
@pytest.mark.parametrize(
    "text", ["x" * 500, '{"a": 1}' * 10_000, "one\n" + "two words " * 5_000 + "\nthree", "y" * 16_001]
)
def test_a_line_that_is_longer_than_the_screen_is_shown_in_part_and_unfolded_whole(
    text: str, kind: v1.ToolKind
) -> None:
    viewed = Viewed(rows=8)
    viewed.screen.apply(
        v1.ToolCall("1", "Fetch", kind, v1.ToolStatus.COMPLETED, content=[v1.ContentItem(v1.TextBlock(text))])
    )
    viewed.screen.end_turn()
    shown = viewed.written()
    assert len(shown) < 20 and any(line.endswith(" long lines are cut · Ctrl-O") for line in shown)
    viewed.viewer.show_next()
    assert paged(viewed.pages[0])[1:] == [f"  {line}".rstrip() for line in text.split("\n")]


def test_a_change_of_one_long_line_is_shown_in_part_and_unfolded_whole() -> None:
    viewed = Viewed()
    change = v1.Diff("/w/a.min.js", "new;" * 5_000, "old;" * 5_000)
    viewed.screen.apply(v1.ToolCall("1", "Edit", v1.ToolKind.EDIT, v1.ToolStatus.COMPLETED, content=[change]))
    viewed.screen.end_turn()
    shown = viewed.written()
    assert len(shown) < 20 and any(line.endswith(" long lines are cut · Ctrl-O") for line in shown)
    viewed.viewer.show_next()
    assert [line.split(maxsplit=2)[-1] for line in paged(viewed.pages[0])[2:]] == ["old;" * 5_000, "new;" * 5_000]


def test_blank_lines_of_an_output_are_kept() -> None:
    viewed = Viewed(rows=100)
    viewed.screen.apply(
        v1.ToolCall("1", "Read", v1.ToolKind.READ, content=[v1.ContentItem(v1.TextBlock("def a\n\n\ndef b"))])
    )
    viewed.screen.end_turn()
    assert viewed.written()[1:] == ["  def a", "", "", "  def b"]


def test_the_output_of_a_command_that_runs_can_be_unfolded_and_so_can_all_earlier_ones() -> None:
    tails = {"t": TerminalTail("".join(f"{number}\n" for number in range(100)))}
    viewed = Viewed(tails=tails)
    viewed.output("1", "\n".join(f"one {number}" for number in range(40)))
    viewed.output("2", "short")
    viewed.output("3", "\n".join(f"three {number}" for number in range(40)))
    viewed.screen.apply(
        v1.ToolCall("4", "Run", v1.ToolKind.EXECUTE, v1.ToolStatus.IN_PROGRESS, content=[v1.TerminalItem("t")])
    )
    for _ in range(4):
        viewed.viewer.show_next()
    assert [paged(page)[-1] for page in viewed.pages] == ["  99", "  three 39", "  one 39", "  99"]
    tails["t"] = TerminalTail(tails["t"].text + "100\n")
    viewed.viewer.show_next()  # the next older one again, since nothing is newer
    assert paged(viewed.pages[-1])[-1] == "  three 39"
    assert [output.title for output in viewed.viewer.folded()] == ["Run", "Call 3", "Call 1"]


def test_changes_and_long_prompts_are_unfolded_too() -> None:
    viewed = Viewed()
    viewed.screen.show_prompt("\n".join(f"word {number}" for number in range(30)))
    assert [line for line in viewed.written() if "more lines" in line] == ["  … 19 more lines · Ctrl-O"]
    change = v1.Diff("/w/a.txt", "".join(f"{number}\n" for number in range(300)))
    viewed.screen.apply(v1.ToolCall("1", "Edit", v1.ToolKind.EDIT, v1.ToolStatus.COMPLETED, content=[change]))
    viewed.viewer.show_next()
    assert [line.split("+ ")[1] for line in paged(viewed.pages[0])[2:]] == [str(number) for number in range(300)]
    viewed.viewer.show_next()
    assert paged(viewed.pages[1]) == [f"word {number}" for number in range(30)]


def test_a_long_output_costs_no_more_to_show_in_part_than_a_short_one() -> None:
    looked_at: list[int] = []

    class Counted(str):
        def splitlines(self, keepends: bool = False) -> list[str]:
            looked_at.append(len(self))
            return super().splitlines(keepends)

    viewed = Viewed(tails={"t": TerminalTail(Counted("x" * 70 + "\n") * 100_000)})
    call = v1.ToolCall("1", "Run", v1.ToolKind.EXECUTE, content=[v1.TerminalItem("t")])
    viewed.screen.apply(call)
    lines = [strip_ansi(line) for line in viewed.screen.live(20)]
    assert "  … 99991 more lines · Ctrl-O" in lines and not looked_at


def test_the_pager_is_the_one_that_the_user_wants() -> None:
    assert pager_command({"PATH": "/bin:/usr/bin", "PAGER": "sort -r"}) == ["sort", "-r"]
    assert (pager_command({"PATH": "/bin:/usr/bin", "PAGER": "/not/here"}) or [""])[0].endswith(("less", "more"))
    assert pager_command({"PATH": "/nowhere"}) is None
    assert pager_command({"PATH": "/bin:/usr/bin", "PAGER": "cat"}) is None


def test_a_pager_without_colours_gets_none() -> None:
    things: list[RenderableType] = ["[bold]"]
    lines = ["\x1b[1mbold\x1b[0m", *Painter(40).unwrapped(things)]
    assert page_of(lines, ["/usr/bin/more"]) == b"bold\n[bold]\n" and b"\x1b[1m" in page_of(lines, ["less"])
