"""A client of a2a-sdk."""

import asyncio
import os
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig
from a2a.client.client_factory import ClientFactory
from a2a.types import a2a_pb2 as pb
from google.protobuf import json_format

URL, _, SESSION, VERB, *WORDS = sys.argv[1:]
HEADERS = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
EXTENSION = "urn:gander:a2a:activity:v1"


def texts(parts):
    return "\n".join(part.text for part in parts)


async def connect(streaming=False, headers={}):
    http = httpx.AsyncClient(timeout=60, trust_env=False, headers=HEADERS | headers)
    card = await A2ACardResolver(http, URL).get_agent_card()
    config = ClientConfig(httpx_client=http, supported_protocol_bindings=["JSONRPC"], streaming=streaming)
    return ClientFactory(config).create(card)


async def send(client, text, **about):
    metadata = about.pop("metadata", {})
    message = pb.Message(message_id=str(uuid.uuid4()), role=pb.ROLE_USER, parts=[pb.Part(text=text)], **about)
    message.metadata.update(metadata)
    return [event async for event in client.send_message(pb.SendMessageRequest(message=message))]


async def watch(client, run):
    async for event in client.subscribe(pb.SubscribeToTaskRequest(id=run)):
        status = event.task.status if event.HasField("task") else event.status_update.status
        if status.state == pb.TASK_STATE_INPUT_REQUIRED:
            print("asked", flush=True)
    task = await client.get_task(pb.GetTaskRequest(id=run))
    print("\n".join(texts(artifact.parts) for artifact in task.artifacts))


async def answer(run):
    client = await connect(headers={"A2A-Extensions": EXTENSION})
    task = json_format.MessageToDict(await client.get_task(pb.GetTaskRequest(id=run)))
    parts = task["status"].get("message", {}).get("parts", [])
    asked = [part["data"] for part in parts if part.get("data", {}).get("kind") == "question"]
    if not asked:
        return print("no")
    try:
        await send(client, "yes", task_id=run, metadata={EXTENSION: {"question": asked[0]["id"]}})
        print("yes")
    except Exception:  # the SDK has an error of its own for each code
        print("no")


async def main():
    if VERB == "answer":
        return await answer(WORDS[0])
    client = await connect(streaming=VERB == "watch")
    if VERB == "watch":
        await watch(client, WORDS[0])
    elif VERB == "say":
        task = (await send(client, WORDS[0], context_id=SESSION))[-1].task
        assert task.status.state == pb.TASK_STATE_COMPLETED, task
    else:
        page = await client.list_tasks(pb.ListTasksRequest(context_id=SESSION, include_artifacts=True))
        for task in reversed(page.tasks):
            said = [texts(message.parts) for message in task.history]
            print("\n".join(said + [texts(artifact.parts) for artifact in task.artifacts]))


asyncio.run(main())
