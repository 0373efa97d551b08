"""The life of a tool call, and the calls of one session."""

import pytest

from antiphon.engines.bounded import MOST_KEPT
from antiphon.engines.tool_calls import STATUS, OpenCall, ToolCallChange, ToolCalls, ToolCallState
from antiphon.errors import LocalProtocolError
from antiphon.protocol import v1


def test_a_call_is_pending_until_it_runs() -> None:
    call = OpenCall("one")
    assert call.is_pending
    assert call.apply(ToolCallChange.RUN) == v1.ToolStatus.IN_PROGRESS
    assert call.apply(ToolCallChange.ASK) == v1.ToolStatus.PENDING
    assert call.apply(ToolCallChange.RUN) == v1.ToolStatus.IN_PROGRESS
    assert not call.is_pending


def test_every_state_has_a_status_of_the_protocol() -> None:
    assert set(STATUS) == set(ToolCallState)


def test_a_closed_call_may_still_end_once() -> None:
    calls = ToolCalls[OpenCall]()
    assert calls.end("one", ToolCallChange.CLOSE_RUNNING) == v1.ToolStatus.FAILED
    assert calls.end("one", ToolCallChange.SUCCEED) == v1.ToolStatus.COMPLETED
    with pytest.raises(LocalProtocolError):
        calls.end("one", ToolCallChange.FAIL)


def test_only_the_last_ended_calls_are_remembered() -> None:
    calls = ToolCalls[OpenCall]()
    for number in range(MOST_KEPT + 1):
        calls.end(str(number), ToolCallChange.SUCCEED)
    assert not calls.is_known("0")
    assert calls.is_over("1")
    assert calls.is_over(str(MOST_KEPT))
