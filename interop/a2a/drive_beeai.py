"""Drives gander with beeai-framework's A2AAgent, which speaks 0.3: two turns of one conversation."""

import asyncio
import sys

from beeai_framework.adapters.a2a.agents import A2AAgent
from beeai_framework.memory import UnconstrainedMemory

import house

GANDER = sys.argv[1]


async def ask(agent, text):
    return (await agent.run(text)).output[-1].text


async def exists(url):
    await A2AAgent(url=url, memory=UnconstrainedMemory()).check_agent_exists()


async def talks(url):
    agent = A2AAgent(url=url, memory=UnconstrainedMemory())
    first = await ask(agent, "tck-artifact-text")
    assert "Generated text content" in first, first
    again = await ask(agent, "tck-stream-basic")
    assert "Stream hello from TCK" in again, again


with house.server(GANDER) as url:
    for check in (exists, talks):
        house.case(f"beeai-{check.__name__}", lambda: asyncio.run(check(url)))
