"""Drives gander with Microsoft's agent-framework-a2a: an answer, a stream, a conversation of two turns. No model is needed."""

import asyncio
import sys

import httpx
from agent_framework_a2a import A2AAgent

import gander_server

GANDER = sys.argv[1]


def remote(server):
    client = httpx.AsyncClient(headers={"Authorization": f"Bearer {server.client_token}"}, timeout=60)
    return A2AAgent(name="gander", url=f"{server.url}/a2a/gander", http_client=client)


async def completes(server):
    answer = await remote(server).run(gander_server.script([{"text": "hello from gander"}]))
    assert "hello from gander" in answer.text, answer


async def streams(server):
    pieces = []
    async for update in remote(server).run(gander_server.script([{"text": "one two three", "chunks": 3}]), stream=True):
        pieces.append(update.text or "")
    assert "one two three" in "".join(pieces), pieces


async def goes_on(server):
    """Both turns are in one context: the second one sees what the first one made."""
    agent = remote(server)
    session = agent.create_session()
    await agent.run(gander_server.script([{"tool": "list", "args": {"path": "."}}], [{"text": "first"}]), session=session)
    answer = await agent.run(gander_server.script([{"text": "second"}]), session=session)
    assert "second" in answer.text, answer


with gander_server.server(GANDER) as server:
    server.client_token = server.token()
    for check in (completes, streams, goes_on):
        gander_server.case(f"agent_framework-{check.__name__}", lambda: asyncio.run(check(server)))
