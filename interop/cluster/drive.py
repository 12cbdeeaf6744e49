"""Clients of every protocol behind a load balancer over three nodes, while nodes are drained, killed and started again.

Each client takes turns in a session of its own and reads every word; when its connection is lost it opens another one. Afterwards the
logs are compared with what the clients saw, at every node: nothing may be lost or doubled, and no command may have run twice.

GANDER_CLUSTER_ROUNDS says how often every node is drained and killed, GANDER_CLUSTER_CLIENTS how many clients of each kind there are.
GANDER_CLUSTER_BEFORE names the binary of an earlier version, which nodes run until their first restart: a rolling upgrade.
"""

import collections
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, "../a2a")
import gander_server

import postgres_server

GANDER = sys.argv[1]
KEY = "one-key-for-all-nodes"
ROUNDS = int(os.environ.get("GANDER_CLUSTER_ROUNDS", "1"))
COPIES = int(os.environ.get("GANDER_CLUSTER_CLIENTS", "1"))
CLIENTS = {
    "ws": (["node", "turns.mjs"], "../typescript"),
    "http": (["node", "turns.mjs"], "../typescript"),
    "goose": (["node", "turns.mjs"], "../goose"),
    "acp-rest": (["../acp-rest/.venv/sdk/bin/python", "client_acp_rest.py"], "."),
    "a2a": (["../a2a/.venv/sdk/bin/python", "client_a2a.py"], "."),
    "adk": (["../adk/.venv/bin/python", "client_adk.py"], "."),
    "goose-rest": (["python3", "client_goose_rest.py"], "."),
}


# All of them, unless some are named.
KINDS = sys.argv[2:] or list(CLIENTS)


class Node:
    def __init__(self, number, root, work, store):
        self.data, self.port = root / f"node-{number}", gander_server.free_port()
        self.data.mkdir()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.data),
            "GANDER_MODEL": "demo/demo",
            "GANDER_STORE": store,
            "GANDER_CLUSTER_LEASE": "4s",
            "GANDER_CLUSTER_SHARED": json.dumps([str(work)]),
            "GANDER_CLUSTER_LABEL": f"disk-{number}",
            "GANDER_SERVER_OPEN": json.dumps(["adk"]),
            # Nobody is there to be asked about the one command that clients have run.
            "GANDER_PERMISSIONS_RULES": '[{ tool = "shell", pattern = "mktemp *", action = "allow" }]',
            "GOOSE_SERVER__SECRET_KEY": KEY,
        }
        self.process = None

    def start(self):
        binary = os.environ.get("GANDER_CLUSTER_BEFORE", GANDER) if self.process is None else GANDER
        command = [binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", self.data]
        with open(self.data / "serve.log", "ab") as log:
            self.process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
        gander_server.wait(self.port, self.process)

    def end(self, how):
        self.process.send_signal(how)
        return self.process.wait(60)

    def tell(self, *words):
        command = [GANDER, *words, "--data", self.data]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{words}: {done.stderr[-500:]}"
        return done.stdout

    def logs(self):
        """Every session's entries, by its id."""
        listed = [json.loads(line) for line in self.tell("sessions", "list", "--json").splitlines()]
        ids = [session["sessionId"] for session in listed]
        lines = {one: self.tell("sessions", "export", one).splitlines() for one in ids}
        return {one: [json.loads(line) for line in found if '"seq":' in line] for one, found in lines.items()}


def line_of(process):
    line = process.stdout.readline().strip()
    assert line, f"{process.args} said nothing"
    return line


def disturb(nodes, clients):
    """Every node is drained once and killed once in each round; says how the drained ones ended."""
    chance, ends = random.Random(18), []
    for _ in range(ROUNDS):
        for node, how in [(node, how) for how in (signal.SIGTERM, signal.SIGKILL) for node in nodes]:
            time.sleep(1 + chance.random() * 2)
            if not any(client.poll() is None for client in clients):
                return ends
            status = node.end(how)
            if how == signal.SIGTERM:
                ends.append(status)
            node.start()
    return ends


def text_of(entries):
    """What the agent said."""
    messages = [entry["event"]["message"] for entry in entries if entry["event"]["kind"] == "message_done"]
    said = [message for message in messages if message["role"] == "agent"]
    return "".join(part.get("text") or "" for message in said for part in message["parts"] if part["type"] == "text")


def kinds(entries):
    return collections.Counter(entry["event"]["kind"] for entry in entries)


def check_client(report, logs):
    """What a client saw is what the log of its session says, each prompt once, each run with one end."""
    assert "wrong" not in report, report
    name, turns = report["client"], report["turns"]
    mine = [entries for entries in logs.values() if f"end-{name}-0 " in json.dumps(entries)]
    assert len(mine) == 1, f"{len(mine)} sessions"
    entries = mine[0]
    assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1)), "the log has holes"
    found = kinds(entries)
    assert found["run_ended"] == turns, f"{turns} turns and {found}"
    assert all("completed" in json.dumps(entry) for entry in entries if entry["event"]["kind"] == "run_ended")
    asked = [json.dumps(entry) for entry in entries if entry["event"]["kind"] == "run_started"]
    assert len(asked) == turns, f"{turns} turns and {len(asked)} prompts"
    assert found["tool_started"] <= turns and found["tool_done"] == turns, found
    said = text_of(entries)
    assert said == report["text"], f"the client saw {report['text'][-300:]!r} and the log says {said[-300:]!r}"
    for turn in range(turns):
        assert said.count(f"end-{name}-{turn} ") == 1, f"turn {turn}"


