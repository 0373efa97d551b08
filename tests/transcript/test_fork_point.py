"""Where a fork is cut, by the texts of the prompts that it leaves out."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from antiphon.transcript.fork_point import CLIPPED, cut_point, dropped_prompts, fork_meta
from tests.rows import each_row

LONG = "a song of many words " * 10


@each_row(
    ("prompts", "dropped", "cut"),
    [
        (["a", "b", "c"], ["c"], 2),
        (["a", "b", "c"], ["a", "b", "c"], 0),
        (["a", "a", "a"], ["a", "a"], 1),  # equal ones are counted from the end
        (["a", "b", "c"], ["b", "c"], 1),
        (["a", "b", "typed elsewhere"], ["b"], 1),
        (["a", "b"], ["b", "never arrived"], 1),
        (["a b\n c"], ["a  b c"], 0),  # white space is stored in different ways
        (["a", LONG[: CLIPPED + 20]], [LONG], 1),
        (["a", "go on with it"], ["go on"], None),
        (["a"], ["b"], None),
        (["a", "b"], ["never arrived", "b"], None),  # where to begin is not certain
        ([], ["a"], None),
        (["a"], [], None),
    ],
)
def test_a_fork_is_cut_before_the_first_prompt_that_is_left_out(
    prompts: list[str], dropped: list[str], cut: int | None
) -> None:
    assert cut_point(prompts, dropped) == cut


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.data())
def test_the_last_prompts_are_found_whatever_they_are(prompts: list[str], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(prompts) - 1))
    assert cut_point(prompts, prompts[cut:]) == cut


@each_row("meta", [None, {}, {"antiphon": 1}, {"antiphon": {"dropped": "a"}}, {"antiphon": {"dropped": [1]}}])
def test_a_request_that_names_no_prompts_leaves_none_out(meta: "dict[str, Any] | None") -> None:
    assert dropped_prompts(meta) == []
    assert dropped_prompts(fork_meta(["a", "b"])) == ["a", "b"]
