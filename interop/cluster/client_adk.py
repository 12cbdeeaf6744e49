"""google-adk's client behind a load balancer: it cannot resume a stream, so it reads the session until the run is over."""

import asyncio
import time

from google.adk.cli.api_server import RunAgentRequest
from google.adk.cli.conformance.adk_web_server_client import AdkWebServerClient
from google.genai import types

import turns

WHERE = {"app_name": "gander", "user_id": "cluster"}


def words(events, author):
    parts = [part for event in events if (event.author == "user") == (author == "user") for part in (event.content and event.content.parts) or []]
    return "".join(part.text or "" for part in parts if not part.thought)


async def main():
    session, before = None, ""

    async def attempt(word, prompt, again):
        nonlocal session, before
        end = f"end-{word} "
        async with AdkWebServerClient(base_url=turns.URL) as client:
            session = session or (await client.create_session(**WHERE)).id

            async def stored():
                return (await client.get_session(**WHERE, session_id=session)).events

            doubt = time.monotonic() + (turns.DOUBT if again else 0)
            while not (asked := end in words(await stored(), "user")) and time.monotonic() < doubt:
                await asyncio.sleep(0.3)
            if not asked:
                wish = RunAgentRequest(**WHERE, session_id=session, streaming=True, new_message=types.UserContent(prompt))
                live = [event async for event in client.run_agent(wish) if not event.partial]
                known = {event.id for event in await stored()}
                if missing := [event.id for event in live if event.id not in known]:
                    raise turns.Wrong(f"shown before and not stored: {missing}")
            while end not in (text := words(await stored(), "agent")):
                await asyncio.sleep(0.3)
            if not text.startswith(before):
                raise turns.Wrong("shown before and not now")
            fresh, before = text[len(before):], text
            return session, fresh

    await turns.take_turns(attempt)


asyncio.run(main())
