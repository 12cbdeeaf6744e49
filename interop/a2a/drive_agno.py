"""Drives gander with agno's A2A client: the card, an answer, a stream. No model is needed."""

import asyncio
import sys

from agno.client.a2a import A2AClient

import gander_server

GANDER = sys.argv[1]


def remote(server, **more):
    return A2AClient(f"{server.url}/a2a/gander", timeout=60, **more)


def headers(server):
    return {"Authorization": f"Bearer {server.client_token}"}


async def reads_the_card(server):
    card = await remote(server).aget_agent_card(headers=headers(server))
    assert card is not None and card.name == "Gander", card


async def completes(server):
    client = remote(server, protocol="json-rpc")
    result = await client.send_message(gander_server.script([{"text": "hello from gander"}]), headers=headers(server))
    # It reads the answer of a task from its history alone; ours is an artifact, as the specification says.
    assert "completed" in str(result.status) and result.artifacts, result


async def streams(server):
    pieces = []
    client = remote(server, protocol="json-rpc")
    text = gander_server.script([{"text": "one two three", "chunks": 3}])
    async for event in client.stream_message(text, headers=headers(server)):
        pieces.append(event.content or "")
    assert "three" in "".join(pieces), pieces


with gander_server.server(GANDER) as server:
    server.client_token = server.token()
    loop = asyncio.new_event_loop()  # the client keeps its connections, and those belong to a loop
    for check in (reads_the_card, completes, streams):
        gander_server.case(f"agno-{check.__name__}", lambda: loop.run_until_complete(check(server)))
