"""The agent processes that the rows of a module share."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.seeds.exchange import Agents


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def agents(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Agents]:
    agents = Agents(tmp_path_factory.mktemp("agents"))
    yield agents
    await agents.close()
