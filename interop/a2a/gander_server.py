"""A gander on loopback at its default settings, with the demo model. Ends with the script that started it.

Clients come with a token that was made for them (`gander token add`), as a program that is not the owner's does. Those that can send no
header need `opened`. The owner's token is for what the owner does.
"""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request


class Server:
    """Where it is, and how to get in."""

    def __init__(self, gander, url, data, environment):
        self.gander, self.url, self.data, self.environment = gander, url, data, environment

    def owner(self):
        return self.tell("token")

    def token(self, name="client", scopes="prompt,approve"):
        """A new one: for a program that prompts, and that answers what it is asked."""
        return self.tell("token", "add", name, "--scopes", scopes)

    def tell(self, *words):
        command = [self.gander, *words, "--data", self.data]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True).stdout.strip()

    def holds(self, name):
        """Whether a session without a folder of its own has made a file of this name."""
        return any(pathlib.Path(self.data).rglob(name))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(gander, binary=None, **variables):
    """Yields a server that lets nobody in without a token. `binary` serves instead of the product's."""
    port = free_port()
    with tempfile.TemporaryDirectory() as data:
        environment = {"PATH": os.environ["PATH"], "HOME": data, "GANDER_MODEL": "demo/demo", **variables}
        command = [binary or gander, "serve", "--listen", f"127.0.0.1:{port}", "--data", data]
        with open(os.path.join(data, "serve.log"), "wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            wait(port, process)
            yield Server(gander, f"http://127.0.0.1:{port}", data, environment)
        finally:
            process.terminate()
            process.wait(timeout=30)


def conformance(gander, **variables):
    """With the agent that A2A's kits ask for, a signed card, and leave to notify this machine."""
    return server(
        gander,
        os.path.join(os.path.dirname(gander), "gander-conformance"),
        GANDER_A2A_AGENT="tck",
        GANDER_A2A_SIGN="true",
        GANDER_A2A_PUSH_ALLOW=json.dumps(["127.0.0.1", "localhost"]),
        **variables,
    )


def opened(*protocols):
    """The variable that lets clients in which can send no header."""
    return {"GANDER_SERVER_OPEN": json.dumps(protocols)}


def script(*calls):
    """A prompt that makes the demo model play these calls."""
    return f"[[script:{json.dumps(calls)}]]"


def touch(name):
    """A prompt whose one command makes a file, so that somebody is asked."""
    return script([{"tool": "shell", "args": {"command": f"touch {name}"}}], [{"text": "All done."}])


def wait(port, process):
    for _ in range(600):
        if process.poll() is not None:
            raise SystemExit("gander ended at once")
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit("gander is not healthy")


def case(name, check):
    """Prints one verdict; whatever else is printed meanwhile is an aside."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            check()
        print("pass", name, flush=True)
    except Exception as error:  # a client's errors are of any kind
        print("fail", name, f"{type(error).__name__}: {error}".replace("\n", " ")[:300], flush=True)
