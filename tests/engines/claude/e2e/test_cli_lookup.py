"""Finding Claude Code, and starting it in time."""

from pathlib import Path

from tests.engines.claude.place import Place
from tests.engines.claude.proofs import STAND_IN, proves
from tests.engines.client import Client, connected


async def starts(client: Client) -> None:
    await client.open()
    await client.until(lambda: client.session.commands)


@proves("find.one-process", "find.ahead")
async def test_every_session_has_a_process_that_is_there_before_the_first_prompt(at: Place) -> None:
    async with connected(at) as client:
        await starts(client)  # the first time the program is asked for its version
        first = client.session
        for _ in range(2):
            await client.open()
        before = set(await at.runs(3))
        assert at.model.asked == []
        assert (await client.say("hello")).text == "echo: hello"
        assert (await client.say("hello there", first)).text == "echo: hello there"
        assert set(await at.runs(3)) == before  # each was used, and none was added
        await first.close()
        await at.runs(2)


@proves("find.fast", on=[STAND_IN])
async def test_a_session_does_not_wait_for_a_silent_program(at: Place, tmp_path: Path) -> None:
    mute = tmp_path / "claude"
    mute.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "2.1.325 (Claude Code)" && exit\nexec cat > /dev/null\n',
        encoding="utf-8",
    )
    mute.chmod(0o755)
    at.environment["CLAUDE_CODE_EXECUTABLE"] = str(mute)
    async with connected(at) as client:
        await client.open()
        assert client.session.modes is not None and client.option("model").current_value == "default"
