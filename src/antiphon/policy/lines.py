"""What is known about a shell line: its simple commands, and what about it is doubtful."""

import msgspec

from antiphon.policy.patterns import Words

__all__ = ["Line", "Part"]


class Part(msgspec.Struct, frozen=True):
    """One simple command. The first `settings` words are assignments before its program (`LANG=C sort`).

    `texts` are the words as they were written, for those that only the shell knows. `fed` means that something is written to
    its standard input: it stands behind a pipe, or has a `<`.
    """

    words: Words
    settings: int = 0
    fed: bool = False
    texts: tuple[str, ...] = ()

    @property
    def command(self) -> Words:
        """The program and its arguments."""
        return self.words[self.settings :]

    @property
    def shown(self) -> str:
        """The command for people, cut short."""
        texts = self.texts or tuple(word or "…" for word in self.words)
        text = " ".join(" ".join(texts).split())
        return text if len(text) <= 60 else f"{text[:59]}…"


class Line(msgspec.Struct, frozen=True):
    """A shell line, read. An empty `unclear` and an empty `special` mean: these are its commands, and there is nothing else.

    `unclear` says why it cannot be read for sure, so that any rule may or may not match.
    `special` says what it has that is understood but covered by no pattern, such as a redirection into a file.
    """

    parts: tuple[Part, ...] = ()
    unclear: str = ""
    special: str = ""

    @classmethod
    def of_words(cls, words: tuple[str, ...]) -> "Line":
        """An argument list, which no shell reads."""
        if not words or not words[0] or "=" in words[0]:
            return cls(unclear="it names no program")
        if any("\0" in word for word in words):
            return cls(unclear="it has a NUL character")
        return cls((Part(words, texts=words),))
