"""A gander on loopback with the agents that clients are checked with. Ends with the script that started it."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def server(gander, **variables):
    """Yields the address; whoever calls from this machine needs no token."""
    with started(gander, variables) as (url, _):
        yield url


@contextlib.contextmanager
def guarded(gander, **variables):
    """Yields the address and the data directory; nobody comes in without a token."""
    with started(gander, {"GANDER_SERVER_OPEN": "[]", **variables}) as found:
        yield found


@contextlib.contextmanager
def started(gander, variables):
    port = free_port()
    with tempfile.TemporaryDirectory() as data:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": data,
            "GANDER_MODEL": "demo/demo",
            "GANDER_SERVER_CONFORMANCE_AGENTS": "true",
            "GANDER_SERVER_OPEN": json.dumps(["a2a"]),
            "GANDER_A2A_AGENT": "tck",
            "GANDER_A2A_SIGN": "true",
            "GANDER_A2A_PUSH_ALLOW": json.dumps(["127.0.0.1", "localhost"]),
            "GANDER_LIMITS_REQUESTS_PER_SECOND": "100000",
            "GANDER_LIMITS_REQUEST_BURST": "100000",
            **variables,
        }
        command = [gander, "serve", "--listen", f"127.0.0.1:{port}", "--data", data]
        with open(os.path.join(data, "serve.log"), "wb") as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        try:
            wait(port, process)
            yield f"http://127.0.0.1:{port}", data
        finally:
            process.terminate()
            process.wait(timeout=30)


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
