"""Drives gander with the A2A client of Strands Agents: an answer, a stream, and a question that is answered. No model is needed."""

import asyncio
import sys

import httpx
from a2a.client import ClientConfig
from strands.agent.a2a_agent import A2AAgent

import gander_server

GANDER = sys.argv[1]


def remote(server):
    client = httpx.AsyncClient(headers={"Authorization": f"Bearer {server.client_token}"}, timeout=60)
    return A2AAgent(f"{server.url}/a2a/gander", client_config=ClientConfig(httpx_client=client))


async def completes(server):
    result = await remote(server).invoke_async(gander_server.script([{"text": "hello from gander"}]))
    assert "hello from gander" in str(result) and result.stop_reason == "end_turn", result


async def streams(server):
    heard = []
    async for event in remote(server).stream_async(gander_server.script([{"text": "one two three", "chunks": 3}])):
        heard.append(str(event))
    assert len(heard) > 2 and any("three" in event for event in heard), heard


async def is_asked(server):
    """It gives the question back as an interrupt, and nothing runs unasked."""
    result = await remote(server).invoke_async(gander_server.touch("strands-asked"))
    assert result.stop_reason == "interrupt", result
    assert not server.holds("strands-asked")


with gander_server.server(GANDER) as server:
    server.client_token = server.token()
    for check in (completes, streams, is_asked):
        gander_server.case(f"strands-{check.__name__}", lambda: asyncio.run(check(server)))
