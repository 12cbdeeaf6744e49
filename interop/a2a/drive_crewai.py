"""Drives gander with crewai's A2A client, which speaks 0.3: one delegation to its end. No model is needed."""

import asyncio
import os
import sys

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true")
from crewai.a2a.utils.delegation import aexecute_a2a_delegation

import house

GANDER = sys.argv[1]


async def delegate(url, text):
    card = url + "/.well-known/agent-card.json"
    return await aexecute_a2a_delegation(endpoint=card, auth=None, timeout=60, task_description=text)


async def completes(url):
    result = await delegate(url, "tck-artifact-text")
    assert "completed" in str(result["status"]) and "Generated text content" in str(result), result


async def streams(url):
    result = await delegate(url, "tck-stream-basic")
    heard = " ".join(result["result"].split())  # it puts a space between pieces
    assert "completed" in str(result["status"]) and heard == "Stream hello from TCK", result


async def is_asked(url):
    result = await delegate(url, "tck-input-required")
    assert "input_required" in str(result["status"]).replace("-", "_"), result


with house.server(GANDER) as url:
    for check in (completes, streams, is_asked):
        house.case(f"crewai-{check.__name__}", lambda: asyncio.run(check(url)))
