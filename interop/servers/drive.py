"""Servers of other people behind gander, each prompted over two of gander's own protocols: text, tool, question, cancel, error.

Usage: drive.py GANDER [servers…]. The servers are acp-sdk, a2a-sdk (1.0 and 0.3) and google-adk, each in the environment of its own folder.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid

sys.path.insert(0, "../a2a")
import gander_server

GANDER = sys.argv[1]
PATIENCE = 60
# Name, Python of its environment, its server, its settings, what it says to a greeting.
SERVERS = [
    ("acp-sdk", "../acp-rest/.venv/sdk/bin/python", "serve_acp_rest.py", 'kind = "acp_rest"', "hello from acp-sdk"),
    ("a2a-sdk-1.0", "../a2a/.venv/adk/bin/python", "serve_a2a.py", 'kind = "a2a"', "hello from a2a-sdk"),
    ("a2a-sdk-0.3", "../a2a/.venv/strands/bin/python", "serve_a2a_03.py", 'kind = "a2a"', "hello from a2a-sdk"),
    ("google-adk", "../adk/.venv/bin/python", "serve_adk.py", 'kind = "adk"\nagent = "behind"', "hello from google-adk"),
]


class Refused(Exception):
    pass


def call(server, path, body=None, headers=()):
    data = None if body is None else json.dumps(body).encode()
    all_headers = {"Authorization": f"Bearer {server.token_of_client}", "Content-Type": "application/json", **dict(headers)}
    request = urllib.request.Request(server.url + path, data=data, headers=all_headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return json.loads(response.read() or b"null")
    except urllib.error.HTTPError as error:
        raise Refused(f"{path}: {error.code} {error.read()[:300]!r}") from error


def until(what, look, wanted):
    end = time.monotonic() + PATIENCE
    while True:
        seen = look()
        if wanted(seen):
            return seen
        assert time.monotonic() < end, f"{what}: {seen}"
        time.sleep(0.1)


class AcpRest:
    """A client of gander's ACP-REST."""

    name = "acp-rest"

    def __init__(self, server, agent):
        self.server, self.agent = server, agent

    def start(self, text):
        said = {"role": "user", "parts": [{"content": text}]}
        run = call(self.server, "/runs", {"agent_name": self.agent, "mode": "async", "input": [said]})
        return run["run_id"]

    def look(self, run):
        return call(self.server, f"/runs/{run}")

    def end(self, run):
        return until("a run", lambda: self.look(run), lambda run: run["status"] not in ("created", "in-progress"))

    def text(self, state):
        parts = [part for message in state["output"] for part in message["parts"]]
        return "".join(part.get("content") or "" for part in parts)

    def tools(self, state):
        parts = [part for message in state["output"] for part in message["parts"]]
        return [(part.get("metadata") or {}).get("tool_name") for part in parts]

    def question(self, state):
        return json.dumps(state["await_request"]) if state["status"] == "awaiting" else None

    def answer(self, run, text):
        said = {"type": "message", "message": {"role": "user", "parts": [{"content": text}]}}
        call(self.server, f"/runs/{run}", {"run_id": run, "mode": "async", "await_resume": said})

    def cancel(self, run):
        call(self.server, f"/runs/{run}/cancel", {})

    def status(self, state):
        return state["status"]

    def error(self, state):
        return json.dumps(state["error"])


