"""The agents there are: which of them are here, and how to get the others."""

from collections.abc import Sequence

from antiphon.catalogue.finding import Missing, find
from antiphon.catalogue.known import OURS
from antiphon.catalogue.versions import with_versions
from antiphon.cli.health.examining import in_thread
from antiphon.cli.health.findings import Finding, Ward, note, ok, problem, split
from antiphon.cli.health.joining import together

__all__ = ["agent", "registry"]


async def agent(name: str, ward: Ward) -> Sequence[Finding]:
    """One agent: its program and version, or how to get it."""
    settings = ward.loaded.settings
    found = find(name, settings, path=ward.environment.get("PATH"), registry=ward.registry)
    if isinstance(found, Missing):
        if found.origin == "own":
            return problem(f"the program of your own agent `{name}` is not here", found.hint)
        if name == settings.agent:
            return problem("not installed, and the config file says that `run` and `chat` start it", found.hint)
        return (problem if name in ward.named else note)("not installed", found.hint)
    if found.origin == "built in":
        if name == OURS:
            return await in_thread(lambda: together(ward, found.shown))  # it looks at the disk
        return ok("built in: it needs no model, no key and no network", command=found.shown)
    if found.on_demand:
        return ok(f"started on demand by {found.where}, which downloads it first", command=found.shown)
    (known,) = await with_versions([found], min(ward.limit, 5.0))
    facts = {"command": found.shown, "path": found.where}
    if known.version is None:
        return ok(f"{found.where}, which does not tell its version", **facts)
    return ok(f"{known.version}, {found.where}", version=known.version, **facts)


def registry(ward: Ward) -> Sequence[Finding]:
    """The registry that the user gave, if any."""
    if ward.registry_trouble is not None:
        sentence, hint = split(ward.registry_trouble, "`antiphon agents registry --forget` removes it")
        return problem(sentence, hint)
    count = len(ward.registry.agents)
    return ok(f"{count} agent{'' if count == 1 else 's'} in the copy that was read") if count else []
