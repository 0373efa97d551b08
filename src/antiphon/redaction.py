"""What a secret looks like, in one place: by its name, by its shape, or by what stands before it. Pure.

There are two ways to take secrets out of a text:

- `redact` is for logs and the audit, where a line only has to be recognised. It errs on the safe side: too much may go.
- `Secrets` is for recordings, where everything else must stay as it was. The same secret always gets the same number,
  so that a reader can follow it without knowing it.
"""

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

__all__ = [
    "Redactor", "Secrets", "holds_secrets", "is_count", "is_flag", "is_secret_name", "is_secret_number", "redact",
]  # fmt: skip

# --- redaction for logs and the audit: in doubt, too much ------------------------------------------------------------

MARK: Final = "***"

_NAMES: Final = (
    r"[\w.-]{0,40}(?:token|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|credential|authorization|cookie|signature"
    r"|(?:^|[_-])(?:pass|passin|pwd|auth|sig|pw))[\w.-]{0,40}"
)
_PREFIXES: Final = (
    r"sk-|[srp]k_(?:live|test)_|pk-|gh[opsur]_|github_pat_|glpat-|xox[abeoprs]-|xapp-|AKIA|ASIA|AIza|hf_|npm_|pypi-|eyJ"
)
_SAFE_SIDE: Final = (
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----)(?s:.*?)(?=-----END|\Z)"),
    # --password hunter2, --api-key=…, TOKEN=…, "password": "…", Authorization: Bearer …
    re.compile(rf"(?i)(--?{_NAMES}[ \t=]+[\"']?)[^\s\"']+"),
    re.compile(rf"(?i)({_NAMES}[\"']?[ \t]*[=:][ \t]*[\"']?(?:(?:bearer|basic|token)[ \t]+)?)[^\s\"'&;|]+"),
    re.compile(r"(?i)\b((?:bearer|basic)\s+)[\w.~+/=-]{6,}"),
    re.compile(r"(://)[^/\s@]{1,200}(?=@)"),  # user:password@host
    re.compile(r"(\s(?:-u|--user)[ =]?[\"']?[^\s:\"']+:)[^\s\"']+"),  # curl -u user:password
    re.compile(r"(?i)(\b(?:\w*_)?(?:pass|pwd|pw|auth|sig)=[\"']?)[^\s\"'&;|]+"),  # DB_PASS=…, ?sig=…
    re.compile(r"(\b(?:mysql|mysqldump|sshpass|docker login)\b[^|;&]*?\s-p ?)[^\s-][^\s]*"),
    re.compile(rf"\b({_PREFIXES})[\w.-]{{8,}}"),
)

_SECRET_VARIABLES: Final = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE", re.IGNORECASE)
_SECRET_LENGTH: Final = 8
"""Shorter values of such variables are words like `true`."""


def redact(text: str) -> str:
    """Replace what looks like a secret by `***`."""
    for pattern in _SAFE_SIDE:
        text = pattern.sub(rf"\g<1>{MARK}", text)
    return text


