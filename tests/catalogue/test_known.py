"""Each known agent gets the keys that it needs, and no other."""

import re

import pytest

from antiphon.catalogue.agents import find
from antiphon.catalogue.known import KNOWN, OURS, keys_for
from antiphon.config.environment import OWNERS, owner_of
from antiphon.config.shapes import OwnAgent, Settings
from tests.rows import each_row

EVERY_KEY = {f"{words[0]}API_KEY": "secret" for words in OWNERS.values()}


@each_row("name", KNOWN)
def test_an_agent_gets_the_keys_of_its_login_methods(name: str) -> None:
    agent = KNOWN[name]
    for variable in re.findall(r"\b[A-Z]+(?:_[A-Z]+)+\b", agent.login):
        assert owner_of(variable) in agent.keys, variable
    assert set(agent.keys) <= set(OWNERS)


@pytest.mark.parametrize(
    ("line", "owners"),
    [
        ("my-agent --acp", ()),
        ("python3 agent.py", ()),
        ("npx -y @agentclientprotocol/claude-agent-acp@1.2.3", ("claude",)),
        ("/opt/bin/gemini --acp", ("gemini",)),
        ("antiphon record -- antiphon agent", tuple(OWNERS)),
        ("python3 -P -m antiphon agent --engine codex", tuple(OWNERS)),
    ],
)
def test_a_command_gets_the_keys_of_the_known_agents_that_it_names(line: str, owners: tuple[str, ...]) -> None:
    assert keys_for(line.split()) == owners


def test_an_agent_of_the_users_own_gets_what_its_table_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-here")
    monkeypatch.delenv("NOWHERE", raising=False)
    env = {"OPENAI_API_KEY": "$OPENAI_API_KEY", "PLAIN": "a$b", "GONE": "$NOWHERE"}
    found = find("mine", Settings(agents={"mine": OwnAgent(("sh", "-c", "true"), env)}))
    given = found.environment(EVERY_KEY)  # type: ignore[union-attr]  # sh is there
    assert given == {"OPENAI_API_KEY": "from-here", "PLAIN": "a$b"}


def test_our_own_agent_gets_every_key_because_its_engines_are_given_theirs() -> None:
    found = find(OURS)
    assert found.environment(EVERY_KEY) == EVERY_KEY  # type: ignore[union-attr]  # it is built in
