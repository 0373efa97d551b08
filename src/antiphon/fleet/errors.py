"""What can be wrong with a broker, each in one sentence with a hint."""

from antiphon.errors import AcpError
from antiphon.fleet.broker import BrokerAway

__all__ = ["BrokerFull", "BrokerRefused", "BrokerUnfit", "MessageTooLarge"]


class BrokerFull(BrokerAway):
    """The broker has no room to store a message. Nothing was stored; it passes when there is room again."""


class BrokerRefused(AcpError):
    """The broker does not let this process in, or not do what it has to do."""


class BrokerUnfit(AcpError):
    """The broker cannot be used for a fleet: it is too old, or it stores nothing."""


class MessageTooLarge(AcpError):
    """A message has more bytes than the broker takes. It was not sent."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__(
            f"a message of {size:,} bytes is larger than the {most:,} that the broker takes",
            hint="raise `max_payload` in the configuration of nats-server, or send less at once",
        )
