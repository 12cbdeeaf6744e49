"""Drives gander with acp-client (PyPI): an answer in pieces, permissions, a cancel, a session carried on by another process."""

import asyncio
import os
import sys
from pathlib import Path

from acp_client import Agent, AgentError

work = Path(os.environ["GANDER_WORK"])
COMMAND = ["gander", "acp"]


def script(*calls: str) -> str:
    return f"[[script:[{','.join(f'[{call}]' for call in calls)}]]]"


WRITE = '{"tool":"write","args":{"path":"%s","content":"hi"}}'
DONE = '{"text":"All done."}'


async def answer_grows() -> None:
    agent, heard = Agent(COMMAND, work), []
    try:
        said = await agent.ask(script('{"text":"one two three","chunks":3}'), on_text=heard.append)
    finally:
        await agent.stop()
    assert said == "one two three" and heard[-1] == said, (said, heard)


async def permissions() -> None:
    async def allow(request: dict) -> str:
        assert request["toolCall"]["content"][0]["type"] == "diff", request
        return "allow_once"

    for handler, name, is_made in [(allow, "allowed.txt", True), (None, "refused.txt", False)]:
        agent = Agent(COMMAND, work, permission=handler)
        try:
            await agent.ask(script(WRITE % name, DONE))
        finally:
            await agent.stop()
        assert (work / name).exists() == is_made, name


async def cancel() -> None:
    agent, begun = Agent(COMMAND, work), asyncio.Event()
    try:
        asking = asyncio.create_task(agent.ask("long", on_text=lambda _: begun.set()))
        await begun.wait()
        asking.cancel()
        try:
            await asking
        except asyncio.CancelledError:
            pass
        # This client does not wait for the end of the turn that it cancels: the prompt waits in its place.
        assert (await agent.ask(script(DONE))).endswith("All done."), "the session does not go on"
    finally:
        await agent.stop()


async def carried_on() -> None:
    first = Agent(COMMAND, work)
    await first.ask(script('{"text":"remember this"}'))
    session = first.session
    await first.stop()
    second, told = Agent(COMMAND, work, session=session), []
    try:
        await second.start(on_update=told.append)
        assert second.session == session, second.session
    finally:
        await second.stop()
    assert any("remember this" in str(update) for update in told), told


async def refused() -> None:
    agent = Agent(COMMAND, work, meta={"agent": "nobody"})
    try:
        await agent.start()
    except AgentError as error:
        assert "-32602" in str(error), error
    else:
        raise AssertionError("an agent that there is not was started")
    finally:
        await agent.stop()


def main() -> None:
    for case in [answer_grows, permissions, cancel, carried_on, refused]:
        try:
            asyncio.run(asyncio.wait_for(case(), 60))
            print(f"pass acp_client_{case.__name__}")
        except Exception as error:  # every failure is one line of the results
            print(f"fail acp_client_{case.__name__} {error!r}".replace("\n", " "))
        sys.stdout.flush()


main()
