"""Streaming Markdown is cut into blocks, however it is cut into pieces."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.tui.blocks import LONGEST, Block, Splitter

TEXT = """\
# Title
A paragraph
of two lines:
- one
- two
  more of two

  a second paragraph of two
- three

10. ten
11. eleven

```python
a = 1

b = 2
```
After the fence.

| a | b |
|---|---|
| 1 | 2 |

> quote

---
The end, without a line end"""


def split(text: str, *cuts: int) -> list[Block]:
    splitter = Splitter()
    found: list[Block] = []
    for begin, end in zip((0, *cuts), (*cuts, len(text)), strict=True):
        found += splitter.feed(text[begin:end])
    return found + splitter.finish()


def test_blocks_end_where_nothing_can_change_them_any_more() -> None:
    assert split(TEXT) == [
        Block("# Title"),
        Block("A paragraph\nof two lines:"),
        Block("- one", gap=False),
        Block("- two\n  more of two\n\n  a second paragraph of two", gap=False),
        Block("- three", gap=False),
        Block("10. ten"),
        Block("11. eleven", gap=False),
        Block("```python\na = 1\n\nb = 2\n```"),
        Block("After the fence."),
        Block("| a | b |\n|---|---|\n| 1 | 2 |"),
        Block("> quote"),
        Block("---"),
        Block("The end, without a line end"),
    ]


@given(st.lists(st.integers(0, len(TEXT)), max_size=8).map(sorted))
def test_it_does_not_matter_where_the_pieces_are_cut(cuts: list[int]) -> None:
    assert split(TEXT, *cuts) == split(TEXT)


@given(st.text(alphabet="ab `~#-*1.>|\n", max_size=200))
def test_nothing_is_lost_and_nothing_shown_twice(text: str) -> None:
    assert re.sub(r"\s", "", "".join(block.text for block in split(text))) == re.sub(r"\s", "", text)


def test_a_finished_block_is_given_out_at_once_and_the_open_one_can_be_seen() -> None:
    splitter = Splitter()
    assert splitter.feed("one\n\ntw") == [Block("one")]
    assert splitter.open == Block("tw")
    assert splitter.feed("o") == []
    assert splitter.finish() == [Block("two")] and splitter.open is None


@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_an_open_fence_is_one_block_until_it_is_closed(fence: str) -> None:
    splitter = Splitter()
    assert splitter.feed(f"{fence}sh\nls\n\n# no heading\n- no item\n") == []
    assert splitter.feed(f"{fence}\n") == [Block(f"{fence}sh\nls\n\n# no heading\n- no item\n{fence}")]


def test_a_fence_inside_an_item_belongs_to_the_item() -> None:
    text = "1. do this:\n\n   ```sh\n   ls\n\nnot the end\n   ```\n2. done"
    assert [block.text for block in split(text)] == [text[: text.index("\n2.")], "2. done"]


def test_no_block_grows_without_end() -> None:
    words = "word " * LONGEST
    blocks = split(words)
    assert "".join(block.text for block in blocks) == words and max(len(block.text) for block in blocks) <= LONGEST
    assert not any(block.gap for block in blocks[1:])
    code = split("```py\n" + "x = 1\n" * LONGEST + "```")
    assert len(code) > 1 and all(block.text.startswith("```py\n") and block.text.endswith("```") for block in code)
    assert sum(block.text.count("x = 1") for block in code) == LONGEST
