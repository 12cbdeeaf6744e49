"""The aarch64 binary under qemu's user emulation: the first answer in a terminal, and one prompt over HTTP."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request

from steps import attempt, run, the_one

QEMU = "qemu-aarch64-static"


def prompt_over_http(address, token):
    """The text that the demo model answers to `help`, over ACP-REST."""
    body = {"agent_name": "gander", "mode": "sync", "input": [{"role": "user", "parts": [{"content_type": "text/plain", "content": "help"}]}]}
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(address + "/runs", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=120) as response:
        result = json.load(response)
    if result["status"] != "completed":
        raise RuntimeError(f"the run did not end well: {json.dumps(result)[:800]}")
    return "".join(part.get("content") or "" for message in result["output"] for part in message["parts"])


def run_under_qemu(packages):
    tarball = the_one(packages, "gander-*-linux-arm64.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        run(["tar", "xzf", tarball, "--strip-components=1", "-C", folder])
        # A server in the foreground: without a kernel that starts such binaries itself, gander cannot start one behind it.
        gander = [QEMU, str(pathlib.Path(folder, "bin/gander"))]
        environment = {"HOME": folder, "PATH": os.environ["PATH"], "GANDER_DATA": f"{folder}/data", "GANDER_MODEL": "demo/demo"}
        told = {"cwd": folder, "env": environment, "text": True, "stdin": subprocess.DEVNULL}
        server = subprocess.Popen([*gander, "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, **told)
        try:
            port = re.search(r"127\.0\.0\.1:(\d+)", next(line for line in server.stdout if "http://" in line))[1]
            answer = subprocess.run([*gander, "run", "help"], capture_output=True, timeout=300, **told)
            if answer.returncode != 0 or "scripted demo" not in answer.stdout:
                raise RuntimeError(f"gander run help: {answer.returncode} {answer.stderr[-800:]} {answer.stdout[-300:]}")
            check = subprocess.run([*gander, "self", "check"], capture_output=True, timeout=300, **told)
            if "whole: its checksum matches" not in check.stdout or "linux aarch64" not in check.stdout:
                raise RuntimeError(f"gander self check: {check.stdout} {check.stderr}")
            token = subprocess.run([*gander, "token"], capture_output=True, check=True, timeout=300, **told).stdout.split()[-1]
            answer = prompt_over_http(f"http://127.0.0.1:{port}", token)
            if "scripted demo" not in answer:
                raise RuntimeError(f"over HTTP: {answer[-500:]}")
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)


if __name__ == "__main__":
    attempt("arm64", lambda: run_under_qemu(pathlib.Path(sys.argv[1])))
