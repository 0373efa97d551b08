"""What a secret looks like, by its name or by its shape, and a memory of those that were seen. Pure.

The same secret always gets the same number, so that a reader can follow it through a recording without knowing it.
"""

import re
from typing import Final

__all__ = ["Secrets", "is_flag", "is_secret_name"]

_WORDS: Final = (
    r"(?:api_?key|token|secret|passw(?:or)?d|passphrase|authorization|credentials?|private_?key|access_?key|cookie)"
)
_NAME: Final = re.compile(rf"(?:{_WORDS.replace('_?', '')}|auth)\Z", re.IGNORECASE)
_FLAG: Final = re.compile(r"--?[\w-]*(?:key|token|secret|passw(?:or)?d|auth|authorization|credentials?)", re.IGNORECASE)

_SHAPES: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<![A-Za-z0-9])(?:"
    r"sk-(?=[\w-]*\d)[\w-]{16,}"  # OpenAI, Anthropic and those that followed
    r"|(?:sk|rk|pk)_(?:live|test)_\w{10,}"
    r"|gh[opsur]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}"
    r"|xox[abeoprs]-[\w-]{10,}|xapp-[\w-]{10,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|AIza[\w-]{30,}"
    r"|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{30,}"
    r"|eyJ[\w-]{6,}\.[\w-]{4,}\.[\w-]*"  # a JSON web token
    r")",
    re.DOTALL | re.ASCII,
)
_BEHIND: Final = re.compile(
    r"(?P<before>\b(?i:bearer)\s+)(?P<bearer>[\w.~+/=-]{8,})"
    r"|(?P<scheme>://[^/\s:@]*:)(?P<password>[^/\s@]+)(?=@)"
    r"|(?P<variable>\b[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)=[\"']?)(?P<value>[^\s\"'&;]{4,})"
    rf"|(?P<query>[?&][\w-]*{_WORDS.replace('_?', '[_-]?')}=)(?P<part>[^&\s#\"']{{4,}})"
    rf"|(?P<quoted>\"[\w-]{{0,60}}(?i:{_WORDS.replace('_?', '[_-]?')})\\{{0,8}}\"\s{{0,8}}:\s{{0,8}}\\{{0,8}}\")(?P<string>[^\"\\]+)",
    re.ASCII,
)
_SIGNS: Final = (
    "key", "token", "secret", "passw", "passphrase", "auth", "bearer", "credential", "cookie", "sk-", "sk_", "rk_", "pk_", "gho_", "ghp_",
    "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xox", "xapp-", "akia", "asia", "aiza", "hf_", "npm_", "pypi-", "eyj", "@",
)  # fmt: skip
"""One of these is in every text that has a secret of a known shape or with a name; to look for them is much cheaper."""

_OPAQUE: Final = re.compile(r"(?=[^\s]*\d)(?=[^\s]*[A-Za-z])[A-Za-z0-9_+=.~-]{16,}", re.ASCII)
_OURS: Final = re.compile(r"\[(?:secret \d+|redacted: \d+ characters)\]")
_REMEMBERED: Final = 8
"""The shortest secret that is looked for where neither its name nor its shape gives it away: a shorter one may be a word."""


_MOST: Final = 1000
"""How many secrets are looked for like that: each new one makes the search slower, and whoever speaks could go on for ever."""


def is_secret_name(name: str) -> bool:
    """Whether what stands under this name is a secret."""
    return _NAME.search(re.sub(r"[^A-Za-z0-9]", "", name)) is not None


def is_flag(word: str) -> bool:
    """Whether the next word of a command line is a secret."""
    return _FLAG.fullmatch(word) is not None


class Secrets:
    """Those that were seen, in the order of their first appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._known: re.Pattern[str] | None = None
        self._remembered: set[str] = set()

    def hide(self, secret: str, *, is_named: bool = True) -> str:
        """What stands for it. `is_named`: its name says that it is one, so it is looked for everywhere else from now on."""
        if not secret or _OURS.fullmatch(secret):
            return secret
        is_new = secret not in self._remembered and len(self._remembered) < _MOST
        if is_new and len(secret) >= _REMEMBERED and (is_named or _OPAQUE.fullmatch(secret)):
            self._remembered.add(secret)
            longest_first = sorted(self._remembered, key=len, reverse=True)
            self._known = re.compile("|".join(map(re.escape, longest_first)))
        return f"[secret {self._numbers.setdefault(secret, len(self._numbers) + 1)}]"

    def may_be_in(self, text: str) -> bool:
        """Whether a text in small letters has to be looked at closely."""
        return any(sign in text for sign in _SIGNS)

    def knows_one_in(self, text: str) -> bool:
        """Whether there is a secret in it that was seen before."""
        return self._known is not None and self._known.search(text) is not None

    def clear(self, text: str) -> str:
        """The text without secrets that are known by now, or that show themselves by their shape or by what stands before them."""
        if self._known is not None:
            text = self._known.sub(self._hide_all, text)
        if not self.may_be_in(text.lower()):
            return text
        text = _SHAPES.sub(self._hide_all, text)
        return _BEHIND.sub(self._hide_behind, text)

    def _hide_all(self, found: re.Match[str]) -> str:
        return self.hide(found.group())

    def _hide_behind(self, found: re.Match[str]) -> str:
        before, secret = (part for part in found.groups() if part is not None)
        if secret.startswith("[secret "):  # what was hidden a moment ago
            return found.group()
        return before + self.hide(secret)
