"""Drives `gander serve` with clients of the Agent Communication Protocol that nobody here wrote.

Those that can send a header come with a token that was made for them, to prompt and to answer with. Those that cannot, acp-mcp and
beeai-framework, find a server that was opened for them (`serve --open acp-rest`).
"""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from acp_sdk.client import Client
from acp_sdk.models import (
    ACPError,
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
# The same server with the agents that acp-sdk's own tests ask for; cargo puts it beside the product.
CONFORMANCE = os.path.join(os.path.dirname(GANDER), "gander-conformance")
HERE = Path(__file__).parent
PATIENCE = 60
INPUT = [Message(parts=[MessagePart(content="Hello!")])]


class GanderServer:
    """A server on a data directory of its own, with the agents that the clients' own tests expect."""

    def __init__(self, root, *flags, **variables):
        self.root, self.flags = root, flags
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.environment = {
            "HOME": str(root),
            "PATH": os.environ["PATH"],
            "GANDER_MODEL": "demo/demo",
            # Two servers share a session: each may read the other's part.
            "GANDER_SERVER_FORWARD_RESOURCES": "true",
            "GANDER_SERVER_RESOURCE_PEERS": "['127.0.0.1']",
            **variables,
        }
        self.start()
        self.token = self.give("client", "prompt,approve")

    def give(self, name, scopes):
        """A token for somebody."""
        command = [GANDER, "token", "add", name, "--scopes", scopes, "--data", str(self.root / "data")]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True).stdout.strip()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        arguments = ["serve", "--listen", f"127.0.0.1:{self.port}", *self.flags]
        command = [CONFORMANCE, *arguments, "--data", str(self.root / "data")]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=self.environment, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        while "listening" not in self.process.stdout.readline():
            if self.process.poll() is not None:
                raise RuntimeError("the server did not start")

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait()

    def client(self, token=None):
        return Client(base_url=self.url, trust_env=False, headers=bearing(token or self.token))

    def holds(self, name):
        """Whether a session has made a file of this name."""
        return any(self.root.rglob(name))


def bearing(token):
    return {"Authorization": f"Bearer {token}"}


def touch(name):
    """A prompt whose one command makes a file, so that somebody is asked."""
    calls = [[{"tool": "shell", "args": {"command": f"touch {name}"}}], [{"text": "All done."}]]
    return f"[[script:{json.dumps(calls)}]]"


def reply(word):
    return MessageAwaitResume(message=Message(parts=[MessagePart(content=word)]))


async def refusal(call):
    """The SDK's own error: what it throws when it cannot read an answer is another one."""
    try:
        answered = await call
    except ACPError as error:
        return error.error
    raise AssertionError(f"no error: {answered}")


def text(run):
    return ["".join(part.content or "" for part in message.parts) for message in run.output]


async def discovery(gander_server, other):
    async with gander_server.client() as client:
        await client.ping()
        names = [agent.name async for agent in client.agents()]
        assert names[:3] == ["gander", "coding", "echo"] and "recipe-maker" in names, names
        manifest = await client.agent(name="mime_types")
        assert manifest.input_content_types == ["text/plain", "application/json"]


async def sync(gander_server, other):
    async with gander_server.client() as client:
        run = await client.run_sync(INPUT, agent="echo")
        assert (run.status, text(run), run.output[0].role) == (RunStatus.COMPLETED, ["Hello!"], "agent/echo")


async def native(gander_server, other):
    async with gander_server.client() as client:
        run = await client.run_sync("hello", agent="gander")
        assert run.status == RunStatus.COMPLETED and "".join(text(run)), run


async def asks_and_runs(gander_server, other):
    """The agent itself asks before it runs a command, and a resumed run allows or refuses it."""
    async with gander_server.client() as client:
        for word, made in (("yes", True), ("no", False)):
            run = await client.run_sync(touch(f"said-{word}"), agent="gander")
            assert run.status == RunStatus.AWAITING, run
            assert f"touch said-{word}" in run.await_request.message.parts[0].content, run.await_request
            assert not gander_server.holds(f"said-{word}"), "it ran before anybody said so"
            run = await client.run_resume_sync(reply(word), run_id=run.run_id)
            assert run.status == RunStatus.COMPLETED and "All done." in "".join(text(run)), run
            assert gander_server.holds(f"said-{word}") == made, word


