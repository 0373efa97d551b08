"""The client without `async`: the same verbs, from a script, beside a running loop, and interrupted."""

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import pytest

from antiphon.client import sync
from antiphon.client.handlers import Elicitation
from antiphon.errors import AuthRequired, ConnectionClosed, NotSupported
from antiphon.protocol import v1
from tests.client import deviations as d
from tests.client import troubles as t
from tests.client.agents import ROOT, Scripted

MINIMAL = [sys.executable, str(ROOT / "examples" / "minimal_agent.py")]


def test_a_script_iterates_over_a_turn_and_has_its_result() -> None:
    with sync.connect(MINIMAL) as agent:
        assert agent.name == "minimal" and agent.info == v1.Implementation("minimal", "1.0")
        session = agent.new_session()
        turn = session.prompt("one two")
        texts = [update.content for update in turn if isinstance(update, v1.AgentMessageChunk)]
        assert texts == [v1.TextBlock("one "), v1.TextBlock("two ")]
        assert turn.result.stop_reason == v1.StopReason.END_TURN
        assert session.prompt("three").text() == "three "
        assert session.transcript.plain().startswith("> one two")
        assert session.id and (session.cwd, session.title, session.commands) == (os.getcwd(), None, None)


async def test_it_works_where_a_loop_runs_already() -> None:
    with sync.connect(MINIMAL) as agent:
        assert agent.new_session().prompt("hi").text() == "hi "


@pytest.mark.parametrize(("limit", "kept"), [(None, 6), (3, 3), (0, 0)])
def test_a_transcript_can_be_bounded_and_switched_off(limit: int | None, kept: int) -> None:
    with sync.connect(MINIMAL, transcript=limit) as agent:
        session = agent.new_session()
        assert [session.prompt(word).text() for word in ("one", "two", "three")] == ["one ", "two ", "three "]
        assert (len(session.transcript.entries), session.transcript.dropped) == (kept, 6 - kept)


def test_a_handler_may_block(tmp_path: Path) -> None:
    threads: list[str] = []

    def ask(request: v1.RequestPermission) -> str:
        threads.append(threading.current_thread().name)
        return "yes"

    with sync.connect(Scripted(d.AsksFirst, tmp_path).command, cwd=ROOT, permission=ask) as agent:
        assert agent.new_session().prompt("hi").text() == "yes"
    assert threads == ["antiphon handler"]


def test_a_handler_that_fails_grants_nothing(tmp_path: Path) -> None:
    def fail(_: v1.RequestPermission) -> bool:
        raise ValueError("no idea")

    script = Scripted(d.VendorMethods, tmp_path)
    with sync.connect(script.command, cwd=ROOT, permission=fail) as agent:
        assert agent.new_session().prompt("permission").text() == "-32603"


def waits_in(file: str) -> bool:
    """Whether the main thread is at work in a module."""
    frame: FrameType | None = sys._current_frames()[threading.main_thread().ident or 0]
    while frame is not None:
        if frame.f_code.co_filename == file:
            return True
        frame = frame.f_back
    return False


def test_ctrl_c_cancels_the_turn_and_the_session_goes_on(tmp_path: Path) -> None:
    never, asked = threading.Event(), threading.Event()

    def interrupt(_: v1.RequestPermission) -> bool:
        asked.wait()
        while not waits_in(sync.__file__):  # only then is it the turn that is interrupted, and nothing else
            pass
        os.kill(os.getpid(), signal.SIGINT)
        return never.wait()

    script = Scripted(t.AsksForever, tmp_path)
    with sync.connect(script.command, cwd=ROOT, permission=interrupt) as agent:
        session = agent.new_session()
        turn = session.prompt("hi")
        asked.set()
        with pytest.raises(KeyboardInterrupt):
            for _ in turn:
                pass
        assert turn.result.stop_reason == v1.StopReason.CANCELLED
        session.cancel()
    never.set()
    assert "outcome cancelled" in script.received and "session/cancel" in script.received


def test_a_turn_left_by_break_is_cancelled(tmp_path: Path) -> None:
    script = Scripted(t.Cancellable, tmp_path)
    with sync.connect(script.command, cwd=ROOT) as agent:
        session = agent.new_session()
        for _ in session.prompt("hi"):
            break
        turn = session.prompt("hi")
        next(turn)
        assert turn.cancel().stop_reason == v1.StopReason.CANCELLED
    assert script.received.count("session/cancel") == 2


def test_every_verb_is_there(tmp_path: Path) -> None:
    with sync.connect(Scripted(d.Nulls, tmp_path).command, cwd=ROOT) as agent:
        assert list(agent.list_sessions()) == [] and agent.auth_methods == [] and not agent.capabilities.load_session
        session = agent.new_session(on_update=lambda _: None)
        assert (session.modes, session.models) == (None, None)
        session.set_config_option("loud", True)
        assert session.config_options is not None
        for refused in (session.set_mode, session.set_model, agent.load_session, agent.fork_session):
            with pytest.raises(NotSupported):
                refused("x")
        agent.resume_session("old").close()
        agent.delete_session("old")
        with pytest.raises(NotSupported):
            agent.logout()
        with pytest.raises(NotSupported):
            agent.authenticate("key")
    with pytest.raises(ConnectionClosed, match="closed"):
        session.prompt("hi")


def test_signing_in_may_ask_the_user(tmp_path: Path) -> None:
    asking = Elicitation(form=lambda _: v1.Declined(), url=lambda _: v1.Declined())
    command = Scripted(d.TerminalLogin, tmp_path).command
    with sync.connect(command, cwd=ROOT, authenticate=lambda _: "key", elicitation=asking) as agent:
        assert agent.new_session().id
    with sync.connect(command, cwd=ROOT, elicitation=lambda _: v1.Declined()) as agent, pytest.raises(AuthRequired):
        agent.new_session()
