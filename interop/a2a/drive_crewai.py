"""Drives gander with crewai's A2A client, which speaks 0.3: one delegation to its end. No model is needed."""

import asyncio
import os
import sys

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", OTEL_SDK_DISABLED="true")
from crewai.a2a.auth.client_schemes import BearerTokenAuth
from crewai.a2a.utils.delegation import aexecute_a2a_delegation

import gander_server

GANDER = sys.argv[1]


async def delegate(server, text, agent="", **more):
    card = f"{server.url}{agent}/.well-known/agent-card.json"
    auth = BearerTokenAuth(token=server.client_token)
    return await aexecute_a2a_delegation(endpoint=card, auth=auth, timeout=60, task_description=text, **more)


async def completes(server):
    result = await delegate(server, "tck-artifact-text")
    assert "completed" in str(result["status"]) and "Generated text content" in str(result), result


async def streams(server):
    result = await delegate(server, "tck-stream-basic")
    heard = " ".join(result["result"].split())  # it puts a space between pieces
    assert "completed" in str(result["status"]) and heard == "Stream hello from TCK", result


async def is_asked(server):
    result = await delegate(server, "tck-input-required")
    assert "input_required" in str(result["status"]).replace("-", "_"), result


async def asks_and_runs(server):
    """The agent itself asks before a command. crewai gives the question back; whoever delegated answers with the task's id."""
    for word, made in (("yes", True), ("no", False)):
        asked = await delegate(server, gander_server.touch(f"crew-{word}"), "/a2a/gander")
        assert "input_required" in str(asked["status"]).replace("-", "_"), asked
        task = next(message.task_id for message in reversed(asked["history"]) if message.task_id)
        context = next(message.context_id for message in reversed(asked["history"]) if message.context_id)
        done = await delegate(server, word, "/a2a/gander", task_id=task, context_id=context)
        assert "completed" in str(done["status"]) and "All done." in str(done), done
        assert server.holds(f"crew-{word}") == made, word


with gander_server.conformance(GANDER) as server:
    server.client_token = server.token()
    for check in (completes, streams, is_asked, asks_and_runs):
        gander_server.case(f"crewai-{check.__name__}", lambda: asyncio.run(check(server)))
