"""A process that decides, when it is started: `DIR NAME COUNT`. Remembers, writes the audit, names sessions and trusts projects."""

import asyncio
import sys
from pathlib import Path

from antiphon.store.decisions import AuditEntry, AuditStore, DecisionStore, TrustStore
from antiphon.store.schema import open_database
from antiphon.store.sessions import NameStore


async def decide(directory: Path, name: str, count: int) -> None:
    print("ready", flush=True)
    sys.stdin.readline()
    async with open_database(directory) as database:
        decisions, audit, names, trust = (
            DecisionStore(database),
            AuditStore(database),
            NameStore(database),
            TrustStore(database),
        )
        for number in range(count):
            subject = f"{name} {number}"
            audit.post(AuditEntry(name, "s", "/w", "Bash", "execute", subject, "allow", "", "user", "somebody said so"))
            await asyncio.gather(
                decisions.remember(f"Bash({subject})", "allow", "project", project="/w", agent=name),
                names.put(subject, name, "s", "/w"),
                trust.trust(f"/w/{subject}", subject),
            )


if __name__ == "__main__":
    where, who, times = sys.argv[1:]
    asyncio.run(decide(Path(where), who, int(times)))
