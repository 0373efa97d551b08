"""The second agent behind the joint one: says back what it is sent. `python -m tests.seeds.second`."""

from tests.client.script import Agent


class Second(Agent):
    """An agent that answers, and has nothing to offer."""


if __name__ == "__main__":
    Second("/dev/null").serve()
