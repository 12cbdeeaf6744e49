"""a2a-sdk behind a load balancer: a message keeps its id, so that sending it again finds its task; a lost stream is subscribed to again."""

import asyncio
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig
from a2a.client.client_factory import ClientFactory
from a2a.types import a2a_pb2 as pb

import turns

HEADERS = {"Authorization": f"Bearer {turns.TOKEN}"}
OVER = (pb.TASK_STATE_COMPLETED, pb.TASK_STATE_FAILED, pb.TASK_STATE_CANCELED)


def texts(artifact):
    return "".join(part.text for part in artifact.parts)


async def main():
    context, tasks = None, {}

    async def stream(client, word, prompt):
        """Follows a task to its end, from the message or from the task that it became."""
        nonlocal context
        if word in tasks:
            events = client.subscribe(pb.SubscribeToTaskRequest(id=tasks[word]))
        else:
            about = {"context_id": context} if context else {}
            said = pb.Message(message_id=f"{turns.NAME}-{word}", role=pb.ROLE_USER, parts=[pb.Part(text=prompt)], **about)
            events = client.send_message(pb.SendMessageRequest(message=said))
        async for event in events:
            task = event.task if event.HasField("task") else event.status_update if event.HasField("status_update") else None
            if event.HasField("task"):
                tasks[word], context = event.task.id, event.task.context_id
            if task is not None and task.status.state in OVER:
                return

    async def attempt(word, prompt, again):
        async with httpx.AsyncClient(timeout=60, trust_env=False, headers=HEADERS) as http:
            card = await A2ACardResolver(http, turns.URL).get_agent_card()
            config = ClientConfig(httpx_client=http, supported_protocol_bindings=["JSONRPC"], streaming=True)
            client = ClientFactory(config).create(card)
            try:
                await stream(client, word, prompt)
            except Exception:
                # A task that ended meanwhile cannot be subscribed to: it is read below.
                if word not in tasks:
                    raise
            task = await client.get_task(pb.GetTaskRequest(id=tasks[word]))
        if task.status.state not in OVER:
            raise ConnectionError("the stream ended before the task")
        if task.status.state != pb.TASK_STATE_COMPLETED:
            raise turns.Wrong(f"the task failed: {task.status}")
        return context, "".join(texts(artifact) for artifact in task.artifacts)

    await turns.take_turns(attempt)


asyncio.run(main())
