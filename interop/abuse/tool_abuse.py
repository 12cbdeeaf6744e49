"""Commands that take all there is, run by a model through the real server in its sandbox.

Each is bounded by itself as well, so that a machine on which the sandbox failed is none the worse: at most 255 processes, 700 MiB of
memory, 300 MiB of disk, and 30 seconds.
"""

import json
import os
import pathlib

from gander_server import Watch

# Every level makes two of the next: 2^8 - 1 processes that all live for a while, unless something stops them.
FORK_BOMB = "bomb() { if [ $1 -gt 0 ]; then bomb $(($1 - 1)) & bomb $(($1 - 1)) & fi; sleep 5; }; bomb 7; wait; echo survived"
# The system's own: one in somebody's home cannot be run in the sandbox.
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else "python3"
MEMORY_HOG = PYTHON + " -c 'x = bytearray(b\"x\") * (700 << 20); print(len(x))'; echo after the hog $?"
DISK_FILLER = "dd if=/dev/zero of=filler bs=1M count=300 2>&1; ls -l filler; rm -f filler; echo after the filler"
ENDLESS_OUTPUT = "yes abcdefghijklmnopqrstuvwxyz | head -c 50000000; echo after the flood"


def processes_of(server):
    """How many processes descend from the server."""
    children = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parent = int(stat.rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found, queue = 0, [server.process.pid]
    while queue:
        below = children.get(queue.pop(), [])
        found += len(below)
        queue += below
    return found


def run_command(server, command, seconds=30):
    """Has the model run a command, and gives the result of its tool."""
    call = [{"tool": "shell", "args": {"command": command, "timeout_seconds": seconds}}]
    run = server.prompt("[[script:" + json.dumps([call, [{"text": "done"}]]) + "]]", seconds=120)
    parts = [part for message in run["output"] for part in message["parts"]]
    results = [part["metadata"]["tool_output"] for part in parts if (part.get("metadata") or {}).get("tool_output")]
    assert results, f"no tool ran: {json.dumps(parts)[:300]}"
    return results[-1]


def abuse_by_command(server, command, is_expected):
    """The command ends or is ended as expected, nothing of it is left, and the server answers."""
    with Watch(server) as watch:
        result = run_command(server, command)
    assert is_expected(result), f"another end: {json.dumps(result)[-400:]}"
    left = processes_of(server)
    assert left == 0, f"{left} processes are left of it"
    return f"{result['status']}, exit code {result.get('exit_code')}; {watch.verdict()}"


def says(*words):
    return lambda result: any(word in result["text"] for word in words)


def default_cases(server):
    """At default limits all of it fits: the server outlives it."""
    yield "fork bomb", lambda: abuse_by_command(server, FORK_BOMB, says("survived"))
    yield "memory hog", lambda: abuse_by_command(server, MEMORY_HOG, says("after the hog 0"))
    yield "disk filler", lambda: abuse_by_command(server, DISK_FILLER, says("after the filler"))
    yield "endless output", lambda: abuse_by_command(server, ENDLESS_OUTPUT, lambda result: says("after the flood")(result) or ends_in_time(result))
    yield "a command that does not end", lambda: abuse_by_command(server, "while :; do sleep 0.01; done & sleep 1000", ends_in_time)


def ends_in_time(result):
    return result["status"] != "completed" or result.get("exit_code") != 0


def limited_cases(server):
    """With small limits the command is stopped. Root may have any number of processes, which `docs/sandbox.md` says."""
    yield "memory hog above the limit", lambda: abuse_by_command(server, MEMORY_HOG, lambda result: "after the hog 1" in result["text"] and "MemoryError" in result["text"])
    bomb = says("fork", "Resource temporarily unavailable", *(["survived"] if os.geteuid() == 0 else []))
    yield "fork bomb above the limit", lambda: abuse_by_command(server, FORK_BOMB, bomb)