class Redactor:
    """Replaces what looks like a secret, and the secrets that stand in an environment, by `***`."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        values = {
            value
            for name, value in environment.items()
            if _SECRET_VARIABLES.search(name) and len(value) >= _SECRET_LENGTH
        }
        self._values = sorted(values, key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        for value in self._values:
            text = text.replace(value, MARK)
        return redact(text)


# --- recordings -----------------------------------------------------------------------------------------------------

_WORDS: Final = (
    r"(?:api_?key|token|secret|passw(?:or)?d|passphrase|authorization|credentials?|private_?key|access_?key|cookie)"
)
_LOOSE: Final = _WORDS.replace("_?", "[_-]?")
_OWN: Final = r"\A(?:access|api|auth|bearer|bot|client|id|refresh|session|user)*"
"""What may stand before a word in the name of a secret, and not in that of a number, as in `maxTokens` and `costPerToken`."""
_PLAIN: Final = _WORDS.replace("_?", "")
_NAME: Final = re.compile(rf"(?:{_PLAIN}|auth|{_PLAIN}(?<!token)s)\Z|{_OWN}tokens\Z", re.IGNORECASE)
_NUMBERED: Final = re.compile(rf"{_OWN}{_PLAIN}\Z", re.IGNORECASE)
"""The names under which even a number is a secret."""
_COUNT: Final = re.compile(r"[\d.,]+[kKM]?")
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
_BEARER: Final = re.compile(r"(\b(?i:bearer)\s+)([\w.~+/=-]{8,})", re.ASCII)
_BEHIND: Final = re.compile(
    r"(?P<scheme>://[^/\s:@]*:)(?P<password>[^/\s@]+)(?=@)"
    r"|(?P<header>\b(?i:authorization)\\{0,8}[\"']?\s{0,8}:\s{0,8}\\{0,8}[\"']?(?i:basic|digest|token|apikey|negotiate)\s+)"
    r"(?P<given>[^\s\"'\\]{4,})"
    r"|(?P<cookie>\b(?i:cookie):\s{0,8})(?P<crumbs>[^\s=;,\"']+=[^\s;\"']+(?:;\s?[^\s=;,\"']+=[^\s;\"']+)*)"
    # In an option or an address the value is always a secret; in a text or in code the same words may mean anything.
    r"|(?P<option>(?<![\w-])--?[\w-]{0,40}(?i:key|token|secret|passw(?:or)?d|auth|credentials?)=[\"']?)(?P<set>[^\s\"']{4,})"
    rf"|(?P<query>[?&#](?:[\w.-]{{0,60}}(?i:{_LOOSE}|signature)|(?i:key|sig|auth))=)(?P<part>[^&\s#\"']{{4,}})"
    r"|(?P<variable>(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)=[\"']?)(?P<value>[^\s\"'&;]{4,})"
    rf"|(?P<name>(?i:{_LOOSE})=[\"']?)(?![A-Za-z_]+[(.\[]|(?i:none|null|true|false|str|string)\b)(?P<text>[^\s\"'&;,()<>]{{4,}})"
    rf"|(?P<line>(?i:\bx-[\w-]{{0,40}}(?:key|token|secret|auth)|{_LOOSE}):\s{{0,8}})(?=[^\s]*\d)(?P<rest>[^\s\"'\\,;()<>]{{6,}})"
    rf"|(?P<quoted>\"[\w-]{{0,60}}(?i:{_LOOSE})\\{{0,8}}\"\s{{0,8}}:\s{{0,8}}\\{{0,8}}\")(?P<string>[^\"\\]+)",
    re.ASCII,
)
_SIGNS: Final = (
    "key", "token", "secret", "passw", "passphrase", "auth", "bearer", "credential", "cookie", "sk-", "sk_", "rk_", "pk_", "gho_", "ghp_",
    "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xox", "xapp-", "akia", "asia", "aiza", "hf_", "npm_", "pypi-", "eyj", "@",
    "sig=", "signature=",
)  # fmt: skip
"""One of these is in every text that has a secret of a known shape or with a name; to look for them is much cheaper."""

_OPAQUE: Final = re.compile(r"(?=[^\s]*\d)(?=[^\s]*[A-Za-z])[A-Za-z0-9_+=.~-]{16,}", re.ASCII)
_OURS: Final = re.compile(r"\[(?:secret \d+|redacted: \d+ characters)\]")
_REMEMBERED: Final = 8
"""The shortest secret that is looked for where neither its name nor its shape gives it away: a shorter one may be a word."""


_MOST: Final = 1000
"""How many secrets are looked for like that: each new one makes the search slower, and a peer could send new ones for ever."""


@lru_cache(4096)
def is_secret_name(name: str) -> bool:
    """Whether what stands under this name is a secret."""
    return _NAME.search(_letters(name)) is not None


@lru_cache(4096)
def holds_secrets(name: str) -> bool:
    """Whether everything below this name is a secret. `auth` is not such a name: it is also the name of a login method."""
    return is_secret_name(name) and not _letters(name).lower().endswith("auth")


def is_secret_number(name: str, number: str) -> bool:
    """Whether a number under this name is a secret: a few digits are the place of something, or how many there are."""
    return len(number) >= 4 and _NUMBERED.match(_letters(name)) is not None


def _letters(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "", name)


def is_count(name: str, text: str) -> bool:
    """Whether this is only a number of tokens."""
    return name.lower().endswith("tokens") and _COUNT.fullmatch(text) is not None


def is_flag(word: str) -> bool:
    """Whether the next word of a command line is a secret."""
    return _FLAG.fullmatch(word) is not None


class Secrets:
    """Secrets that were seen, in the order of their first appearance."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._known: re.Pattern[str] | None = None
        self._remembered: set[str] = set()

    def hide(self, secret: str, *, is_named: bool = True) -> str:
        """The replacement of a secret. `is_named`: its name marks it as one, so it is looked for everywhere else from now on."""
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
        text = _BEARER.sub(self._hide_behind, text)
        return _BEHIND.sub(self._hide_behind, text) if "=" in text or ":" in text else text

    def _hide_all(self, found: re.Match[str]) -> str:
        return self.hide(found.group())

    def _hide_behind(self, found: re.Match[str]) -> str:
        before, secret = (part for part in found.groups() if part is not None)
        hidden = _OURS.match(
            found.string, found.start() + len(before)
        )  # a moment ago; its words are cut apart by a space
        if hidden or (secret.isdigit() and before.lower().startswith("token")):  # or a number of tokens
            return found.group()
        return before + self.hide(secret)
