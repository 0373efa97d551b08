"""Keys for the processes of a fleet, and what each role may do at the broker: no more than it has to.

A key is a file that only its user can read, with a name, a role and the secret half of an nkey. The broker knows the public halves and the
subjects of each role (`server_users` prints that part of its configuration). Replies go to a subject that has the name of the key in it,
and no other key may listen there. Clients and agents get no key at all.

There are two accounts, which nothing passes between: `FLEET` with the sessions, and `TOKENS` with what lets people in, for gateways alone.
Rights by subject would not keep a worker from it: a process that may read a stream of an account can have the broker send what is stored there to
any subject of the account, as the answer to that read, and no right is checked for it. For the same reason no key has `allow_responses`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from antiphon.config.directories import make_private_directory, write_private_file
from antiphon.errors import AcpError
from antiphon.fleet.nats.keys import new_seed, public_key
from antiphon.fleet.nats.login import ANSWERS
from antiphon.fleet.streams import ACCESS, SESSIONS, StoredStream

__all__ = ["FleetKey", "FleetKeys", "FleetRole", "Rights", "make_credentials", "read_key", "rights_of", "server_users"]

FleetRole: TypeAlias = Literal["gateway", "worker", "admin"]

SUFFIX: Final = ".key"
"""How the files with keys end."""


class FleetKey(msgspec.Struct, frozen=True):
    """The key of one process."""

    name: str
    role: FleetRole
    public: str
    seed: str
    """The secret half."""
    access: str = ""
    """The secret half for the account with the tokens, in the key of a gateway."""

    @property
    def inbox(self) -> str:
        """The subject below which it gets replies."""
        return f"{ANSWERS}{self.name}"


class FleetKeys(NamedTuple):
    """The files of a fleet's keys."""

    admin: Path
    gateway: Path
    workers: Mapping[str, Path]


