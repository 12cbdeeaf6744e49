"""One session, three protocols, each with its own SDK: all watch it, one answers it, and each goes on where the last one was.

The three are clients of one person, the owner: those over HTTP bring the owner's token. A door is a script that is called with
ADDRESS DATA SESSION, the token in TOKEN, and one of `watch RUN`, `answer RUN`, `say TEXT`, `history`.
`watch` prints `asked` when the run asks, and what the agent said when it is over; `answer` prints whether it counted.
"""

import json
import os
import subprocess
import sys

sys.path.insert(0, "../a2a")
import house

GANDER = sys.argv[1]
PATIENCE = 120
LAST = "all done"
DOORS = {
    "acp-sdk": ["../acp-rest/.venv/sdk/bin/python", "door_acp_rest.py"],
    "a2a-sdk": ["../a2a/.venv/sdk/bin/python", "door_a2a.py"],
    "editor": ["../python/.venv/bin/python", "door_acp.py", GANDER],
}


def script(*calls):
    """A prompt that makes the demo model play these calls."""
    return f"[[script:{json.dumps(calls)}]]"


class Place:
    def __init__(self, url, data, token):
        self.url, self.data, self.session = url, data, "-"
        self.environment = dict(os.environ, TOKEN=token)

    def open(self, door, *words):
        command = [*DOORS[door], self.url, self.data, self.session, *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=self.environment)

    def ask(self, door, *words):
        process = self.open(door, *words)
        out, error = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, f"{door} {words[0]}: {error[-500:]}"
        return out


def watched(place):
    shell = {"tool": "shell", "args": {"command": "echo x >> ran; cat ran"}}
    run, place.session = place.ask("acp-sdk", "start", script([{"text": "first I look "}, shell], [{"text": LAST}])).split()
    watching = {door: place.open(door, "watch", run) for door in DOORS}
    for door, process in watching.items():
        line = process.stdout.readline().strip()
        assert line == "asked", f"{door} was not asked: {line} {process.stderr.read()[-500:] if not line else ''}"
    answering = [place.open(door, "answer", run) for door in DOORS]
    counted = [process.communicate(timeout=PATIENCE)[0].strip() for process in answering]
    assert counted.count("yes") <= 1, counted
    for door, process in watching.items():
        text = process.communicate(timeout=PATIENCE)[0]
        assert "first I look" in text and LAST in text, f"{door}: {text}"
    exported = subprocess.run([GANDER, "sessions", "export", place.session, "--data", place.data], capture_output=True, text=True)
    answers = [line for line in exported.stdout.splitlines() if '"question_answered"' in line]
    ends = [line for line in exported.stdout.splitlines() if '"tool_done"' in line]
    assert (len(answers), len(ends)) == (1, 1), exported.stdout[-2000:] + exported.stderr


def continued(place):
    said = [LAST]
    for door in DOORS:
        shows(place, door, said)
        said.append(f"answer through {door}")
        place.ask(door, "say", script([{"text": said[-1]}]))
    for door in DOORS:
        shows(place, door, said)


def shows(place, door, said):
    """Everything in order; what the model was told to say stands in the prompt too, in quotation marks."""
    history = place.ask(door, "history").replace('"' + said[-1], "")
    at = 0
    for text in said:
        history = history.replace('"' + text, '"')
        at = history.find(text, at)
        assert at >= 0, f"{door} does not show {text!r}: {history}"


def main():
    # Forwarding gives the history of a session addresses, which acp-sdk reads.
    with house.server(GANDER, GANDER_SERVER_FORWARD_RESOURCES="true") as server:
        place = Place(server.url, server.data, server.owner())
        for case in (watched, continued):
            house.case(f"doors-{case.__name__}", lambda: case(place))


main()
