"""Which version two peers speak."""

import pytest

from antiphon.errors import RequestError
from antiphon.protocol.version import chosen_version
from tests.rows import each_row


@each_row(
    ("requested", "supported", "chosen"),
    [
        (1, (1,), 1),
        (2, (1,), 1),
        (0, (1,), 1),  # an agent of version 1 alone answers as version 1 has it
        (1, (1, 2), 1),
        (2, (1, 2), 2),
        (3, (2, 1), 2),
        (65_535, (1, 2), 2),
        (2, (2,), 2),
        (99, (2,), 2),
    ],
)
def test_the_highest_version_that_is_not_above_the_requested_one(
    requested: int, supported: tuple[int, ...], chosen: int
) -> None:
    assert chosen_version(requested, supported) == chosen


@each_row(
    ("requested", "supported", "code", "data"),
    [
        (0, (1, 2), -32022, {"requested": 0, "supported": [1, 2]}),
        (1, (2,), -32022, {"requested": 1, "supported": [2]}),
        ("2", (1, 2), -32602, "`protocolVersion` is '2'"),
        (None, (1, 2), -32602, "`protocolVersion` is None"),
        (True, (1, 2), -32602, "`protocolVersion` is True"),
        (-1, (1, 2), -32602, "`protocolVersion` is -1"),
        (70_000, (1, 2), -32602, "`protocolVersion` is 70000"),
    ],
)
def test_a_request_that_fits_no_version_is_refused(
    requested: object, supported: tuple[int, ...], code: int, data: object
) -> None:
    with pytest.raises(RequestError) as refused:
        chosen_version(requested, supported)
    assert (refused.value.code, refused.value.data) == (code, data)
