"""`antiphon run --agent URL`: a remote agent from the command line, with its token, its sessions and its errors."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from antiphon.transports.asgi import AcpEndpoint, Admission, Refusal
from antiphon.transports.asgi.heads import header_of
from tests.cli.program import Done, Place
from tests.transports.serving import serve_demo, served

TOKEN = "t0ken-that-is-secret"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("ANTIPHON_STATE_DIR", f"{tmp_path}/of-the-server")
    return Place(tmp_path)


async def admit(scope: Any) -> Admission | Refusal:
    given = header_of(scope, b"authorization") == f"Bearer {TOKEN}"
    return Admission(serve_demo) if given else Refusal(401, "give a token")


async def run(place: Place, *words: str, **options: Any) -> Done:
    return await asyncio.to_thread(place.run, *words, **options)


def files_of(place: Place) -> bytes:
    """All that the command has written: its log, its database, its history."""
    return b"".join(path.read_bytes() for path in sorted(place.state.rglob("*")) if path.is_file())


@pytest.mark.parametrize("profile", ["http", "ws"])
async def test_a_prompt_goes_to_an_address_with_the_token_of_a_file_or_of_the_environment(
    profile: str, place: Place
) -> None:
    (place.cwd / "token").write_text(f"{TOKEN}\n", encoding="utf-8")
    async with served(AcpEndpoint(admit=admit)) as host:
        address = f"{profile}://{host}/acp"
        first = await run(place, "--agent", address, "--token-file", "token", "--session", "s", "hello")
        assert first.status == 0 and "I am a demo" in first.out, first.err
        again = await run(place, "--agent", address, "--session", "s", "and again", env={"ANTIPHON_TOKEN": TOKEN})
        assert again.status == 0 and "I am a demo" in again.out, again.err
        refused = await run(place, "--agent", address, "hello")
        assert refused.status == 1 and "HTTP status 401" in refused.err and "hint: " in refused.err
        assert "--token-file" in refused.err
    everything = f"{first}{again}{refused}".encode() + files_of(place)
    assert TOKEN.encode() not in everything


async def test_an_address_where_nothing_listens_is_one_sentence_and_a_hint_without_what_is_secret(place: Place) -> None:
    async with served(AcpEndpoint(serve_demo)) as host:
        pass
    done = await run(place, "--agent", f"ws://{host}/acp?key={TOKEN}", "hello")
    assert done.status == 1 and f"`ws://{host}/acp` was not reached" in done.err and "hint: " in done.err
    assert TOKEN not in done.err and TOKEN.encode() not in files_of(place)


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, "cannot be read"), ("", "holds no token"), ("two words", "holds no token"), ("tökén", "not ASCII")],
    ids=["missing", "empty", "two", "accents"],
)
async def test_a_token_file_that_holds_none_is_refused_before_anything_is_sent(
    place: Place, text: str | None, words: str
) -> None:
    if text is not None:
        (place.cwd / "token").write_text(text, encoding="utf-8")
    done = await run(place, "--agent", "ws://127.0.0.1:9/acp", "--token-file", "token", "hello")
    assert done.status == 2 and words in done.err


async def test_a_token_for_a_local_agent_is_refused_and_that_of_the_environment_reaches_no_agent(place: Place) -> None:
    (place.cwd / "token").write_text(TOKEN, encoding="utf-8")
    done = await run(place, "--agent", "demo", "--token-file", "token", "hello")
    assert done.status == 2 and "needs no token" in done.err
    shown = await run(place, "--agent", "demo", "--allow", "Bash(env)", "/run env", env={"ANTIPHON_TOKEN": TOKEN})
    assert "ANTIPHON_STATE_DIR=" in shown.err and TOKEN not in shown.err
