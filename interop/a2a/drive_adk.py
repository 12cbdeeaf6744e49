"""google-adk's RemoteA2aAgent asks gander as if it were one of its own agents."""

import asyncio
import sys

from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai import types

import house

GANDER = sys.argv[1]


async def ask(url, text):
    agent = RemoteA2aAgent(name="remote", agent_card=f"{url}/.well-known/agent-card.json")
    runner = InMemoryRunner(agent=agent, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    said = types.Content(role="user", parts=[types.Part(text=text)])
    heard = []
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=said):
        heard += [part.text for part in (event.content.parts if event.content else []) or [] if part.text]
        assert not event.error_code, event
    return heard


async def streams(url):
    heard = "".join(await ask(url, "tck-stream-basic"))
    assert "Stream hello from TCK" in heard.replace("\n", ""), heard


async def artifacts(url):
    heard = await ask(url, "tck-artifact-text")
    assert "Generated text content" in heard, heard


with house.server(GANDER) as url:
    for check in (streams, artifacts):
        house.case(f"adk-{check.__name__}", lambda: asyncio.run(check(url)))
