"""The last bytes of an output, always whole characters. Pure; knows no process."""

import codecs

__all__ = ["Ring"]

_Decoder = codecs.getincrementaldecoder("utf-8")


class Ring:
    """Keeps at most `limit` bytes of valid UTF-8, the newest. What is no UTF-8 becomes U+FFFD on its way in, so that the limit counts
    what is kept and not what came."""

    def __init__(self, limit: int) -> None:
        self.limit = max(limit, 0)
        self.written = 0
        """Bytes that went in so far, those that were dropped included: a place in the output that stays valid."""
        self._kept = bytearray()
        self._decoder = _Decoder("replace")
        self._split = False  # in the middle of a character

    @property
    def truncated(self) -> bool:
        """Whether something was dropped."""
        return self.written > len(self._kept)

    def add(self, chunk: bytes) -> None:
        """Output as it came, cut anywhere."""
        if self._split or not chunk.isascii():
            chunk = self._decoder.decode(chunk).encode()
            self._split = self._decoder.getstate()[0] != b""
        self._keep(chunk)

    def end(self) -> None:
        """No more comes: half a character stays half."""
        self._keep(self._decoder.decode(b"", final=True).encode())
        self._split = False

    def text(self, since: int = 0) -> str:
        """What is kept, from this place in the output on."""
        gone = self.written - len(self._kept)
        start = self._boundary(max(since - gone, 0))
        return self._kept[start:].decode()

    def _keep(self, chunk: bytes) -> None:
        self.written += len(chunk)
        self._kept += chunk
        if len(self._kept) > self.limit:
            del self._kept[: self._boundary(len(self._kept) - self.limit)]

    def _boundary(self, at: int) -> int:
        """The next place where a character begins."""
        while at < len(self._kept) and self._kept[at] & 0xC0 == 0x80:
            at += 1
        return at
