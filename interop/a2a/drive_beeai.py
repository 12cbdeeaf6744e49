"""Drives gander with beeai-framework's A2AAgent, which speaks 0.3: two turns of one conversation."""

import asyncio
import sys

from beeai_framework.adapters.a2a.agents import A2AAgent
from beeai_framework.adapters.a2a.agents.agent import A2AAgentParameters, HttpxAsyncClientParameters
from beeai_framework.memory import UnconstrainedMemory

import gander_server

GANDER = sys.argv[1]


def agent_of(server, path=""):
    http = HttpxAsyncClientParameters(headers={"Authorization": f"Bearer {server.client_token}"}, trust_env=False)
    parameters = A2AAgentParameters(httpx_async_client=http)
    return A2AAgent(url=server.url + path, memory=UnconstrainedMemory(), parameters=parameters)


async def ask(agent, text):
    return (await agent.run(text)).output[-1].text


async def exists(server):
    await agent_of(server).check_agent_exists()


async def talks(server):
    agent = agent_of(server)
    first = await ask(agent, "tck-artifact-text")
    assert "Generated text content" in first, first
    again = await ask(agent, "tck-stream-basic")
    assert "Stream hello from TCK" in again, again


async def asks_and_runs(server):
    """The agent itself asks before a command: what is said next in the conversation answers it."""
    for word, made in (("yes", True), ("no", False)):
        agent = agent_of(server, "/a2a/gander")
        asked = await ask(agent, gander_server.touch(f"bee-{word}"))
        assert f"touch bee-{word}" in asked and not server.holds(f"bee-{word}"), asked
        done = await ask(agent, word)
        assert "All done." in done and server.holds(f"bee-{word}") == made, done


with gander_server.conformance(GANDER) as server:
    server.client_token = server.token()
    for check in (exists, talks, asks_and_runs):
        gander_server.case(f"beeai-{check.__name__}", lambda: asyncio.run(check(server)))
