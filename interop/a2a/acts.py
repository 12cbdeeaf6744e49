"""Runs the draft A2A Conformance Test Specification (the YAML files of a folder) against gander, in all three bindings.

    python acts.py FOLDER [path of the binary]      needs what requirements-sdk.txt names

A message of a test that has no id gets one: the draft leaves out what the specification requires. Tests about a server
that lacks something, and those about clients, are not for gander: they are counted in the last line and not judged.
"""

import contextlib
import http.server
import json
import pathlib
import re
import sys
import threading
import time
import uuid

import httpx
import yaml

import acts_grpc
import gander_server
from acts_rules import Mismatch, match

FOLDER, GANDER = pathlib.Path(sys.argv[1]), sys.argv[2]
METHODS = {
    "send_message": ("SendMessage", "POST", "/message:send"),
    "send_streaming_message": ("SendStreamingMessage", "POST", "/message:stream"),
    "get_task": ("GetTask", "GET", "/tasks/{id}"),
    "list_tasks": ("ListTasks", "GET", "/tasks"),
    "cancel_task": ("CancelTask", "POST", "/tasks/{id}:cancel"),
    "subscribe_to_task": ("SubscribeToTask", "GET", "/tasks/{id}:subscribe"),
    "set_push_notification_config": ("CreateTaskPushNotificationConfig", "POST", "/tasks/{taskId}/pushNotificationConfigs"),
    "get_push_notification_config": ("GetTaskPushNotificationConfig", "GET", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "list_push_notification_configs": ("ListTaskPushNotificationConfigs", "GET", "/tasks/{taskId}/pushNotificationConfigs"),
    "delete_push_notification_config": ("DeleteTaskPushNotificationConfig", "DELETE", "/tasks/{taskId}/pushNotificationConfigs/{id}"),
    "get_extended_agent_card": ("GetExtendedAgentCard", "GET", "/extendedAgentCard"),
}
CODES = {
    "TaskNotFoundError": -32001, "TaskNotCancelableError": -32002, "PushNotificationNotSupportedError": -32003,
    "UnsupportedOperationError": -32004, "ContentTypeNotSupportedError": -32005, "VersionNotSupportedError": -32009,
    "InvalidParamsError": -32602, "InvalidRequestError": -32600, "MethodNotFoundError": -32601, "JSONParseError": -32700,
}
RANKS = {"TASK_STATE_SUBMITTED": 0, "TASK_STATE_WORKING": 1, "TASK_STATE_INPUT_REQUIRED": 1, "TASK_STATE_AUTH_REQUIRED": 1}
BINDINGS = {"jsonrpc": "jsonrpc", "rest": "http_json", "http_json": "http_json", "grpc": "grpc"}


def fill(value, known):
    """The names in braces that a step before has caught."""
    if isinstance(value, dict):
        return {k: fill(v, known) for k, v in value.items()}
    if isinstance(value, list):
        return [fill(v, known) for v in value]
    if isinstance(value, str):
        value = known.get(value, value)
        return re.sub(r"\{\{([^}]+)\}\}", lambda m: str(known.get(m[1], m[0])), value)
    return value


def all_at(value, path):
    """Everything at a path with stars."""
    values = [value]
    for piece in re.findall(r"[^.\[\]]+", path):
        if piece == "*":
            values = [inner for value in values for inner in value or []]
        else:
            values = [look(value, piece) for value in values]
    return values


def is_stream(response):
    return response.headers.get("content-type", "").startswith("text/event-stream")


def events_of(response):
    return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: ")]


def look(value, path):
    for piece in re.findall(r"[^.\[\]]+", path):
        if isinstance(value, list) and piece.isdigit():
            value = value[int(piece)] if int(piece) < len(value) else None
        else:
            value = value.get(piece) if isinstance(value, dict) else None
    return value


def with_id(params):
    """The same, its message with an id, and what the draft puts beside a message inside it."""
    params = json.loads(json.dumps(params or {}))
    if isinstance(params.get("message"), dict) and "parts" in params["message"]:
        params["message"].setdefault("messageId", str(uuid.uuid4()))
        for name in ("taskId", "contextId"):
            if name in params:
                params["message"].setdefault(name, params.pop(name))
    if isinstance(params.get("pushNotificationConfig"), dict):
        params.update(params.pop("pushNotificationConfig"))
    if "configId" in params:
        params["id"] = params.pop("configId")
    return params


class Runner:
    def __init__(self, url, binding, token=None):
        self.url, self.binding = url, binding
        self.http = httpx.Client(timeout=60, trust_env=False)
        self.own = {"Authorization": f"Bearer {token}"} if token else {}

    def run(self, test, variables):
        known = {k: v for k, v in variables.items() if not str(v).startswith("{{")}
        for step in test["steps"]:
            step = fill(step, known)
            status, body, events = self.repeated(step)
            known.update({f"{step['id']}.{k}": look(body, v) for k, v in (step.get("capture") or {}).items()})
            self.judge(step, status, body, events)

    def repeated(self, step):
        wish = step.get("repeat") or {}
        until = re.fullmatch(r"([\w.]+) (?:==|in) \[?([^\]]*)\]?", wish.get("until", ""))
        for _ in range(int(wish.get("max_attempts", 1))):
            result = self.step(step)
            if not until or look(result[1], until[1]) in [word.strip() for word in until[2].split(",")]:
                return result
            time.sleep(min(int(wish.get("delay_ms", 500)), 1000) / 1000)
        raise Mismatch(f"never {wish['until']}: {json.dumps(result[1])[:160]}")

    def step(self, step):
        if "raw" in step:
            return self.raw(step["raw"])
        name, params = step["operation"], with_id(step.get("params"))
        if name == "get_agent_card" and not params.pop("extended", False):
            response = self.http.get(self.url + "/.well-known/agent-card.json")
            return response.status_code, response.json(), None
        name = "get_extended_agent_card" if name == "get_agent_card" else name
        method, verb, path = METHODS[name]
        if self.binding == "grpc":
            return acts_grpc.call(self.url, method, params, self.own)
        headers = {"A2A-Version": "1.0", **self.own, **(step.get("headers") or {})}
        if self.binding == "jsonrpc":
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            return self.answer(self.http.post(self.url + "/a2a", json=body, headers=headers))
        names = re.findall(r"\{(\w+)\}", path)
        address = self.url + "/a2a" + path.format(**{name: params.pop(name, "") for name in names})
        if verb == "POST":
            return self.answer(self.http.post(address, json=params, headers=headers))
        query = {k: str(v).lower() if isinstance(v, bool) else v for k, v in params.items()}
        return self.answer(self.http.request(verb, address, params=query, headers=headers))

    def raw(self, raw):
        path, body = raw.get("path", "/"), raw.get("body")
        address = self.url + (path if path.startswith("/.well-known") else "/a2a" + path)
        if isinstance(body, dict) and isinstance(body.get("params"), dict):
            body = {**body, "params": with_id(body["params"])}
        elif isinstance(body, dict):
            body = with_id(body)
        content = raw["body_raw"] if "body_raw" in raw else json.dumps(body) if body is not None else None
        response = self.http.request(raw.get("method", "POST"), address, content=content, headers=raw.get("headers"))
        if is_stream(response):
            return response.status_code, None, events_of(response)
        try:
            return response.status_code, response.json(), None
        except ValueError:
            return response.status_code, response.text, None

    def answer(self, response):
        if is_stream(response):
            events = [event.get("result", event) for event in events_of(response)]
            return response.status_code, events[-1] if events else None, events
        body = response.json() if response.content else None
        if self.binding == "jsonrpc" and isinstance(body, dict) and "result" in body:
            body = body["result"]
        return response.status_code, body, None

    def judge(self, step, status, body, events):
        expected = step.get("expect")
        if expected is not None:
            if expected.get("status", "error") != "error":
                match(status, expected["status"], "status")
            match(body, expected.get("body", {k: v for k, v in expected.items() if k != "status"}))
        for assertion in step.get("assertions") or []:
            if not any(fits(found, assertion["any"]["match"]) for found in all_at(body, assertion["any"]["path"])):
                raise Mismatch(f"nothing is as in {assertion['any']}")
        if "expect_error" in step:
            self.error(step["expect_error"], body)
        if "expect_stream" in step:
            stream(step["expect_stream"], events)

    def error(self, wanted, body):
        error = body.get("error") if isinstance(body, dict) else None
        if error is None:
            raise Mismatch(f"no error: {json.dumps(body)[:160]}")
        named = wanted.get("code", wanted.get("error_type"))
        names = named["one_of"] if isinstance(named, dict) else [named] if named else []
        reasons = [d.get("reason") for d in error.get("data") or error.get("details") or []]
        found = [name for name, code in CODES.items() if error.get("code") == code or reason_of(name) in reasons]
        if names and not set(names) & set(found):
            raise Mismatch(f"{names} wanted, {json.dumps(error)[:160]} found")
        if "message" in wanted:
            match(error.get("message"), wanted["message"], "error.message")
        if "data" in wanted:
            match(error.get("data", error.get("details")), wanted["data"], "error.data")


def reason_of(name):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.removesuffix("Error")).upper()


