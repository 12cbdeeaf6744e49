"""One turn over `/run_live`, with the WebSocket client of PyPI."""

import asyncio
import json

import websockets


async def turn(base, query, text):
    """Says this and gives the events up to the turn's end; the connection is closed in good order."""
    events = []
    async with websockets.connect(f"{base.replace('http', 'ws', 1)}/run_live?{query}") as socket:
        await socket.send(json.dumps({"content": {"role": "user", "parts": [{"text": text}]}}))
        while not events or not events[-1].get("turnComplete"):
            events.append(json.loads(await asyncio.wait_for(socket.recv(), 60)))
        await socket.send(json.dumps({"close": True}))
        try:
            await asyncio.wait_for(socket.recv(), 60)
        except websockets.ConnectionClosed as closed:
            assert closed.rcvd.code == 1000, closed
    return events