async def only_prompts(gander_server, other):
    """A token without the scope to answer is told so; whoever has it, answers."""
    prompting = gander_server.give("prompting", "prompt")
    async with gander_server.client(prompting) as client:
        run = await client.run_sync(touch("unapproved"), agent="gander")
        assert run.status == RunStatus.AWAITING, run
        await refusal(client.run_resume_sync(reply("yes"), run_id=run.run_id))
        assert (await client.run_status(run_id=run.run_id)).status == RunStatus.AWAITING
    assert not gander_server.holds("unapproved")


async def errors_of_the_outer_layer(gander_server, other):
    """What is refused before the protocol is looked at is an ACPError too."""
    async with gander_server.client("wrong") as stranger:
        assert (await refusal(stranger.run_sync(INPUT, agent="echo"))).message
        assert (await refusal(stranger.run_status(run_id=uuid.uuid4()))).message
    async with gander_server.client() as client:
        assert (await refusal(client.run_status(run_id=uuid.uuid4()))).code == "not_found"
        large = Message(parts=[MessagePart(content="x" * (33 << 20))])
        assert (await refusal(client.run_sync([large], agent="echo"))).code == "invalid_input"
    async with Client(base_url=f"{gander_server.url}/acp-rest/nowhere", trust_env=False, headers=bearing(gander_server.token)) as lost:
        assert (await refusal(lost.run_sync(INPUT, agent="echo"))).message


async def too_many_requests(gander_server, other):
    """A server that takes two requests and no more, so that the third is refused."""
    variables = {"GANDER_LIMITS_LOCAL_REQUEST_BURST": "2", "GANDER_LIMITS_LOCAL_REQUESTS_PER_SECOND": "0"}
    with tempfile.TemporaryDirectory() as root:
        strict = GanderServer(Path(root), **variables)
        try:
            async with strict.client() as client:
                await client.run_sync(INPUT, agent="echo")
                await client.run_sync(INPUT, agent="echo")
                assert (await refusal(client.run_sync(INPUT, agent="echo"))).message
        finally:
            strict.end(signal.SIGTERM)


async def later(gander_server, other):
    async with gander_server.client() as client:
        run = await client.run_async(INPUT, agent="echo")
        assert run.status == RunStatus.CREATED
        while run.status in (RunStatus.CREATED, RunStatus.IN_PROGRESS):
            run = await client.run_status(run_id=run.run_id)
        assert (run.status, text(run)) == (RunStatus.COMPLETED, ["Hello!"])


async def stream(gander_server, other):
    async with gander_server.client() as client:
        events = [event async for event in client.run_stream("50", agent="parts")]
        assert isinstance(events[0], RunCreatedEvent) and isinstance(events[-1], RunCompletedEvent)
        assert len(events) == 55, len(events)
        again = [event async for event in client.run_events(run_id=events[0].run.run_id)]
        assert again == events


async def rich(gander_server, other):
    async with gander_server.client() as client:
        events = [event async for event in client.run_stream("go", agent="rich")]
        assert isinstance(events[-1], RunCompletedEvent)
        kinds = [part.metadata.kind for message in events[-1].run.output for part in message.parts if part.metadata]
        assert kinds == ["trajectory"] * 3, kinds


async def await_and_resume(gander_server, other):
    async with gander_server.client() as client:
        run = await client.run_sync(INPUT, agent="approve")
        assert run.status == RunStatus.AWAITING and run.await_request.message.parts[0].content == "May I?"
        run = await client.run_resume_sync(reply("yes"), run_id=run.run_id)
        assert (run.status, text(run)) == (RunStatus.COMPLETED, ["you said: yes"])
        run = await client.run_sync(INPUT, agent="approve")
        run = await client.run_resume_async(reply("yes"), run_id=run.run_id)
        assert run.status == RunStatus.IN_PROGRESS
        events = [event async for event in client.run_stream(INPUT, agent="approve")]
        assert isinstance(events[-1], RunAwaitingEvent)
        run = events[-1].run
        events = [event async for event in client.run_resume_stream(reply("yes"), run_id=run.run_id)]
        assert isinstance(events[0], RunInProgressEvent) and isinstance(events[-1], RunCompletedEvent)