def stream(wanted, events):
    if events is None:
        raise Mismatch("not a stream")
    inner = lambda event: next((v for v in event.values() if isinstance(v, dict)), {})
    flat = [inner(event) | event for event in events]
    if len(events) < wanted.get("min_count", 0):
        raise Mismatch(f"{len(events)} events")
    if wanted.get("ordering") == "monotonic_state":
        ranks = [RANKS.get(event["status"]["state"], 2) for event in flat if "status" in event]
        if ranks != sorted(ranks):
            raise Mismatch(f"states go back: {ranks}")
    for event in flat:
        match(event, wanted.get("each_event", {}), "each")
    for rule in wanted.get("events") or []:
        inner = {k: v for k, v in rule.items() if k not in ("description", "match", "index")}
        if "index" in rule:
            match(flat[rule["index"]], inner, f"event {rule['index']}")
        elif not any(fits(event, inner) for event in flat):
            raise Mismatch(f"no event has {inner}")
    if "final_event" in wanted:
        match(flat[-1], wanted["final_event"], "last")


def fits(value, wanted):
    try:
        match(value, wanted)
        return True
    except Mismatch:
        return False


def not_ours(test):
    capabilities = (test.get("preconditions") or {}).get("capabilities") or {}
    if any(value is False for value in capabilities.values()):
        return "about a server without a capability that gander has"
    if any("client_response" in step for step in test["steps"]):
        return "about clients"
    return None


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def surroundings():
    """A server for what the tests do, one for who may do it, and what the tests call by names."""
    hook = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    with gander_server.conformance(GANDER, GANDER_A2A_GRPC="true") as plain, gander_server.conformance(GANDER) as guarded:
        weak, other = guarded.token("weak", "read"), guarded.token("other", "prompt")
        said = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "tck-complete-task"}]}}
        headers = {"Authorization": f"Bearer {other}", "A2A-Version": "1.0"}
        task = httpx.post(guarded.url + "/a2a/message:send", json=said, headers=headers, trust_env=False).json()["task"]
        names = {
            "webhookUrl": f"http://127.0.0.1:{hook.server_port}/hook",
            "insufficientAuthToken": weak,
            "otherUserTaskId": task["id"],
            # A client may name a context, but not with a name of any length: this one is refused.
            "client-generated-context-that-should-be-rejected": "x" * 300,
        }
        yield (plain.url, plain.token()), (guarded.url, guarded.token()), names


def tests():
    files = sorted(FOLDER.glob("*.acts.yaml"))
    if not files:
        sys.exit(f"no *.acts.yaml in {FOLDER}")
    for path in files:
        document = yaml.safe_load(path.read_text())
        for suite in document.get("suites") or []:
            for test in suite["tests"]:
                yield test, document.get("variables") or {}


left = {}
with surroundings() as (plain, guarded, names):
    for test, variables in tests():
        if why := not_ours(test):
            left.setdefault(why, []).append(test["id"])
            continue
        raw = any("raw" in step for step in test["steps"])
        wanted = {BINDINGS[name.lower()] for name in test.get("transport") or ([] if raw else BINDINGS)} or {"jsonrpc"}
        is_auth = "auth" in (test.get("tags") or []) and "push" not in test["tags"] and "task-state" not in test["tags"]
        for binding in sorted(wanted - ({"grpc"} if is_auth else set())):
            url, token = guarded if is_auth else plain
            runner = Runner(url, binding, token)
            name = f"acts-{test['level']}-{test['id']}-{binding}"
            gander_server.case(name, lambda: runner.run(test, {**variables, **names}))
for why, ids in left.items():
    print(f"# {len(ids)} not judged, {why}: {' '.join(ids)}", file=sys.stderr)
