"""One session, three protocols, each with its own SDK: all watch it, one answers it, and each goes on where the last one was.

The three are clients of one person, the owner: those over HTTP bring the owner's token. A client is a script that is called with
ADDRESS DATA SESSION, the token in TOKEN, and one of `watch RUN`, `answer RUN`, `say TEXT`, `history`.
`watch` prints `asked` when the run asks, and what the agent said when it is over; `answer` prints whether it counted.
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, "../a2a")
import gander_server

GANDER = sys.argv[1]
PATIENCE = 120
LAST = "all done"
CLIENTS = {
    "acp-sdk": ["../acp-rest/.venv/sdk/bin/python", "protocol_acp_rest.py"],
    "a2a-sdk": ["../a2a/.venv/sdk/bin/python", "protocol_a2a.py"],
    "editor": ["../python/.venv/bin/python", "protocol_acp.py", GANDER],
}


def script(*calls):
    """A prompt that makes the demo model play these calls."""
    return f"[[script:{json.dumps(calls)}]]"


class Place:
    def __init__(self, url, data, token):
        self.url, self.data, self.session = url, data, "-"
        self.environment = dict(os.environ, TOKEN=token)

    def open(self, client, *words):
        command = [*CLIENTS[client], self.url, self.data, self.session, *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=self.environment)

    def ask(self, client, *words):
        process = self.open(client, *words)
        out, error = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, f"{client} {words[0]}: {error[-500:]}"
        return out


def watched(place):
    shell = {"tool": "shell", "args": {"command": "echo x >> ran; cat ran"}}
    run, place.session = place.ask("acp-sdk", "start", script([{"text": "first I look "}, shell], [{"text": LAST}])).split()
    watching = {client: place.open(client, "watch", run) for client in CLIENTS}
    for client, process in watching.items():
        line = process.stdout.readline().strip()
        assert line == "asked", f"{client} was not asked: {line} {process.stderr.read()[-500:] if not line else ''}"
    answering = [place.open(client, "answer", run) for client in CLIENTS]
    counted = [process.communicate(timeout=PATIENCE)[0].strip() for process in answering]
    assert counted.count("yes") <= 1, counted
    for client, process in watching.items():
        text = process.communicate(timeout=PATIENCE)[0]
        assert "first I look" in text and LAST in text, f"{client}: {text}"
    exported = subprocess.run([GANDER, "sessions", "export", place.session, "--data", place.data], capture_output=True, text=True)
    answers = [line for line in exported.stdout.splitlines() if '"question_answered"' in line]
    ends = [line for line in exported.stdout.splitlines() if '"tool_done"' in line]
    assert (len(answers), len(ends)) == (1, 1), exported.stdout[-2000:] + exported.stderr


def continued(place):
    said = [LAST]
    for client in CLIENTS:
        shows(place, client, said)
        said.append(f"answer through {client}")
        place.ask(client, "say", script([{"text": said[-1]}]))
    for client in CLIENTS:
        shows(place, client, said)


def shows(place, client, said):
    """Everything in order; what the model was told to say stands in the prompt too, in quotation marks."""
    history = place.ask(client, "history").replace('"' + said[-1], "")
    at = 0
    for text in said:
        history = history.replace('"' + text, '"')
        at = history.find(text, at)
        assert at >= 0, f"{client} does not show {text!r}: {history}"


def main():
    # Forwarding gives the history of a session addresses, which acp-sdk reads.
    with gander_server.server(GANDER, GANDER_SERVER_FORWARD_RESOURCES="true") as server:
        place = Place(server.url, server.data, server.owner())
        for case in (watched, continued):
            gander_server.case(f"all-protocols-{case.__name__}", lambda: case(place))


main()