class A2a:
    """A client of gander's A2A 1.0, over HTTP and JSON."""

    name = "a2a"

    def __init__(self, server, agent):
        self.server, self.base = server, f"/a2a/{agent}"

    def call(self, path, body=None):
        return call(self.server, self.base + path, body, {"A2A-Version": "1.0"}.items())

    def send(self, text, **more):
        said = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": [{"text": text}], **more}
        return self.call("/message:send", {"message": said, "configuration": {"returnImmediately": True}})["task"]["id"]

    def start(self, text):
        return self.send(text)

    def look(self, task):
        return self.call(f"/tasks/{task}")

    def end(self, task):
        working = ("TASK_STATE_SUBMITTED", "TASK_STATE_WORKING")
        return until("a task", lambda: self.look(task), lambda task: task["status"]["state"] not in working)

    def text(self, state):
        return "".join(part.get("text", "") for artifact in state.get("artifacts", []) for part in artifact["parts"])

    def tools(self, state):
        """A tool is named in a message of the agent; more about it only a client gets that knows our extension."""
        agent = [message for message in state.get("history", []) if message["role"] == "ROLE_AGENT"]
        return [part.get("text") for message in agent for part in message["parts"]]

    def question(self, state):
        asks = state["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        return json.dumps(state["status"]["message"]) if asks else None

    def answer(self, task, text):
        self.send(text, taskId=task)

    def cancel(self, task):
        self.call(f"/tasks/{task}:cancel", {})

    def status(self, state):
        words = {"TASK_STATE_COMPLETED": "completed", "TASK_STATE_CANCELED": "cancelled", "TASK_STATE_FAILED": "failed"}
        return words.get(state["status"]["state"], state["status"]["state"])

    def error(self, state):
        return json.dumps(state["status"])


def said(client, greeting):
    state = client.end(client.start("hello"))
    assert client.status(state) == "completed", state
    assert greeting in client.text(state), state


def tool(client):
    state = client.end(client.start("tool"))
    assert client.status(state) == "completed" and "3" in client.text(state), state
    assert "add" in client.tools(state), state


def asks(client, words, answer, heard):
    run = client.start("ask")
    state = client.end(run)
    question = client.question(state)
    assert question and any(word in question for word in words), state
    client.answer(run, answer)
    state = until("an answer", lambda: client.end(run), lambda state: client.question(state) is None)
    assert client.status(state) == "completed" and heard in client.text(state), state


def cancelled(client, shows_work):
    run = client.start("wait")
    if shows_work:
        until("work", lambda: client.text(client.look(run)), lambda text: "working" in text)
    client.cancel(run)
    state = until("a cancel", lambda: client.look(run), lambda state: client.status(state) == "cancelled")
    assert client.status(state) == "cancelled", state
    # The server behind takes the next prompt.
    assert client.status(client.end(client.start("hello"))) == "completed"


def fails(client):
    state = client.end(client.start("fail"))
    assert client.status(state) == "failed" and "on purpose" in client.error(state), state


@contextlib.contextmanager
def served(python, script):
    """A server of somebody else on loopback."""
    port = gander_server.free_port()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen([python, script, str(port)], stdout=log, stderr=log)
        try:
            end = time.monotonic() + PATIENCE
            while not answers(port):
                log.seek(0)
                assert process.poll() is None and time.monotonic() < end, log.read()[-800:]
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


def answers(port):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=2)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def drive(name, url, settings, greeting):
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "gander.toml")
        config.write_text(f'[agents.behind]\n{settings}\nurl = "{url}"\n')
        with gander_server.server(GANDER, GANDER_CONFIG=str(config)) as server:
            server.token_of_client = server.token()
            is_adk = name == "google-adk"
            for client in (AcpRest(server, "behind"), A2a(server, "behind")):
                case = lambda step, check: gander_server.case(f"{name}-{client.name}-{step}", check)
                case("text", lambda: said(client, greeting))
                case("tool", lambda: tool(client))
                answer = ("yes", "painted") if is_adk else ("blue", "you chose blue")
                case("question", lambda: asks(client, ("Which colour", "paint"), *answer))
                case("cancel", lambda: cancelled(client, True))
                case("error", lambda: fails(client))


def main():
    wanted = sys.argv[2:] or [name for name, *_ in SERVERS]
    for name, python, script, settings, greeting in (server for server in SERVERS if server[0] in wanted):
        try:
            with served(os.path.abspath(python), script) as url:
                drive(name, url, settings, greeting)
        except Exception as error:  # a server that does not start is a failure of its own
            print("fail", f"{name}-starts", repr(error).replace("\n", " ")[:600], flush=True)


main()
