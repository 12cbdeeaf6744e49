"""The real binary on a data directory of its own, watched while it is abused."""

import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time

MIB = 1 << 20


class Server:
    """A `gander serve` with the scripted demo model and default settings, except what `variables` says."""

    def __init__(self, binary, **variables):
        self.folder = tempfile.TemporaryDirectory(prefix="gander-abuse-")
        self.data = pathlib.Path(self.folder.name) / "data"
        self.workspace = pathlib.Path(self.folder.name) / "workspace"
        self.data.mkdir()
        self.workspace.mkdir()
        self.binary = binary
        self.variables = {"PATH": os.environ.get("PATH", ""), "HOME": str(self.data), "XDG_CONFIG_HOME": str(self.data / "config"),
                          "GANDER_MODEL": "demo/demo", **variables}
        self.log = open(self.data / "serve.log", "ab")
        self.process = subprocess.Popen([binary, "serve", "--listen", "127.0.0.1:0", "--data", str(self.data)], env=self.variables,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log)
        self.port = self.announced_port()
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        said = subprocess.run([binary, "token", "--data", str(self.data)], env=self.variables, capture_output=True, check=True)
        self.token = said.stdout.decode().strip()

    def announced_port(self):
        for line in self.process.stdout:
            found = re.search(rb"http://127\.0\.0\.1:(\d+)", line)
            if found:
                return int(found[1])
        raise SystemExit("the server does not listen:\n" + (self.data / "serve.log").read_text()[-2000:])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()

    def memory(self):
        """Bytes that it has in memory."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def ask(self, method, path, body=None, seconds=60):
        """Status and text of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            headers = {"Authorization": f"Bearer {self.token}"}
            if body is not None:
                headers["Content-Type"] = "application/json"
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, response.read().decode(errors="replace")
        finally:
            connection.close()

    def prompt(self, text, seconds=120):
        """What a fresh run says to a prompt, over ACP-REST."""
        message = {"role": "user", "parts": [{"content_type": "text/plain", "content": text}]}
        status, answer = self.ask("POST", "/runs", {"agent_name": "gander", "input": [message], "mode": "sync"}, seconds)
        if status != 200:
            raise AssertionError(f"a prompt was answered with {status}: {answer[:300]}")
        run = json.loads(answer)
        while run["status"] == "awaiting":
            run = self.allow(run, seconds)
        if run["status"] != "completed":
            raise AssertionError(f"a run ended {run['status']}: {answer[:300]}")
        return run

    def allow(self, run, seconds):
        """Answers the question of a run with yes, as the person at the screen would who has no idea."""
        message = {"role": "user", "parts": [{"content_type": "text/plain", "content": "allow"}]}
        body = {"run_id": run["run_id"], "mode": "sync", "await_resume": {"type": "message", "message": message}}
        status, answer = self.ask("POST", f"/runs/{run['run_id']}", body, seconds)
        if status != 200:
            raise AssertionError(f"an answer was answered with {status}: {answer[:300]}")
        return json.loads(answer)

    def panics(self):
        return json.loads(self.ask("GET", "/gander/status")[1])["panics"]


class Watch:
    """Asks for the server's health while something else happens, and says how long the slowest answer took."""

    def __init__(self, server):
        self.server, self.slowest, self.failures, self.count = server, 0.0, [], 0
        self.most_memory, self.before, self.panics = server.memory(), server.memory(), server.panics()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self):
        while not self.done.is_set():
            begun = time.monotonic()
            try:
                status, _ = self.server.ask("GET", "/health", seconds=30)
                if status != 200:
                    self.failures.append(f"/health said {status}")
            except OSError as error:
                self.failures.append(f"/health: {error}")
            self.slowest, self.count = max(self.slowest, time.monotonic() - begun), self.count + 1
            self.most_memory = max(self.most_memory, self.server.memory())
            self.done.wait(0.2)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()

    def verdict(self):
        """Raises unless the server stayed healthy and still answers a fresh prompt; else the figures in one line."""
        if self.failures:
            raise AssertionError(f"{len(self.failures)} of {self.count} answers about its health failed: {self.failures[0]}")
        begun = time.monotonic()
        self.server.prompt("hello")
        fresh = time.monotonic() - begun
        if self.server.panics() != self.panics:
            raise AssertionError("it panicked")
        if self.server.process.poll() is not None:
            raise AssertionError("the server is gone")
        return (f"{self.count} health checks, slowest {self.slowest * 1000:.0f} ms, memory {self.before // MIB} MiB before, "
                f"{self.most_memory // MIB} at most, {self.server.memory() // MIB} after, a fresh prompt in {fresh * 1000:.0f} ms")
