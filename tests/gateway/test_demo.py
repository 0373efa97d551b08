"""The hub with the real process of the demo agent."""

from pathlib import Path

from tests.gateway.peers import demo, stage


async def test_a_prompt_is_answered_by_the_process_behind_the_hub(tmp_path: Path) -> None:
    async with stage(tmp_path, source=lambda: demo(tmp_path)) as place:
        client = await place.client()
        session = await client.new(tmp_path)
        done = await client.response(client.prompt(session, "/many 100"))
        assert done["result"]["stopReason"] == "end_turn"
        assert "".join(client.texts) == "".join(f"{number} " for number in range(100))
