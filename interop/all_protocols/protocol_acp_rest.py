"""A client of acp-sdk."""

import asyncio
import os
import sys
import uuid

import httpx
from acp_sdk.client import Client
from acp_sdk.models import ACPError, Message, MessageAwaitResume, MessagePart, RunStatus, Session

URL, _, SESSION, VERB, *WORDS = sys.argv[1:]
HEADERS = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
YES = MessageAwaitResume(message=Message(parts=[MessagePart(content="yes")]))


def text(messages):
    return "\n".join(part.content or "" for message in messages for part in message.parts)


async def settled(client, run):
    while (found := await client.run_status(run_id=run)).status not in (RunStatus.COMPLETED, RunStatus.FAILED):
        await asyncio.sleep(0.05)
    return found


async def main():
    async with Client(base_url=URL, trust_env=False, headers=HEADERS) as client:
        if VERB == "start":
            run = await client.run_async(WORDS[0], agent="gander")
            print(run.run_id, run.session_id)
        elif VERB == "watch":
            while (await client.run_status(run_id=WORDS[0])).status != RunStatus.AWAITING:
                await asyncio.sleep(0.05)
            print("asked", flush=True)
            print(text((await settled(client, WORDS[0])).output))
        elif VERB == "answer":
            try:
                await client.run_resume_async(YES, run_id=WORDS[0])
                print("yes")
            except ACPError:
                print("no")
        elif VERB == "say":
            async with client.session(Session(id=uuid.UUID(SESSION))) as session:
                run = await session.run_sync(WORDS[0], agent="gander")
                assert run.status == RunStatus.COMPLETED, run
        else:
            described = httpx.get(f"{URL}/sessions/{SESSION}", trust_env=False, headers=HEADERS).json()
            found = [httpx.get(address, trust_env=False).json() for address in described["history"]]
            print(text([Message.model_validate(message) for message in found]))


asyncio.run(main())
