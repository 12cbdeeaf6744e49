"""A model on loopback that speaks chat completions and follows the script in the prompt.

The person's last message names a script by its first word; each call of the model plays the next line of it. What a tool
said stands in the conversation, so a script can answer with it.
"""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def call(name, **arguments):
    return {"name": name, "arguments": json.dumps(arguments)}


EDIT = call("edit", path="calc.py", old="return a - b", new="return a + b")
SLOW = "for n in $(seq 1 40); do echo line $n; done; sleep 2; exit 3"
TESTS = "import unittest\n\nfrom calc import add\n\n\nclass Add(unittest.TestCase):\n    def test_add(self):\n        self.assertEqual(add(2, 3), 5)\n"
MARKDOWN = (
    "# A title\n\nSome **bold** text and `code`.\n\n- one\n- two\n\n```rust\nfn main() {}\n```\n\n"
    "| name | value |\n|---|---|\n| a | 1 |\n"
)
SCRIPTS = {
    # Two calls in one message: both are asked about.
    "parallel": [[call("shell", command="touch one.txt"), call("shell", command="touch two.txt")], "both are done"],
    "edit": [[EDIT], "edited"],
    "shell": [[call("shell", command="touch made.txt")], "ran it"],
    "output": [[call("shell", command=SLOW)], "it failed"],
    "slow": ["a slow ", "answer"],
    "long": ["word " * 4] * 1,
    "retry": [500, 429, "at last"],
    "broken": [500, 500, 500, 500, 500, 500],
    "delegate": [
        [call("delegate", tasks=[{"name": "tests", "prompt": "shell as a sub-agent"}])],
        "the sub-agent is done",
    ],
    "plan": ["what I was told: "],
    "form": [[call("forms__book")], "booked"],
    "result": [[call("final_output", lines=2)], "here it is"],
    # Two files at once, then their tests.
    "project": [[EDIT, call("write", path="test_calc.py", content=TESTS)], [call("shell", command="python3 -m unittest -q")], "the tests pass"],
    "markdown": [MARKDOWN],
    "count": [" ".join(f"w{n}" for n in range(1, 41))],
}
# Seconds before the first word, and again until the last one.
PAUSES = {"slow": 6, "count": 4, "markdown": 1}


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    played = {}
    requests = []

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.reply(200, {"object": "list", "data": [{"id": "mock", "object": "model"}]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        messages = body.get("messages", [])
        if self.headers["authorization"] == "Bearer wrong-key":
            return self.reply(401, {"error": {"message": "Incorrect API key provided"}})
        with self.lock:
            self.requests.append(body)
        if not body.get("tools"):
            return self.stream_text("A title", body)
        asked = last_user(messages)
        word = asked.split()[0] if asked.split() else ""
        script = SCRIPTS.get(word)
        if script is None:
            return self.stream_text(f"you said: {asked}", body)
        step = self.next_step(word, asked, messages)
        line = script[min(step, len(script) - 1)]
        if isinstance(line, int):
            return self.reply(line, {"error": {"message": "the mock model is busy"}})
        if isinstance(line, list):
            return self.stream_calls(line, body)
        if word in ("edit", "shell", "output", "form") and isinstance(line, str):
            line = f"{line}; the tool said: {last_tool(messages)}"
        self.stream_text(line, body, PAUSES.get(word, 0))

    def next_step(self, word, asked, messages):
        """Scripts of tools count results; those without count calls."""
        if any(isinstance(line, int) for line in SCRIPTS[word]):
            with self.lock:
                step = self.played.get(asked, 0)
                self.played[asked] = step + 1
                return step
        since = [message["role"] for message in messages]
        last = max((n for n, role in enumerate(since) if role == "user"), default=0)
        return sum(1 for message in messages[last:] if message["role"] == "assistant")

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream_text(self, text, body, pause=0):
        words = [word + " " for word in text.split(" ")]
        chunks = [{"content": word} for word in words[:-1]] + [{"content": words[-1].rstrip()}]
        self.stream(chunks, "stop", body, pause)

    def stream_calls(self, calls, body):
        deltas = [
            {"tool_calls": [{"index": n, "id": f"call_{time.monotonic_ns()}_{n}", "type": "function", "function": one}]}
            for n, one in enumerate(calls)
        ]
        self.stream(deltas, "tool_calls", body)

    def stream(self, deltas, finish, body, pause=0):
        usage = {"prompt_tokens": 1200, "completion_tokens": 34, "total_tokens": 1234}
        if not body.get("stream"):
            text = "".join(delta.get("content", "") for delta in deltas)
            choices = [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}]
            return self.reply(200, {"id": "c", "object": "chat.completion", "choices": choices, "usage": usage})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        try:
            self.stream_events(deltas, finish, usage, pause)
        except BrokenPipeError:
            pass  # the turn was cancelled
        self.close_connection = True

    def stream_events(self, deltas, finish, usage, pause):
        for index, delta in enumerate(deltas):
            if pause and index:
                time.sleep(pause / max(1, len(deltas) - 1))
            elif pause:
                time.sleep(pause)
            self.event({"choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def event(self, data):
        data = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "mock", **data}
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
        self.wfile.flush()


def last_user(messages):
    said = [text_of(message["content"]) for message in messages if message["role"] == "user"]
    return said[-1] if said else ""


def last_tool(messages):
    said = [text_of(message["content"]) for message in messages if message["role"] == "tool"]
    return said[-1] if said else "nothing"


def text_of(content):
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content or [])


def start():
    """Serves in the background; gives the port and the requests that came."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1], Model.requests
