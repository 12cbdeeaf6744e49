"""Runs what people do in their first hour without a route to anywhere, and lists every address that was tried.

    drive.py GANDER        (in a network namespace of its own)

Nothing but Unix sockets and loopback may be tried, and of loopback only what was configured: the server itself and, in the
second half, a model on loopback. A lookup of a name counts as an attempt.
"""

import fcntl
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import urllib.request

# What looks for local model servers asks these ports of this machine, as docs/configuration.md says.
DETECTED = {11434, 1234, 8080, 8000}

FIRST_HOUR = [
    ["config", "init"],
    ["run", "help"],
    ["run", "--continue", "tools"],
    ["run", "--policy", "auto", "edit"],
    ["run", "--continue", "plan"],
    ["models"],
    ["modes"],
    ["agents", "list"],
    ["sessions", "list"],
    ["extensions", "list"],
    ["recipes", "list"],
    ["schedule", "add", "news", "--cron", "0 9 * * *", "--recipe", "news.yaml"],
    ["schedule", "list"],
    ["grants", "list"],
    ["apps", "list"],
    ["audit"],
    ["token", "add", "anna"],
    ["doctor"],
    ["self", "check"],
    ["--version", "--verbose"],
    ["completions", "bash"],
    ["open", "--print"],
    ["server", "status"],
    ["backup", "backup.file"],
]

STOP = ["server", "stop"]


def editor_lines(folder):
    """What an editor writes: one prompt."""
    yield {"id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}
    created = yield {"id": 2, "method": "session/new", "params": {"cwd": str(folder), "mcpServers": []}}
    prompt = [{"type": "text", "text": "text"}]
    yield {"id": 3, "method": "session/prompt", "params": {"sessionId": created["sessionId"], "prompt": prompt}}


def bring_loopback_up():
    with socket.socket() as any_socket:
        name = struct.pack("16sh", b"lo", 0x1)
        fcntl.ioctl(any_socket, 0x8914, name + bytes(24))


class Model(http.server.BaseHTTPRequestHandler):
    """A model that says one word."""

    def do_GET(self):
        self.answer("application/json", b'{"data":[{"id":"mock"}]}')

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        chunk = {"choices": [{"index": 0, "delta": {"content": "hello"}, "finish_reason": "stop"}]}
        self.answer("text/event-stream", f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode())

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Tracer:
    """Runs commands under strace, and reads which addresses they and their children tried."""

    def __init__(self, gander, work, variables):
        self.gander, self.work, self.logs = gander, work, 0
        self.environment = {"HOME": str(work / "home"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", **variables}

    def start(self, words, stdin=subprocess.DEVNULL):
        self.logs += 1
        log = self.work / f"trace-{self.logs}"
        command = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", log, self.gander, *words]
        streams = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return log, subprocess.Popen(command, cwd=self.work / "project", env=self.environment, text=True, **streams)

    def run(self, words):
        log, process = self.start(words)
        _, said = process.communicate(timeout=120)
        return process.returncode, said, addresses(log)

    def run_editor(self):
        """An editor with one prompt, over ACP."""
        log, process = self.start(["acp"], subprocess.PIPE)
        lines, answer = editor_lines(self.work / "project"), None
        try:
            while True:
                request = lines.send(answer)
                process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
                process.stdin.flush()
                answer = next(found for found in map(json.loads, process.stdout) if found.get("id") == request["id"])["result"]
        except StopIteration:
            _, said = process.communicate(timeout=120)
        ended = (answer or {}).get("stopReason") == "end_turn"
        return process.returncode if ended else 1, said, addresses(log)


def use_over_http(port, token):
    """A browser's first requests, and a prompt over REST; gives what went wrong."""
    base = f"http://127.0.0.1:{port}"
    urllib.request.urlopen(base + "/", timeout=60).read()
    body = {"agent_name": "gander", "mode": "sync", "input": [{"role": "user", "parts": [{"content_type": "text/plain", "content": "text"}]}]}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(base + "/runs", json.dumps(body).encode(), headers)
    status = json.load(urllib.request.urlopen(request, timeout=60))["status"]
    return "" if status == "completed" else f"the run over HTTP is {status}"


def addresses(log):
    found = re.findall(r'sin6?_port=htons\((\d+)\)[^}]*?(?:inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)")', log.read_text())
    return {(four or six, int(port)) for port, four, six in found}


def is_loopback(address):
    return address.startswith("127.") or address == "::1"


def check(gander, work, steps, variables, allowed):
    """Runs a server, commands that attach to it, an editor and a program over HTTP; gives how many steps there were and how many
    went wrong, and what was tried."""
    tracer = Tracer(gander, work, variables)
    server_log, server = tracer.start(["serve", "--listen", "127.0.0.1:0"])
    own_port = int(re.search(r"127\.0\.0\.1:(\d+)", server.stdout.readline())[1])
    wrong, tried_in_all = 0, set()
    results = [(words, *tracer.run(words)) for words in steps]
    results.append((["acp"], *tracer.run_editor()))
    token = subprocess.run([gander, "token"], cwd=work, env=tracer.environment, capture_output=True, text=True, check=True).stdout.split()[-1]
    said = use_over_http(own_port, token)
    results.append((["over", "HTTP"], int(bool(said)), said, set()))
    results.append((STOP, *tracer.run(STOP)))
    server.communicate(timeout=60)
    results.append((["serve"], server.returncode, "", addresses(server_log)))
    for words, status, said, tried in results:
        tried_in_all |= tried
        bad = {place for place in tried if not is_loopback(place[0]) or place[1] not in allowed | {own_port}}
        if status != 0:
            print(f"FAILED: gander {' '.join(words)}: exit {status}: {said[-600:]}")
        if bad:
            print(f"FAILED: gander {' '.join(words)} tried to reach {sorted(bad)}")
        wrong += bool(bad) or status != 0
    return len(results), wrong, tried_in_all


def main():
    gander = sys.argv[1]
    bring_loopback_up()
    work = pathlib.Path(tempfile.mkdtemp(prefix="privacy-"))
    (work / "home").mkdir()
    (work / "project").mkdir()
    (work / "project/news.yaml").write_text("title: News\ndescription: What is new\nprompt: text\n")
    try:
        steps, wrong, tried = check(gander, work, FIRST_HOUR, {}, DETECTED)
        print(f"first hour without configuration: {steps} steps, tried: {sorted(tried) or 'nothing'}")
        model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
        threading.Thread(target=model.serve_forever, daemon=True).start()
        port = model.server_address[1]
        variables = {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "OPENAI_API_KEY": "sk-test", "GANDER_MODEL": "openai/mock"}
        further, more, tried = check(gander, work, [["run", "hello"]], variables, DETECTED | {port})
        if ("127.0.0.1", port) not in tried:
            print(f"FAILED: the configured model was not asked, so this test sees nothing: {sorted(tried)}")
            more += 1
        wrong, steps = wrong + more, steps + further
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"{steps - wrong} passed, {wrong} failed, 0 skipped")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
