"""beeai-framework's A2AAgent, which speaks 0.3."""

import asyncio
import sys

from beeai_framework.adapters.a2a.agents import A2AAgent
from beeai_framework.memory import UnconstrainedMemory

import house

GANDER = sys.argv[1]


async def asks(url):
    agent = A2AAgent(url=url, memory=UnconstrainedMemory())
    answer = await agent.run("tck-artifact-text please")
    assert "Generated text content" in answer.last_message.text, answer


with house.server(GANDER) as url:
    house.case("beeai-asks", lambda: asyncio.run(asks(url)))
