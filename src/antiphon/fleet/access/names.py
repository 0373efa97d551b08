"""Names that no two tokens of a fleet have: sessions belong to a name, and one token must not delete those of another.

A name is claimed before its token is stored, and the token is stored under the condition that no other claim came behind. A claim whose
token is missing may be of a gateway that ended, or of one that is about to store it. So another may take the name over: from then on
the first one cannot store its token under that name, and whether it did so just before is looked at once more.
"""

from secrets import token_hex

import msgspec

from antiphon.fleet.access.records import NameRecord, TokenRecord, name_subject, token_subject
from antiphon.fleet.broker import Broker, Fence, Fenced, StoredMessage
from antiphon.fleet.records.appends import CertainAppends
from antiphon.fleet.records.formats import NAME

__all__ = ["NameClaims"]


class NameClaims:
    """Claims names for tokens."""

    def __init__(self, broker: Broker, appends: CertainAppends, limit: float) -> None:
        """`limit`: seconds for which a claim is tried."""
        self._broker = broker
        self._appends = appends
        self._limit = limit

    async def claim(self, name: str, id: str) -> Fence | None:
        """Return the condition under which a new token may be stored under a name; None: another token has that name, or gets it.

        Raises:
            BrokerAway: the broker does not answer, or not in time.
        """
        subject = name_subject(name)
        before = await self._broker.last(subject)
        found = {each: await self._broker.last(token_subject(each)) for each in _claims(before)}
        if any(map(_has_name, found.values())):
            return None
        # Those before the last one lost their claim to it, and cannot be stored under this name any more.
        unsettled = [each for each, message in [*found.items()][-1:] if message is None]
        own = token_hex(8)
        try:
            sequence = await self._appends.append(
                subject,
                msgspec.json.encode(NameRecord((*unsettled, id))),
                name=own,
                headers={NAME: own},
                expects=0 if before is None else before.sequence,
                replaces=True,
                after=0 if before is None else before.sequence,
                limit=self._limit,
            )
        except Fenced:
            return None
        late = [await self._broker.last(token_subject(each)) for each in unsettled]
        return None if any(map(_has_name, late)) else Fence(subject, sequence)


def _has_name(message: StoredMessage | None) -> bool:
    """Whether a token that claimed a name is stored under it, and good."""
    if message is None:
        return False
    try:
        record = msgspec.json.decode(message.data, type=TokenRecord)
    except msgspec.DecodeError:
        return True  # of a version that we do not know: in doubt it has the name
    return record.revoked is None and not record.is_numbered


def _claims(message: StoredMessage | None) -> tuple[str, ...]:
    if message is None:
        return ()
    try:
        return msgspec.json.decode(message.data, type=NameRecord).tokens
    except msgspec.DecodeError:
        return ()