async def awaiting_survives_a_kill(gander_server, other):
    async with gander_server.client() as client:
        run = await client.run_sync(INPUT, agent="approve")
        gander_server.end()
        gander_server.start()
        before = await client.run_status(run_id=run.run_id)
        assert before.status == RunStatus.AWAITING
        run = await client.run_resume_sync(reply("yes"), run_id=run.run_id)
        assert (run.status, text(run)) == (RunStatus.COMPLETED, ["you said: yes"])
        events = [event async for event in client.run_events(run_id=run.run_id)]
        assert isinstance(events[0], RunCreatedEvent) and isinstance(events[-1], RunCompletedEvent)


async def cancel(gander_server, other):
    async with gander_server.client() as client:
        last = None
        async for event in client.run_stream(INPUT, agent="slow"):
            if isinstance(event, RunCreatedEvent):
                run = await client.run_cancel(run_id=event.run.run_id)
                assert run.status == RunStatus.CANCELLING
            last = event
        assert isinstance(last, RunCancelledEvent)


async def failure(gander_server, other):
    async with gander_server.client() as client:
        run = await client.run_sync(INPUT, agent="failer")
        assert (run.status, run.error.code) == (RunStatus.FAILED, "invalid_input")


async def sessions(gander_server, other):
    async with gander_server.client() as client, client.session() as session:
        run = await session.run_sync(INPUT, agent="history_echo")
        assert text(run) == ["Hello!"]
        run = await session.run_sync(INPUT, agent="history_echo")
        assert text(run) == ["Hello!"] * 3
        described = await session.refresh_session()
        assert len(described.history) == 6, described


async def sessions_across_servers(gander_server, other):
    def show(request):
        """A client of two servers shows each its own token."""
        token = next(base.token for base in (gander_server, other) if base.port == request.url.port)
        request.headers.update(bearing(token))
        return request

    async with Client(trust_env=False, auth=show) as client, client.session() as session:
        for base, expected in [(gander_server, 1), (other, 3), (gander_server, 7)]:
            run = await session.run_sync(INPUT, agent="history_echo", base_url=base.url)
            assert text(run) == ["Hello!"] * expected, (expected, text(run))


async def output_of(*command, **options):
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, cwd=HERE, **options)
    out, error = await asyncio.wait_for(process.communicate(), PATIENCE)
    assert process.returncode == 0, error.decode()[-600:]
    return out.decode()


async def npm(gander_server, other):
    """Every step of the npm client is a line of its own."""
    out = await output_of("node", "steps.mjs", gander_server.url, gander_server.token)
    steps = re.findall(r"^(ok|FAIL) (\S+)(.*)$", out, re.M)
    assert len(steps) == 20, out
    for verdict, name, rest in steps:
        print(f"{'pass' if verdict == 'ok' else 'fail'} npm-{name}{rest if verdict != 'ok' else ''}")


async def beeai(gander_server, other):
    out = await output_of(".venv/beeai/bin/python", "beeai.py", other.url)
    assert json.loads(out.splitlines()[-1]) == ["hello", "again"], out


async def acp_mcp(gander_server, other):
    out = await output_of(".venv/mcp/bin/python", "mcp_tools.py", other.url, ".venv/mcp/bin/acp-mcp")
    assert "hi" in out, out


CASES = [
    discovery,
    sync,
    native,
    asks_and_runs,
    only_prompts,
    errors_of_the_outer_layer,
    too_many_requests,
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
        gander_server, other = GanderServer(Path(one)), GanderServer(Path(two), "--open", "acp-rest")
        try:
            for case in CASES:
                try:
                    await asyncio.wait_for(case(gander_server, other), PATIENCE)
                    print(f"pass {case.__name__}", flush=True)
                except Exception as error:  # noqa: BLE001: whatever a client throws is its verdict
                    reason = " ".join(f"{type(error).__name__} {error}".split())[:400]
                    print(f"fail {case.__name__} {reason}", flush=True)
        finally:
            gander_server.end(signal.SIGTERM)
            other.end(signal.SIGTERM)


asyncio.run(main())
