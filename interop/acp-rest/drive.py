"""Drives `gander serve` with clients of the Agent Communication Protocol that nobody here wrote."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from acp_sdk.client import Client
from acp_sdk.models import (
    Message,
    MessageAwaitResume,
    MessagePart,
    RunAwaitingEvent,
    RunCancelledEvent,
    RunCompletedEvent,
    RunCreatedEvent,
    RunInProgressEvent,
    RunStatus,
)

GANDER = sys.argv[1]
HERE = Path(__file__).parent
PATIENCE = 60
INPUT = [Message(parts=[MessagePart(content="Hello!")])]
YES = MessageAwaitResume(message=Message(parts=[MessagePart(content="yes")]))


class House:
    """A server on a data directory of its own."""

    def __init__(self, root):
        self.root = root
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.environment = {
            "HOME": str(root),
            "PATH": os.environ["PATH"],
            "GANDER_MODEL": "demo/demo",
            "GANDER_SERVER_FORWARD_RESOURCES": "true",
            "GANDER_SERVER_RESOURCE_PEERS": "['127.0.0.1']",
            "GANDER_LIMITS_REQUESTS_PER_SECOND": "10000",
            "GANDER_LIMITS_REQUEST_BURST": "10000",
        }
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        arguments = ["serve", "--listen", f"127.0.0.1:{self.port}", "--conformance-agents", "--open", "acp-rest"]
        command = [GANDER, *arguments, "--data", str(self.root / "data")]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=self.environment, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        while "listening" not in self.process.stdout.readline():
            if self.process.poll() is not None:
                raise RuntimeError("the server did not start")

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()

    def client(self):
        return Client(base_url=self.url, trust_env=False)


def text(run):
    return ["".join(part.content or "" for part in message.parts) for message in run.output]


async def discovery(house, other):
    async with house.client() as client:
        await client.ping()
        names = [agent.name async for agent in client.agents()]
        assert names[:3] == ["gander", "coding", "echo"] and "recipe-maker" in names, names
        manifest = await client.agent(name="mime_types")
        assert manifest.input_content_types == ["text/plain", "application/json"]


async def sync(house, other):
    async with house.client() as client:
        run = await client.run_sync(INPUT, agent="echo")
        assert (run.status, text(run), run.output[0].role) == (RunStatus.COMPLETED, ["Hello!"], "agent/echo")


async def native(house, other):
    async with house.client() as client:
        run = await client.run_sync("hello", agent="gander")
        assert run.status == RunStatus.COMPLETED and "".join(text(run)), run


async def later(house, other):
    async with house.client() as client:
        run = await client.run_async(INPUT, agent="echo")
        assert run.status == RunStatus.CREATED
        while run.status in (RunStatus.CREATED, RunStatus.IN_PROGRESS):
            run = await client.run_status(run_id=run.run_id)
        assert (run.status, text(run)) == (RunStatus.COMPLETED, ["Hello!"])


async def stream(house, other):
    async with house.client() as client:
        events = [event async for event in client.run_stream("50", agent="parts")]
        assert isinstance(events[0], RunCreatedEvent) and isinstance(events[-1], RunCompletedEvent)
        assert len(events) == 55, len(events)
        again = [event async for event in client.run_events(run_id=events[0].run.run_id)]
        assert again == events


async def rich(house, other):
    async with house.client() as client:
        events = [event async for event in client.run_stream("go", agent="rich")]
        assert isinstance(events[-1], RunCompletedEvent)
        kinds = [part.metadata.kind for message in events[-1].run.output for part in message.parts if part.metadata]
        assert kinds == ["trajectory"] * 3, kinds


async def await_and_resume(house, other):
    async with house.client() as client:
        run = await client.run_sync(INPUT, agent="approve")
        assert run.status == RunStatus.AWAITING and run.await_request.message.parts[0].content == "May I?"
        run = await client.run_resume_sync(YES, run_id=run.run_id)
        assert (run.status, text(run)) == (RunStatus.COMPLETED, ["you said: yes"])
        run = await client.run_sync(INPUT, agent="approve")
        run = await client.run_resume_async(YES, run_id=run.run_id)
        assert run.status == RunStatus.IN_PROGRESS
        events = [event async for event in client.run_stream(INPUT, agent="approve")]
        assert isinstance(events[-1], RunAwaitingEvent)
        run = events[-1].run
        events = [event async for event in client.run_resume_stream(YES, run_id=run.run_id)]
        assert isinstance(events[0], RunInProgressEvent) and isinstance(events[-1], RunCompletedEvent)


async def awaiting_survives_a_kill(house, other):
    async with house.client() as client:
        run = await client.run_sync(INPUT, agent="approve")
        house.end()
        house.start()
        before = await client.run_status(run_id=run.run_id)
        assert before.status == RunStatus.AWAITING
        run = await client.run_resume_sync(YES, run_id=run.run_id)
        assert (run.status, text(run)) == (RunStatus.COMPLETED, ["you said: yes"])
        events = [event async for event in client.run_events(run_id=run.run_id)]
        assert isinstance(events[0], RunCreatedEvent) and isinstance(events[-1], RunCompletedEvent)


async def cancel(house, other):
    async with house.client() as client:
        last = None
        async for event in client.run_stream(INPUT, agent="slow"):
            if isinstance(event, RunCreatedEvent):
                run = await client.run_cancel(run_id=event.run.run_id)
                assert run.status == RunStatus.CANCELLING
            last = event
        assert isinstance(last, RunCancelledEvent)


async def failure(house, other):
    async with house.client() as client:
        run = await client.run_sync(INPUT, agent="failer")
        assert (run.status, run.error.code) == (RunStatus.FAILED, "invalid_input")


async def sessions(house, other):
    async with house.client() as client, client.session() as session:
        run = await session.run_sync(INPUT, agent="history_echo")
        assert text(run) == ["Hello!"]
        run = await session.run_sync(INPUT, agent="history_echo")
        assert text(run) == ["Hello!"] * 3
        described = await session.refresh_session()
        assert len(described.history) == 6, described


async def sessions_across_servers(house, other):
    async with Client(trust_env=False) as client, client.session() as session:
        for base, expected in [(house, 1), (other, 3), (house, 7)]:
            run = await session.run_sync(INPUT, agent="history_echo", base_url=base.url)
            assert text(run) == ["Hello!"] * expected, (expected, text(run))


async def output_of(*command, **options):
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, cwd=HERE, **options)
    out, error = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == 0, error.decode()[-600:]
    return out.decode()


async def npm(house, other):
    """Every step of the npm client is a line of its own."""
    out = await output_of("node", "steps.mjs", house.url)
    steps = re.findall(r"^(ok|FAIL) (\S+)(.*)$", out, re.M)
    assert len(steps) == 17, out
    for verdict, name, rest in steps:
        print(f"{'pass' if verdict == 'ok' else 'fail'} npm-{name}{rest if verdict != 'ok' else ''}")


async def beeai(house, other):
    out = await output_of(".venv/beeai/bin/python", "beeai.py", house.url)
    assert json.loads(out.splitlines()[-1]) == ["hello", "again"], out


async def acp_mcp(house, other):
    out = await output_of(".venv/mcp/bin/python", "mcp_tools.py", house.url, ".venv/mcp/bin/acp-mcp")
    assert "hi" in out, out


CASES = [
    discovery,
    sync,
    native,
    later,
    stream,
    rich,
    await_and_resume,
    awaiting_survives_a_kill,
    cancel,
    failure,
    sessions,
    sessions_across_servers,
    npm,
    beeai,
    acp_mcp,
]


async def main():
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        house, other = House(Path(one)), House(Path(two))
        try:
            for case in CASES:
                try:
                    await asyncio.wait_for(case(house, other), PATIENCE)
                    print(f"pass {case.__name__}", flush=True)
                except Exception as error:  # noqa: BLE001: whatever a client throws is its verdict
                    reason = " ".join(f"{type(error).__name__} {error}".split())[:400]
                    print(f"fail {case.__name__} {reason}", flush=True)
        finally:
            house.end(signal.SIGTERM)
            other.end(signal.SIGTERM)


asyncio.run(main())
