"""Puts real MCP servers behind gander and uses them as an editor would: over stdio, with permissions and forms."""

import asyncio
import json
import os
import re
import signal
import socket
import sys
import tempfile
import urllib.request
import uuid
from contextlib import asynccontextmanager, suppress
from pathlib import Path

GANDER, *ONLY = sys.argv[1:]
HERE = Path(__file__).parent
PATIENCE = 60
ROUNDS = int(os.environ.get("GANDER_INTEROP_ROUNDS", "100"))


class Editor:
    """A client on stdio that allows every call and fills in every form."""

    def __init__(self, process):
        self.process = process
        self.next_id = 0
        self.updates = []
        self.requests = []
        self.answers = {}
        self.changed = asyncio.Event()
        self.reading = asyncio.create_task(self.read())

    async def read(self):
        while line := await self.process.stdout.readline():
            message = json.loads(line)
            if "method" not in message:
                self.answers[message["id"]] = message
            elif message["method"] == "session/update":
                self.updates.append(message["params"]["update"])
            elif "id" in message:
                self.requests.append(message)
                self.write({"id": message["id"], "result": self.reply(message)})
            self.changed.set()

    def reply(self, message):
        if message["method"] == "session/request_permission":
            allow = next(option for option in message["params"]["options"] if option["kind"].startswith("allow"))
            return {"outcome": {"outcome": "selected", "optionId": allow["optionId"]}}
        fields = message["params"].get("requestedSchema", {}).get("properties", {})
        return {"action": "accept", "content": {name: filled(field) for name, field in fields.items()}}

    def write(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def call(self, method, **params):
        self.next_id += 1
        number = self.next_id
        self.write({"id": number, "method": method, "params": params})
        await self.until(lambda: number in self.answers)
        answer = self.answers.pop(number)
        assert "error" not in answer, answer
        return answer["result"]

    async def until(self, seen):
        async def wait():
            while not seen():
                self.changed.clear()
                await self.changed.wait()

        await asyncio.wait_for(wait(), PATIENCE)

    async def session(self, folder, *servers):
        return (await self.call("session/new", cwd=str(folder), mcpServers=list(servers)))["sessionId"]

    async def use(self, session, *calls):
        """Makes the demo model use these tools one after another; gives the last state of each call."""
        self.updates.clear()
        steps = [[{"tool": name, "args": arguments}] for name, arguments in calls] + [[{"text": "Done."}]]
        text = f"[[script:{json.dumps(steps)}]]"
        answer = await self.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
        assert answer["stopReason"] == "end_turn", answer
        ends = {}
        for update in self.updates:
            if update["sessionUpdate"] in ("tool_call", "tool_call_update"):
                ends.setdefault(update["toolCallId"], {}).update(update)
        return list(ends.values())

    async def servers(self, session):
        listed = (await self.call("_gander/extensions/list", sessionId=session))["extensions"]
        return [extension for extension in listed if extension["place"] != "built in"]


def filled(field):
    """A value that fits one field of a form."""
    if "const" in field or "default" in field:
        return field.get("const", field.get("default"))
    if options := field.get("enum") or [option["const"] for option in field.get("oneOf", [])]:
        return options[0]
    kinds = {"boolean": True, "integer": 7, "number": 7.5, "array": []}
    formats = {"email": "a@example.org", "uri": "https://example.org", "date": "2026-01-31", "date-time": "2026-01-31T10:00:00Z"}
    return kinds.get(field.get("type"), formats.get(field.get("format"), "Ada Lovelace"))


class GanderServer:
    """A data directory and a folder to work in."""

    def __init__(self, root):
        self.data, self.work, self.mark = root / "data", root / "work", f"GANDER_INTEROP={uuid.uuid4()}"
        self.data.mkdir()
        self.work.mkdir()

    async def command(self, *words, last=()):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.data), "GANDER_MODEL": "demo/demo"}
        words = (GANDER, *words, "--data", str(self.data), *(("--", *last) if last else ()))
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(*words, env=env, stdin=pipe, stdout=pipe, limit=64 << 20)

    @asynccontextmanager
    async def editor(self):
        process = await self.command("acp")
        editor = Editor(process)
        capabilities = {"elicitation": {"form": {}, "url": {}}}
        hello = await editor.call("initialize", protocolVersion=1, clientCapabilities=capabilities)
        assert hello["agentCapabilities"]["mcpCapabilities"]["http"] is True, hello
        try:
            yield editor
        finally:
            process.stdin.close()
            await process.wait()
            editor.reading.cancel()

    def node(self, package, *arguments):
        return self.stdio(package, "node", str(HERE / "node_modules/.bin" / f"mcp-server-{package}"), *arguments)

    def stdio(self, name, *command):
        variable, value = self.mark.split("=")
        env = [{"name": variable, "value": value}]
        return {"name": name, "command": command[0], "args": list(command[1:]), "env": env}

    def everything(self):
        return self.node("everything", "stdio")

    def files(self):
        return self.node("filesystem", str(self.work))

    def processes(self):
        """Everything that our servers started, however far it went."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and self.mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass  # it has just ended, or is another's
        return found

    def programs(self, name):
        """Those of them that are this program."""
        found = []
        for process in self.processes():
            with suppress(OSError):  # it has just ended
                words = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
                found += [process] if Path(words[0].decode()).name == name else []
        return found

    def kill(self):
        for process in self.processes():
            with suppress(ProcessLookupError):  # it ended with the one before
                os.kill(process, signal.SIGKILL)

    async def no_process(self):
        for _ in range(200):
            if not (left := self.processes()):
                return
            await asyncio.sleep(0.1)
        raise AssertionError(f"processes are left: {left}")

    def end_background(self):
        """The background server goes on after its clients: find it by its data directory and end it."""
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
                if str(self.data).encode() in words:
                    os.kill(int(entry.name), signal.SIGTERM)
            except OSError:
                pass  # it has just ended by itself


def shown(call):
    return json.dumps(call.get("content", []))


async def tools(gander_server):
    async with gander_server.editor() as editor:
        session = await editor.session(gander_server.work, gander_server.everything())
        echo, total, image, structured, links, embedded = await editor.use(
            session,
            ("everything__echo", {"message": "over the pond"}),
            ("everything__get-sum", {"a": 2, "b": 40}),
            ("everything__get-tiny-image", {}),
            ("everything__get-structured-content", {"location": "Chicago"}),
            ("everything__get-resource-links", {"count": 2}),
            ("everything__get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
        )
        assert "over the pond" in shown(echo) and echo["status"] == "completed", echo
        assert "42" in shown(total), total
        assert '"type": "image"' in shown(image), image
        assert structured["rawOutput"]["conditions"], structured
        assert '"type": "resource_link"' in shown(links), links
        assert '"type": "resource"' in shown(embedded), embedded
        asked = [request for request in editor.requests if request["method"] == "session/request_permission"]
        assert len(asked) == 6, "every call is asked about"


async def late_tools(gander_server):
    """The server adds tools once it has seen what we can do: list-changed."""
    async with gander_server.editor() as editor:
        session = await editor.session(gander_server.work, gander_server.everything())
        for _ in range(100):
            [server] = await editor.servers(session)
            if "everything__trigger-elicitation-request" in server.get("tools", []):
                return
            await asyncio.sleep(0.2)
        raise AssertionError(server)


async def elicitation(gander_server):
    async with gander_server.editor() as editor:
        session = await editor.session(gander_server.work, gander_server.everything())
        await ready(editor, session, "everything__trigger-elicitation-request")
        [call] = await editor.use(session, ("everything__trigger-elicitation-request", {}))
        forms = [request for request in editor.requests if request["method"] == "elicitation/create"]
        assert len(forms) == 1 and forms[0]["params"]["mode"] == "form", editor.requests
        assert "Ada Lovelace" in shown(call), call


async def sampling(gander_server):
    async with gander_server.editor() as editor:
        session = await editor.session(gander_server.work, gander_server.everything())
        await ready(editor, session, "everything__trigger-sampling-request")
        arguments = {"prompt": "Say something", "maxTokens": 50}
        [call] = await editor.use(session, ("everything__trigger-sampling-request", arguments))
        titles = [request["params"]["toolCall"].get("title", "") for request in editor.requests]
        assert any("wants to ask the model" in title for title in titles), titles
        assert "demo" in shown(call).lower(), call


async def progress(gander_server):
    async with gander_server.editor() as editor:
        session = await editor.session(gander_server.work, gander_server.everything())
        arguments = {"duration": 1, "steps": 4}
        [call] = await editor.use(session, ("everything__trigger-long-running-operation", arguments))
        texts = [shown(update) for update in editor.updates if update["sessionUpdate"] == "tool_call_update"]
        assert any(re.search(r"\d of 4", text) for text in texts), texts
        assert call["status"] == "completed", call


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


async def over_http(gander_server):
    port = free_port()
    program = ("node", str(HERE / "node_modules/.bin/mcp-server-everything"), "streamableHttp")
    env = {**os.environ, "PORT": str(port)}
    null = asyncio.subprocess.DEVNULL
    server = await asyncio.create_subprocess_exec(*program, env=env, stdout=null, stderr=null)
    try:
        await listening(port)
        web = {"type": "http", "name": "web", "url": f"http://127.0.0.1:{port}/mcp", "headers": []}
        async with gander_server.editor() as editor:
            session = await editor.session(gander_server.work, web)
            echo, image = await editor.use(session, ("web__echo", {"message": "by wire"}), ("web__get-tiny-image", {}))
            assert "by wire" in shown(echo) and '"type": "image"' in shown(image), (echo, image)
    finally:
        server.kill()
        await server.wait()


@asynccontextmanager
async def guarded(lifetime):
    """A server behind OAuth."""
    port = free_port()
    program = (str(HERE / ".venv/bin/python"), str(HERE / "guarded.py"), str(port), str(lifetime))
    null = asyncio.subprocess.DEVNULL
    server = await asyncio.create_subprocess_exec(*program, stdout=null, stderr=null)
    try:
        await listening(port)
        yield {"type": "http", "name": "guarded", "url": f"http://127.0.0.1:{port}/mcp", "headers": []}
    finally:
        server.kill()
        await server.wait()


async def login(gander_server):
    """The editor is asked to open an address; whoever opens it there is sent back to us, and the tools are there."""
    async with guarded(3600) as server, gander_server.editor() as editor:
        session = await editor.session(gander_server.work, server)
        await state(editor, session, "needs_login")
        # Whoever works on meanwhile is asked and not stopped.
        await editor.use(session, ("shell", {"command": "sleep 3"}))
        await editor.until(lambda: any(request["method"] == "elicitation/create" for request in editor.requests))
        asked = next(request for request in editor.requests if request["method"] == "elicitation/create")
        assert asked["params"]["mode"] == "url", asked
        page = await asyncio.to_thread(browse, asked["params"]["url"])
        assert "You are logged in" in page, page
        await ready(editor, session, "guarded__renewals")
        [call] = await editor.use(session, ("guarded__renewals", {}))
        assert "renewed 0 times" in shown(call), call
        seen = json.dumps([editor.updates, editor.requests, await editor.servers(session)])
        kept = gander_server.data / "secrets.json"
        tokens = re.findall(r'"(?:access|refresh)_token":"([^"]+)"', kept.read_text())
        assert len(tokens) == 2 and not any(token in seen for token in tokens), "tokens are kept and not shown"
        assert kept.stat().st_mode & 0o777 == 0o600, oct(kept.stat().st_mode)


async def login_from_terminal(gander_server):
    """Another client of the same person finds the login; a token that ends is renewed."""
    async with guarded(31) as server, gander_server.editor() as editor:
        session = await editor.session(gander_server.work, server)
        await state(editor, session, "needs_login")
        terminal = await gander_server.command("extensions", "login", "guarded", "--session", session)
        await terminal.stdout.readline()
        url = (await terminal.stdout.readline()).decode().strip()
        page = await asyncio.to_thread(browse, url)
        assert "You are logged in" in page, page
        assert (await terminal.stdout.readline()).decode().strip() == "Logged in."
        assert await terminal.wait() == 0
        await ready(editor, session, "guarded__renewals")
        await asyncio.sleep(2)  # a token with less than 30 seconds left is renewed
        [call] = await editor.use(session, ("guarded__renewals", {}))
        assert re.search("renewed [1-9]", shown(call)), call
        forgotten = await gander_server.command("extensions", "logout", "guarded", "--session", session)
        assert await forgotten.wait() == 0
        assert "access_token" not in (gander_server.data / "secrets.json").read_text()


def browse(url):
    """Opens an address as a browser would, redirects included."""
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read().decode()


async def state(editor, session, wanted):
    for _ in range(300):
        servers = await editor.servers(session)
        if [server["state"] for server in servers] == [wanted]:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"not {wanted}: {servers}")


async def files(gander_server):
    async with gander_server.editor() as editor:
        session = await editor.session(gander_server.work, gander_server.files())
        inside, outside = str(gander_server.work / "note.txt"), str(gander_server.data / "note.txt")
        written, read, refused = await editor.use(
            session,
            ("filesystem__write_file", {"path": inside, "content": "written by another"}),
            ("filesystem__read_text_file", {"path": inside}),
            ("filesystem__write_file", {"path": outside, "content": "no"}),
        )
        assert (gander_server.work / "note.txt").read_text() == "written by another", written
        assert "written by another" in shown(read), read
        assert refused["status"] == "failed" and not Path(outside).exists(), refused


async def shared(gander_server):
    """Two sessions use one process where the entry says so, and one each where it does not."""
    variable, value = gander_server.mark.split("=")
    program = ["node", str(HERE / "node_modules/.bin/mcp-server-filesystem"), str(gander_server.work)]
    for flags, expected in (["--shared"], 1), ([], 2):
        name = "shared" if flags else "own"
        added = await gander_server.command("extensions", "add", name, *flags, "--env", f"{variable}={value}", last=program)
        assert await added.wait() == 0
        async with gander_server.editor() as editor:
            for _ in range(2):
                session = await editor.session(gander_server.work)
                [call] = await editor.use(session, (f"{name}__list_directory", {"path": str(gander_server.work)}))
                assert call["status"] == "completed", call
            found = gander_server.programs("node")
            assert len(found) == expected, f"{name}: {found}"
            removed = await gander_server.command("extensions", "remove", name)
            assert await removed.wait() == 0
        gander_server.end_background()
        await gander_server.no_process()


async def python(gander_server):
    async with gander_server.editor() as editor:
        clock = gander_server.stdio("time", str(HERE / ".venv/bin/python"), "-m", "mcp_server_time", "--local-timezone", "UTC")
        session = await editor.session(gander_server.work, clock)
        [call] = await editor.use(session, ("time__get_current_time", {"timezone": "Europe/Zurich"}))
        assert "Europe/Zurich" in shown(call) and call["status"] == "completed", call


async def crash(gander_server):
    async with gander_server.editor() as editor:
        session = await editor.session(gander_server.work, gander_server.files())
        await ready(editor, session, "filesystem__list_directory")
        look = ("filesystem__list_directory", {"path": str(gander_server.work)})
        gander_server.kill()
        [call] = await editor.use(session, look)
        assert call["status"] == "completed", f"it only reads: {call}"
        # This server says of none of its tools that it may be called twice but of those that read and overwrite.
        note = gander_server.work / "note.txt"
        note.write_text("one goose")
        edit = ("filesystem__edit_file", {"path": str(note), "edits": [{"oldText": "one", "newText": "one wild"}]})
        gander_server.kill()
        edited, seen = await editor.use(session, edit, look)
        told = "may or may not have taken effect" in shown(edited)
        assert edited["status"] == "completed" or told, edited
        assert note.read_text() in ("one goose", "one wild goose"), "at most once"
        assert seen["status"] == "completed", seen


async def no_orphans(gander_server):
    """Sessions come and go, some before their server has even started: nothing is left of any."""
    async with gander_server.editor() as editor:
        for number in range(ROUNDS):
            session = await editor.session(gander_server.work, gander_server.files())
            if number % 10 == 0:
                await ready(editor, session, "filesystem__list_directory")
            await editor.call("session/close", sessionId=session)
        await gander_server.no_process()


async def ready(editor, session, tool):
    for _ in range(300):
        servers = await editor.servers(session)
        if any(tool in server.get("tools", []) for server in servers):
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"no {tool}: {servers}")


async def listening(port):
    for _ in range(300):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        except OSError:
            await asyncio.sleep(0.1)
    raise AssertionError("the server does not listen")


SCENARIOS = [tools, late_tools, elicitation, sampling, progress, over_http, login, login_from_terminal, files, shared, python, crash, no_orphans]


async def main():
    for scenario in [scenario for scenario in SCENARIOS if not ONLY or scenario.__name__ in ONLY]:
        with tempfile.TemporaryDirectory() as root:
            gander_server = GanderServer(Path(root))
            try:
                await asyncio.wait_for(scenario(gander_server), 4 * PATIENCE)
                gander_server.end_background()
                await gander_server.no_process()
                print(f"pass {scenario.__name__}", flush=True)
            except Exception as error:
                print(f"fail {scenario.__name__} {type(error).__name__} {str(error)[:400]}".replace("\n", " "), flush=True)
            finally:
                gander_server.end_background()


asyncio.run(main())
