"""google-adk's RemoteA2aAgent asks gander as if it were one of its own agents."""

import asyncio
import sys

import httpx
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.runners import InMemoryRunner
from google.genai import types

import gander_server

GANDER = sys.argv[1]


class Conversation:
    """One session of a runner whose agent is here."""

    def __init__(self, server, agent=""):
        http = httpx.AsyncClient(timeout=60, trust_env=False, headers={"Authorization": f"Bearer {server.client_token}"})
        card = f"{server.url}{agent}/.well-known/agent-card.json"
        self.runner = InMemoryRunner(agent=RemoteA2aAgent(name="remote", agent_card=card, httpx_client=http), app_name="app")
        self.session = None

    async def say(self, part):
        if self.session is None:
            self.session = await self.runner.session_service.create_session(app_name="app", user_id="u")
        said = types.Content(role="user", parts=[part])
        events = [event async for event in self.runner.run_async(user_id="u", session_id=self.session.id, new_message=said)]
        assert not any(event.error_code for event in events), events
        return events


def texts(events):
    return [part.text for event in events for part in (event.content.parts if event.content else []) or [] if part.text]


async def ask(server, text):
    return texts(await Conversation(server).say(types.Part(text=text)))


async def streams(server):
    heard = "".join(await ask(server, "tck-stream-basic"))
    assert "Stream hello from TCK" in heard.replace("\n", ""), heard


async def artifacts(server):
    heard = await ask(server, "tck-artifact-text")
    assert "Generated text content" in heard, heard


async def asks_and_runs(server):
    """The agent itself asks before a command: what is said next in the session answers it."""
    for word, made in (("yes", True), ("no", False)):
        conversation = Conversation(server, "/a2a/gander")
        asked = await conversation.say(types.Part(text=gander_server.touch(f"adk-{word}")))
        assert f"touch adk-{word}" in str(asked) and not server.holds(f"adk-{word}"), asked
        done = texts(await conversation.say(answer(asked, word)))
        assert "All done." in "".join(done) and server.holds(f"adk-{word}") == made, done


def answer(asked, word):
    """A function response where the runner made a call of the question, else a word."""
    calls = [call for event in asked for call in event.get_function_calls()]
    if not calls:
        return types.Part(text=word)
    response = types.FunctionResponse(id=calls[-1].id, name=calls[-1].name, response={"result": word})
    return types.Part(function_response=response)


with gander_server.conformance(GANDER) as server:
    server.client_token = server.token()
    for check in (streams, artifacts, asks_and_runs):
        gander_server.case(f"adk-{check.__name__}", lambda: asyncio.run(check(server)))
