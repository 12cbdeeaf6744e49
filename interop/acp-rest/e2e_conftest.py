"""Takes the place of the suite's own fixtures: its servers are ours, and run already."""

import os
from types import SimpleNamespace

import pytest
import pytest_asyncio
from acp_sdk.client import Client


@pytest.fixture(scope="module")
def server():
    yield None


@pytest.fixture(scope="module")
def multi_server():
    ports = [int(port) for port in os.environ["ACP_PORTS"].split()]
    yield tuple(SimpleNamespace(server=SimpleNamespace(config=SimpleNamespace(port=port))) for port in ports)


@pytest_asyncio.fixture
async def client():
    async with Client(base_url=os.environ["ACP_BASE_URL"], trust_env=False) as client:
        yield client
