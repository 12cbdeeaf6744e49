"""What the ACP registry does before it lists an agent: starts it as a stranger, and wants to be offered a login."""

import json
import os
import pathlib
import subprocess
import tempfile

from steps import run, the_one

# As the registry's check introduces itself, and a client without a terminal.
WITH_TERMINAL = {"terminal": True, "fs": {"readTextFile": True, "writeTextFile": True}, "_meta": {"terminal_output": True, "terminal-auth": True}}
WITHOUT = {"fs": {"readTextFile": True, "writeTextFile": True}}


def offered_logins(program, arguments, home, capabilities):
    """The first line on stdout must be the answer."""
    hello = {"protocolVersion": 1, "clientInfo": {"name": "registry", "version": "1"}, "clientCapabilities": capabilities}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n"
    environment = {"HOME": home, "PATH": os.environ["PATH"], "TERM": "dumb"}
    agent = subprocess.run([program, *arguments], input=line, cwd=home, env=environment, capture_output=True, text=True, timeout=120)
    return json.loads(agent.stdout.splitlines()[0])["result"]["authMethods"]


def check_login(packages):
    """With the program and the arguments that the entry names."""
    entry = json.loads((packages / "agent.json").read_text())["distribution"]["binary"]["linux-x86_64"]
    with tempfile.TemporaryDirectory() as home:
        run(["tar", "xzf", the_one(packages, "gander-*-linux-x64.tar.gz"), "-C", home])
        program = str(pathlib.Path(home, entry["cmd"]))
        try:
            offered = offered_logins(program, entry["args"], home, WITH_TERMINAL)
            if [method.get("type") for method in offered] != ["terminal"]:
                raise RuntimeError(f"not offered one login at a terminal: {offered}")
            if offered_logins(program, entry["args"], home, WITHOUT):
                raise RuntimeError("a client without a terminal is offered a login")
        finally:
            subprocess.run([program, "server", "stop"], env={"HOME": home, "PATH": os.environ["PATH"]}, capture_output=True, timeout=60)
