"""acp-sdk behind a load balancer: a run is begun under an id of the client's own, and asked for again under that id after every cut."""

import asyncio
import uuid

from acp_sdk.client import Client
from acp_sdk.models import MessagePartEvent, RunCompletedEvent, RunFailedEvent, Session

import turns

SESSION = uuid.uuid4()


class Ids:
    """The run's id goes into a header: the SDK has no argument for it."""

    run = None

    def __call__(self, request):
        request.headers["Authorization"] = f"Bearer {turns.TOKEN}"
        if request.method == "POST":
            request.headers["Run-ID"] = str(self.run)
        return request


async def follow(client, prompt):
    async with client.session(Session(id=SESSION)) as session:
        async for event in session.run_stream(prompt, agent="gander"):
            yield event


async def main():
    ids, shown = Ids(), {}

    async def attempt(word, prompt, again):
        ids.run = uuid.uuid5(SESSION, word)
        text, over = shown.setdefault(word, turns.Shown()), False
        async with Client(base_url=turns.URL, trust_env=False, auth=ids, timeout=60) as client:
            said = ""
            # Asked for again under the same id, the run is told from its beginning.
            async for event in follow(client, prompt):
                if isinstance(event, MessagePartEvent) and event.part.content_type == "text/plain" and not event.part.metadata:
                    said += event.part.content or ""
                if isinstance(event, RunFailedEvent):
                    raise turns.Wrong(f"the run failed: {event.run.error}")
                over = over or isinstance(event, RunCompletedEvent)
            text.now(said)
        if not over:
            raise ConnectionError("the stream ended before the run")
        return str(SESSION), text.text

    await turns.take_turns(attempt)


asyncio.run(main())