class Rights(NamedTuple):
    """What a role may publish, and what it may subscribe to."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]


def _reads(stream: StoredStream) -> tuple[str, ...]:
    return (
        f"$JS.API.STREAM.INFO.{stream.name}",
        f"$JS.API.STREAM.MSG.GET.{stream.name}",
        f"$JS.API.DIRECT.GET.{stream.name}",
        f"$JS.API.DIRECT.GET.{stream.name}.>",
    )


def _makes(stream: StoredStream) -> tuple[str, ...]:
    """Return what makes a stream where there is none yet, so that it does not matter which process starts first."""
    return f"$JS.API.STREAM.INFO.{stream.name}", f"$JS.API.STREAM.CREATE.{stream.name}"


def _changes(stream: StoredStream) -> tuple[str, ...]:
    return *_makes(stream), f"$JS.API.STREAM.UPDATE.{stream.name}"


def rights_of(role: FleetRole, name: str) -> Rights:
    """Return what a key may do with sessions. Only a worker writes events, and only under its own name it speaks for itself."""
    reads = ("$JS.API.INFO", *_reads(SESSIONS))
    live = f"{SESSIONS.live}>"
    if role == "worker":
        own = [
            f"{subject}.{name}.*" for subject in ("acp.beat", "acp.state")
        ]  # the last word is another with each start
        taken = [f"{subject}.{name}.*" for subject in ("acp.open", "acp.ctl", "acp.c.up")]
        writes = (f"{SESSIONS.prefix}>", f"$JS.API.STREAM.PURGE.{SESSIONS.name}")
        return Rights(
            (*reads, *_makes(SESSIONS), *writes, *own, f"{ANSWERS}>", "acp.c.down.*", "acp.who", "acp.audit", "acp.archive"),
            (live, *taken, "acp.beat.>", "acp.who", "acp.all"),
        )  # fmt: skip
    asks = ("acp.who", "acp.ctl.>")
    if role == "gateway":
        return Rights(
            (*reads, *_changes(SESSIONS), f"{SESSIONS.prefix}*.row", f"{SESSIONS.prefix}*.own", f"$JS.API.STREAM.PURGE.{SESSIONS.name}",
             *asks, f"{ANSWERS}>", "acp.open.>", "acp.c.up.>", "acp.all", "acp.archive"),
            (live, "acp.beat.>", "acp.state.>", "acp.c.down.*", "acp.audit", "acp.archive"),
        )  # fmt: skip
    return Rights((*reads, *_changes(SESSIONS), *asks), (live, "acp.beat.>"))


def _access_rights() -> Rights:
    """Return what a gateway may do with tokens."""
    return Rights(
        ("$JS.API.INFO", *_reads(ACCESS), *_changes(ACCESS), f"{ACCESS.prefix}>", f"$JS.API.STREAM.PURGE.{ACCESS.name}"),
        (f"{ACCESS.live}>",),
    )  # fmt: skip


def make_credentials(directory: Path, *, workers: Sequence[str] = ()) -> FleetKeys:
    """Make the keys that are missing, and return the files of all of them.

    Raises:
        AcpError: a file cannot be written or read, or a name cannot be used.
    """
    make_private_directory(directory)
    return FleetKeys(
        _kept(directory, "admin", "admin"),
        _kept(directory, "gateway", "gateway"),
        {name: _kept(directory, name, "worker") for name in workers},
    )


def _kept(directory: Path, name: str, role: FleetRole) -> Path:
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise AcpError(f"`{name}` cannot be the name of a key", hint="use letters, digits, `-` and `_`")
    path = directory / f"{name}{SUFFIX}"
    if path.exists():
        found = read_key(path)
        if found.role != role:
            raise AcpError(
                f"`{path}` is a key with the role {found.role}", hint="choose another name, or another directory"
            )
        return path
    seed = new_seed()
    key = FleetKey(name, role, public_key(seed), seed, new_seed() if role == "gateway" else "")
    try:
        write_private_file(path, msgspec.json.encode(key).decode())
    except OSError as error:
        raise AcpError(f"`{path}` cannot be written: {error.strerror}", hint="check the permissions there") from error
    return path


def read_key(path: Path) -> FleetKey:
    """Read a key from its file.

    Raises:
        AcpError: it cannot be read, or others can read it too.
    """
    try:
        if path.stat().st_mode & 0o077:
            raise AcpError(f"others can read the key in `{path}`", hint=f"chmod 600 {path}, or better make a new one")
        return msgspec.json.decode(path.read_bytes(), type=FleetKey)
    except OSError as error:
        raise AcpError(
            f"the key in `{path}` cannot be read: {error.strerror}",
            hint="`antiphon fleet credentials` makes keys",
        ) from error
    except msgspec.DecodeError as error:
        raise AcpError(f"`{path}` is not a key of a fleet", hint="`antiphon fleet credentials` makes keys") from error


def server_users(directory: Path) -> str:
    """Return the part of the broker's configuration that lets in all keys of a directory, each with the rights of its role.

    Raises:
        AcpError: a key cannot be read.
    """
    keys = [read_key(path) for path in sorted(directory.glob(f"*{SUFFIX}"))]
    sessions = [_user(key, key.public, rights_of(key.role, key.name)) for key in keys]
    access = [_user(key, public_key(key.access), _access_rights()) for key in keys if key.access]
    return f"accounts {{\n{_account('FLEET', sessions)}\n{_account('TOKENS', access)}\n}}\n"


def _account(name: str, users: Sequence[str]) -> str:
    return f"  {name}: {{ jetstream: enabled, users: [\n" + "\n".join(users) + "\n  ] }"


def _user(key: FleetKey, public: str, rights: Rights) -> str:
    publish = ", ".join(f'"{subject}"' for subject in rights.publish)
    subscribe = ", ".join(f'"{subject}"' for subject in (*rights.subscribe, f"{key.inbox}.>"))
    return f"""\
    # {key.role} {key.name}
    {{ nkey: {public}, permissions: {{
        publish: [{publish}],
        subscribe: [{subscribe}] }} }}"""
