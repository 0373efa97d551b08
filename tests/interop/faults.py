"""What peers get wrong, by our account, each with the message that proves it. A fault that is gone fails the test."""

from typing import Final, NamedTuple


class Fault(NamedTuple):
    """In these pairs (client, agent) these steps end so.

    `says` is part of what every pair reports. `proof` stands in the traffic, in what the programs logged or in the report: of
    the control where there is one, else of every pair.
    """

    id: str
    whose: tuple[str, ...]
    role: str
    what: str
    pairs: frozenset[tuple[str, str]]
    steps: frozenset[str]
    says: str
    proof: tuple[str, ...]

    def proved_by(self, client: str, agent: str) -> bool:
        return client == agent or all(one != other for one, other in self.pairs)


CLIENTS: Final = ("antiphon", "python", "python-next", "typescript")


def driven(agent: str, *clients: str) -> frozenset[tuple[str, str]]:
    return frozenset((client, agent) for client in clients or CLIENTS)


FAULTS: Final = (
    Fault(
        id="py-1",
        whose=("python",),
        role="agent",
        what="`session/resume` and `session/close` are refused although the agent has both and says so: the SDK still takes "
        "them for unstable, and wants a switch of its own.",
        pairs=driven("python"),
        steps=frozenset({"resume", "close"}),
        says="Method not found",
        proof=(
            '"error":{"code":-32601,"message":"Method not found","data":{"method":"session/resume"}}}',
            "UserWarning: The method session/resume is part of the unstable protocol, please enable "
            "`use_unstable_protocol` flag to use it.",
        ),
    ),
    Fault(
        id="py-2",
        whose=("python",),
        role="agent",
        what="`session/delete` has no route at all, although the agent has the method and says so.",
        pairs=driven("python", "antiphon", "python-next", "typescript"),
        steps=frozenset({"delete"}),
        says="Method not found",
        proof=('"error":{"code":-32601,"message":"Method not found","data":{"method":"session/delete"}}}',),
    ),
    Fault(
        id="py-3",
        whose=("python", "python-next"),
        role="client",
        what="Updates are handled side by side, so a handler that waits for anything gets them out of order. Here it waits "
        "200 ms over the first one.",
        pairs=frozenset((client, agent) for client in ("python", "python-next") for agent in ("antiphon", client)),
        steps=frozenset({"order"}),
        says="out of order: ",
        proof=("out of order: agent_thought_chunk was sent before agent_message_chunk, and handled after it",),
    ),
    Fault(
        id="py-4",
        whose=("python",),
        role="client",
        what="`$/cancel_request`, which tells that nobody waits for an answer any more, and which everybody may leave alone, is "
        "logged as an error with a traceback.",
        pairs=frozenset({("python", "antiphon")}),
        steps=frozenset({"quiet"}),
        says="logged: ERROR:root:Unhandled error while handling notification method=$/cancel_request | "
        "acp.exceptions.RequestError: Method not found",
        proof=(
            "ERROR:root:Unhandled error while handling notification method=$/cancel_request",
            "acp.exceptions.RequestError: Method not found",
        ),
    ),
)


def known(client: str, agent: str, step: str) -> Fault | None:
    return next((fault for fault in FAULTS if (client, agent) in fault.pairs and step in fault.steps), None)