def check_nodes(found):
    assert found[0] == found[1] == found[2], "nodes read different logs"
    assert found[0], "no sessions"


def check_commands(root, reports):
    ran = collections.Counter(path.name[4:-7] for path in root.rglob("ran-*"))
    twice = {word: times for word, times in ran.items() if times > 1}
    assert not twice, twice
    turns = sum(report["turns"] for report in reports)
    assert len(ran) >= turns // 2, f"{len(ran)} commands in {turns} turns"
    print(f"{len(ran)} commands ran once in {turns} turns", file=sys.stderr)


def check_drains(ends):
    assert len(ends) == 3 * ROUNDS and not any(ends), f"drained nodes ended with {ends}"


def report_of(client, name):
    out, errors = client.communicate(timeout=300)
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if not lines:
        return {"client": name, "turns": 0, "wrong": f"ended with {client.returncode}: {errors[-600:]}"}
    report = json.loads(lines[-1])
    about = {key: report[key] for key in ("client", "turns", "reconnects", "troubles")}
    print(json.dumps(about), file=sys.stderr, flush=True)
    return report


def start_client(kind, copy, url, work):
    command, place = CLIENTS[kind]
    pipe = subprocess.PIPE
    return subprocess.Popen([*command, f"{kind}-{copy}", url, KEY, str(work)], cwd=place, stdout=pipe, stderr=pipe, text=True)


def main():
    with postgres_server.started() as store, tempfile.TemporaryDirectory(prefix="gander-cluster-") as name:
        root = pathlib.Path(name).resolve()
        work = root / "work"
        work.mkdir()
        nodes = [Node(number, root, work, store) for number in range(3)]
        proxy, clients = None, {}
        try:
            for node in nodes:
                node.start()
            addresses = [f"127.0.0.1:{node.port}" for node in nodes]
            proxy = subprocess.Popen(["node", "proxy.mjs", *addresses], stdout=subprocess.PIPE, text=True)
            url = f"http://{line_of(proxy)}"
            clients = {f"{kind}-{copy}": start_client(kind, copy, url, work) for kind in KINDS for copy in range(COPIES)}
            ends = disturb(nodes, clients.values())
            (work / "stop").touch()
            judge(root, nodes, [report_of(client, name) for name, client in clients.items()], ends)
        finally:
            for process in [*clients.values(), *(node.process for node in nodes), proxy]:
                if process and process.poll() is None:
                    process.terminate()
                    process.wait(60)
            if keep := os.environ.get("GANDER_CLUSTER_KEEP"):
                subprocess.run(["cp", "-r", root, keep], check=False)


def judge(root, nodes, reports, ends):
    found = [node.logs() for node in nodes]
    for report in reports:
        gander_server.case(f"{report['client']}-saw-everything-once", lambda: check_client(report, found[0]))
    gander_server.case("every-node-reads-the-same-logs", lambda: check_nodes(found))
    gander_server.case("no-command-ran-twice", lambda: check_commands(root, reports))
    gander_server.case("drained-nodes-end-well", lambda: check_drains(ends))


main()
