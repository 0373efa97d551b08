"""Nkeys, the keys that NATS knows: Ed25519 written as base32 with a prefix that says what the key is for, and a checksum.

The secret half is called a seed and begins with `SU` for a user; the public half begins with `U`. The server sends a random text to each
connection, and lets in who signs it.
"""

import base64
import binascii
import os
from typing import TYPE_CHECKING, Final

from antiphon.errors import AcpError, ExtraMissing

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["KeyProblem", "new_seed", "public_key", "sign"]

_SEED: Final = 18 << 3
_USER: Final = 20 << 3
_RAW: Final = 32
"""Bytes of a key without its prefix and checksum."""


class KeyProblem(AcpError):
    """A text is not the seed of a user's key."""


def new_seed() -> str:
    """Make a key for a user, and return its secret half."""
    head = bytes([_SEED | (_USER >> 5), (_USER & 31) << 3])
    return _encode(head + os.urandom(_RAW))


def public_key(seed: str) -> str:
    """Return the public half of a user's key.

    Raises:
        KeyProblem: this is no seed.
        ExtraMissing: the extra `fleet` is not installed.
    """
    return _encode(bytes([_USER]) + _private(seed).public_key().public_bytes_raw())


def sign(seed: str, text: str) -> bytes:
    """Return the signature of a text.

    Raises:
        KeyProblem: this is no seed.
        ExtraMissing: the extra `fleet` is not installed.
    """
    return _private(seed).sign(text.encode())


def _private(seed: str) -> "Ed25519PrivateKey":
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError as error:
        raise ExtraMissing("keys need the package `cryptography`", hint="pip install 'antiphon[fleet]'") from error
    return Ed25519PrivateKey.from_private_bytes(_decode(seed))


def _encode(raw: bytes) -> str:
    checksum = binascii.crc_hqx(raw, 0)  # CRC-16/XMODEM, as in nkeys
    return base64.b32encode(raw + checksum.to_bytes(2, "little")).decode().rstrip("=")


def _decode(seed: str) -> bytes:
    """Return the key of a seed, and never a part of the seed in an error."""
    problem = KeyProblem(
        "this is not the secret half of a user's key",
        hint="it begins with `SU`; `antiphon fleet credentials` makes keys",
    )
    try:
        raw = base64.b32decode(seed.strip() + "=" * (-len(seed.strip()) % 8))
    except (binascii.Error, ValueError):
        raise problem from None
    body, checksum = raw[:-2], raw[-2:]
    is_user_seed = len(body) == _RAW + 2 and body[0] & 0xF8 == _SEED and ((body[0] & 7) << 5 | body[1] >> 3) == _USER
    if not is_user_seed or binascii.crc_hqx(body, 0).to_bytes(2, "little") != checksum:
        raise problem
    return body[2:]
