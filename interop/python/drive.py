"""Drives gander with the Python SDK of the Agent Client Protocol, over stdio, HTTP and WebSocket."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import asynccontextmanager, closing
from pathlib import Path

import acp
from acp import schema
from acp.http import create_http_stream
from acp.http.client import AcpHttpStatusError
from acp.ws import create_websocket_stream

GANDER = sys.argv[1]
PATIENCE = 60


class Editor(acp.Client):
    """Remembers what it is told and answers permissions with the wanted kind of option."""

    def __init__(self, wanted="allow_once"):
        self.wanted = wanted
        self.updates = []
        self.asked = []
        self.changed = asyncio.Event()

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        self.changed.set()

    async def request_permission(self, session_id, tool_call, options, **_):
        self.asked.append(tool_call)
        self.changed.set()
        if self.wanted is None:
            raise acp.RequestError.method_not_found("session/request_permission")
        option = next(option for option in options if option.kind == self.wanted)
        return schema.RequestPermissionResponse(
            outcome=schema.AllowedOutcome(outcome="selected", option_id=option.option_id)
        )

    def text(self, kind="agent_message_chunk"):
        chunks = [update for update in self.updates if update.session_update == kind]
        return "".join(chunk.content.text for chunk in chunks)

    def kinds(self):
        return {update.session_update for update in self.updates}

    async def until(self, seen):
        while not seen():
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), PATIENCE)


class GanderServer:
    """A server at its default settings with a folder to work in, and one way to it.

    Over stdio the client is the owner's. Over HTTP and WebSocket it is somebody else's who was given a token to prompt and to
    answer with, and the folder to work in.
    """

    def __init__(self, root, transport):
        self.data, self.work, self.transport = root / "data", root / "work", transport
        self.data.mkdir()
        self.work.mkdir()
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.data), "GANDER_MODEL": "demo/demo"}
        self.env["GANDER_SERVER_ROOTS"] = json.dumps([str(self.work)])
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.server = subprocess.Popen(
            [GANDER, "serve", "--listen", self.address, "--data", self.data], env=self.env,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )

    async def open(self):
        async with asyncio.timeout(PATIENCE):
            while not await asyncio.to_thread(self.is_healthy):
                await asyncio.sleep(0.05)
        command = [GANDER, "token", "add", "editor", "--scopes", "prompt,approve", "--data", self.data]
        added = subprocess.run(command, env=self.env, capture_output=True, check=True, text=True)
        self.headers = {"Authorization": f"Bearer {added.stdout.strip()}"}

    def is_healthy(self):
        try:
            return urllib.request.urlopen(f"http://{self.address}/health").status == 200
        except OSError:
            return False

    def close(self):
        self.server.terminate()
        self.server.wait(PATIENCE)

    @asynccontextmanager
    async def agent(self, editor, transport=None):
        async with self.connection(editor, transport or self.transport) as connection:
            info = schema.Implementation(name="interop", version="1")
            hello = await connection.initialize(protocol_version=acp.PROTOCOL_VERSION, client_info=info)
            assert hello.protocol_version == 1 and hello.agent_info.name == "gander", hello
            yield connection

    @asynccontextmanager
    async def connection(self, editor, transport):
        if transport == "stdio":
            command = (GANDER, "acp", "--data", str(self.data))
            async with acp.spawn_agent_process(editor, *command, env=self.env) as (connection, _):
                yield connection
            return
        if transport == "http":
            stream = create_http_stream(f"http://{self.address}/acp", headers=self.headers)
        else:
            stream = await create_websocket_stream(f"ws://{self.address}/acp", headers=self.headers)
        connection = acp.connect_to_agent(editor, stream)
        try:
            yield connection
        finally:
            await connection.close()
            await stream.close()

    async def session(self, connection):
        return (await connection.new_session(cwd=str(self.work), mcp_servers=[])).session_id


def script(*calls):
    return [acp.text_block(f"[[script:{json.dumps(calls)}]]")]


def touch(name):
    return script([{"tool": "shell", "args": {"command": f"touch {name}"}}], [{"text": "All done."}])


async def prompt(gander_server):
    editor = Editor()
    async with gander_server.agent(editor) as agent:
        session = await gander_server.session(agent)
        answer = await agent.prompt(session, script([{"thought": "hmm"}, {"text": "hello there", "chunks": 4}]))
    assert answer.stop_reason == "end_turn", answer
    assert (editor.text("agent_thought_chunk"), editor.text()) == ("hmm", "hello there"), editor.updates


async def permission_allowed(gander_server):
    editor = Editor("allow_once")
    async with gander_server.agent(editor) as agent:
        answer = await agent.prompt(await gander_server.session(agent), touch("allowed"))
    assert answer.stop_reason == "end_turn" and editor.text() == "All done.", editor.updates
    assert len(editor.asked) == 1 and (gander_server.work / "allowed").exists()


async def permission_rejected(gander_server):
    editor = Editor("reject_once")
    async with gander_server.agent(editor) as agent:
        answer = await agent.prompt(await gander_server.session(agent), touch("rejected"))
    assert answer.stop_reason == "end_turn" and len(editor.asked) == 1, editor.updates
    assert not (gander_server.work / "rejected").exists()


async def permission_not_supported(gander_server):
    """A client that refuses to be asked withdraws: nothing runs, the question waits for somebody else."""
    editor = Editor(None)
    async with gander_server.agent(editor) as agent:
        session = await gander_server.session(agent)
        turn = asyncio.create_task(agent.prompt(session, touch("unasked")))
        await editor.until(lambda: editor.asked)
        other = Editor("allow_once")
        # Somebody of the same name, over another transport where the token leads to one.
        async with gander_server.agent(other, "websocket" if gander_server.transport == "http" else None) as second:
            await second.load_session(cwd=str(gander_server.work), session_id=session, mcp_servers=[])
            answer = await asyncio.wait_for(turn, PATIENCE)
    assert answer.stop_reason == "end_turn" and len(other.asked) == 1, other.updates
    assert (gander_server.work / "unasked").exists()


async def cancel(gander_server):
    editor = Editor()
    async with gander_server.agent(editor) as agent:
        session = await gander_server.session(agent)
        turn = asyncio.create_task(agent.prompt(session, script([{"text": "~", "repeat": 100000, "delay_ms": 2}])))
        await editor.until(editor.text)
        await agent.cancel(session)
        answer = await asyncio.wait_for(turn, PATIENCE)
        assert answer.stop_reason == "cancelled", answer
        after = await agent.prompt(session, script([{"text": "still here"}]))
    assert after.stop_reason == "end_turn" and editor.text().endswith("still here")


async def plan_and_diff(gander_server):
    editor = Editor()
    items = [{"text": "write", "status": "in_progress"}]
    calls = script(
        [{"tool": "plan", "args": {"items": items}}],
        [{"tool": "write", "args": {"path": "new.txt", "content": "hi\n"}}],
        [{"text": "ok"}],
    )
    async with gander_server.agent(editor) as agent:
        await agent.prompt(await gander_server.session(agent), calls)
    assert {"plan", "tool_call", "tool_call_update"} <= editor.kinds(), editor.kinds()
    contents = [part for update in editor.updates for part in (getattr(update, "content", None) or []) if hasattr(part, "type")]
    assert any(part.type == "diff" and part.new_text == "hi\n" for part in contents), contents


async def load_replays(gander_server):
    first, second = Editor(), Editor()
    async with gander_server.agent(first) as agent:
        session = await gander_server.session(agent)
        await agent.prompt(session, script([{"text": "remember me", "chunks": 5}]))
    async with gander_server.agent(second) as agent:
        await agent.load_session(cwd=str(gander_server.work), session_id=session, mcp_servers=[])
        await second.until(second.text)
        listed = await agent.list_sessions(cwd=str(gander_server.work))
    assert second.text() == "remember me" and "user_message_chunk" in second.kinds()
    assert session in [entry.session_id for entry in listed.sessions]


async def errors_are_typed(gander_server):
    async with gander_server.agent(Editor()) as agent:
        # Over HTTP an unknown session is a 404 before there is a message.
        unknown = 404 if gander_server.transport == "http" else -32002
        for call, code in [
            (lambda: agent.new_session(cwd="relative", mcp_servers=[]), -32602),
            (lambda: agent.ext_method("no_such", {}), -32601),
            (lambda: agent.prompt("0199aaaa-0000-7000-8000-000000000000", [acp.text_block("hi")]), unknown),
        ]:
            try:
                raise AssertionError(f"no error but {await call()}")
            except acp.RequestError as error:
                assert error.code == code, error
            except AcpHttpStatusError as error:
                assert error.status_code == code, error


CASES = [
    prompt, permission_allowed, permission_rejected, permission_not_supported, cancel, plan_and_diff, load_replays,
    errors_are_typed,
]


async def main():
    for transport in ("stdio", "http", "websocket"):
        with tempfile.TemporaryDirectory(prefix="gander-python-") as root:
            gander_server = GanderServer(Path(root), transport)
            try:
                await gander_server.open()
                for case in CASES:
                    await attempt(case, gander_server)
            finally:
                gander_server.close()


async def attempt(case, gander_server):
    name = f"{gander_server.transport}_{case.__name__}"
    try:
        await asyncio.wait_for(case(gander_server), PATIENCE)
        print(f"pass {name}", flush=True)
    except Exception as error:  # noqa: BLE001 - a failed case must not stop the others
        reason = f"{type(error).__name__}: {error}".replace("\n", " ")
        print(f"fail {name} {reason[:600]}", flush=True)


asyncio.run(main())
