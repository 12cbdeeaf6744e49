"""Asks a real local model the same through every protocol of gander, and looks that its answer streams."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

PATIENCE = 600
HERE = pathlib.Path(__file__).parent
SAY = "Say hello."


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class GanderServer:
    """The model, and a gander that knows no other."""

    def __init__(self, gander, root):
        self.log = open(root / "model.log", "w+", encoding="utf-8")
        self.model = subprocess.Popen(
            [sys.executable, str(HERE / "serve.py")], stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        address = self.address()
        self.work = root / "work"
        self.work.mkdir()
        self.gander, self.data = gander, root / "data"
        config = root / "gander.toml"
        # A small model has a small window: few words about tools, and short answers.
        config.write_text(
            "[agent]\nmax_output = 24\nwindow = 8192\nmax_turns = 1\n[model]\ndefault = \"openai/smollm2\"\n", encoding="utf-8"
        )
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": str(root), "OPENAI_BASE_URL": f"{address}/v1",
            "OPENAI_API_KEY": "of-no-worth", "GANDER_CONFIG": str(config), "GANDER_SERVER_ROOTS": json.dumps([str(self.work)]),
        }
        self.port = free_port()
        self.server = subprocess.Popen(
            self.line("serve", "--listen", f"127.0.0.1:{self.port}"), env=self.environment, cwd=self.work,
            stdout=subprocess.DEVNULL, stderr=self.log,
        )
        self.wait()
        # Whoever comes over HTTP only asks the model something.
        self.token = subprocess.run(
            self.line("token", "add", "asking", "--scopes", "prompt"), env=self.environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    def address(self):
        for line in self.model.stdout:
            if line.startswith("address "):
                return line.split()[1]
        raise RuntimeError("the model's server did not start")

    def line(self, *arguments):
        return [self.gander, *arguments, "--data", str(self.data)]

    def wait(self):
        begun = time.monotonic()
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5).read()
                return
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() - begun > 60:
                    raise
                time.sleep(0.05)

    def post(self, path, body, accept="text/event-stream"):
        """The `data:` lines of a streamed answer, with the time of each."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), method="POST",
            headers={
                "authorization": f"Bearer {self.token}", "content-type": "application/json", "accept": accept,
                "a2a-version": "1.0",
            },
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return [json.loads(line[5:]) for line in response if line.startswith(b"data:") and line[5:].strip()]

    def ask(self, path, body):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", json.dumps(body).encode(), method="POST",
            headers={"authorization": f"Bearer {self.token}", "content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return json.load(response)

    def close(self):
        for process in (self.server, self.model):
            process.kill()
            process.wait()


def check(pieces):
    """An answer of several pieces: it came as it was made."""
    text = "".join(pieces)
    assert text.strip(), "the answer is empty"
    assert len(pieces) >= 2, f"it came in one piece: {text!r}"


def acp_stdio(gander_server):
    lines = subprocess.run(
        gander_server.line("run", "--json", "--cwd", str(gander_server.work), SAY), env=gander_server.environment, capture_output=True,
        text=True, timeout=PATIENCE, check=False,
    )
    events = [json.loads(line) for line in lines.stdout.splitlines()]
    check([event["text"] for event in events if event["type"] == "text"])


def acp_http(gander_server):
    """The same protocol over streamable HTTP: a connection, a session, a prompt; the stream tells the answer."""
    base, headers = f"http://127.0.0.1:{gander_server.port}/acp", {"authorization": f"Bearer {gander_server.token}"}

    def call(body, more):
        request = urllib.request.Request(
            base, json.dumps(body).encode(), method="POST",
            headers={**headers, **more, "content-type": "application/json", "accept": "application/json, text/event-stream"},
        )
        return urllib.request.urlopen(request, timeout=PATIENCE)

    hello = {"protocolVersion": 1, "clientCapabilities": {}}
    opened = call({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}, {})
    connection = {"acp-connection-id": opened.headers["acp-connection-id"]}
    stream = urllib.request.urlopen(
        urllib.request.Request(base, headers={**headers, **connection, "accept": "text/event-stream"}), timeout=PATIENCE
    )
    told = (json.loads(line[5:]) for line in stream if line.startswith(b"data:") and line[5:].strip())
    params = {"cwd": str(gander_server.work), "mcpServers": []}
    call({"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": params}, connection).read()
    session = next(message for message in told if message.get("id") == 2)["result"]["sessionId"]
    of = {**connection, "acp-session-id": session}
    own = urllib.request.urlopen(
        urllib.request.Request(base, headers={**headers, **of, "accept": "text/event-stream"}), timeout=PATIENCE
    )
    prompt = {"sessionId": session, "prompt": [{"type": "text", "text": SAY}]}
    call({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": prompt}, of).read()
    pieces = []
    for line in own:
        if not line.startswith(b"data:") or not line[5:].strip():
            continue
        message = json.loads(line[5:])
        if message.get("id") == 3:
            break
        update = message.get("params", {}).get("update", {})
        if update.get("sessionUpdate") == "agent_message_chunk":
            pieces.append(update["content"]["text"])
    check(pieces)


def acp_rest(gander_server):
    message = {"role": "user", "parts": [{"content_type": "text/plain", "content": SAY}]}
    events = gander_server.post("/runs", {"agent_name": "gander", "input": [message], "mode": "stream"})
    check([event["part"]["content"] for event in events if event["type"] == "message.part"])


def a2a(gander_server):
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": SAY}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": message}}
    events = gander_server.post("/a2a", call)
    updates = [event["result"].get("artifactUpdate") for event in events]
    parts = [part for update in updates if update for part in update["artifact"]["parts"]]
    check([part["text"] for part in parts if part.get("text")])


def goose(gander_server):
    session = gander_server.ask("/agent/start", {"working_dir": str(gander_server.work)})["id"]
    said = {
        "id": None, "role": "user", "created": 0, "content": [{"type": "text", "text": SAY}],
        "metadata": {"userVisible": True, "agentVisible": True},
    }
    events = gander_server.post("/reply", {"session_id": session, "user_message": said})
    messages = [event["message"] for event in events if event["type"] == "Message"]
    check([piece["text"] for message in messages for piece in message["content"] if piece["type"] == "text"])


def adk(gander_server):
    session = gander_server.ask("/apps/gander/users/user/sessions", {})["id"]
    body = {
        "appName": "gander", "userId": "user", "sessionId": session, "streaming": True,
        "newMessage": {"role": "user", "parts": [{"text": SAY}]},
    }
    events = gander_server.post("/run_sse", body)
    partial = [event for event in events if event.get("partial")]
    check([part["text"] for event in partial for part in event["content"]["parts"] if part.get("text")])


def has_adk(gander_server):
    """The Agent Development Kit is asked if there is one."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{gander_server.port}/list-apps", headers={"authorization": f"Bearer {gander_server.token}"}
    )
    try:
        urllib.request.urlopen(request, timeout=60).read()
        return True
    except urllib.error.HTTPError:
        print("not tried: adk (this server has no such protocol)", file=sys.stderr)
        return False


def main():
    with tempfile.TemporaryDirectory(prefix="gander-local-model-") as root:
        gander_server = GanderServer(sys.argv[1], pathlib.Path(root))
        try:
            protocols = [acp_stdio, acp_http, acp_rest, a2a, goose] + ([adk] if has_adk(gander_server) else [])
            for protocol in protocols:
                begun = time.monotonic()
                try:
                    protocol(gander_server)
                    print(f"pass {protocol.__name__} {time.monotonic() - begun:.1f} s", flush=True)
                except Exception as error:  # noqa: BLE001 - one protocol must not stop the others
                    reason = f"{type(error).__name__}: {error}".replace("\n", " ")
                    print(f"fail {protocol.__name__} {reason[:400]}", flush=True)
        finally:
            gander_server.close()


main()
