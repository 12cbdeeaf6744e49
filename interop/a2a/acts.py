"""Runs the draft A2A Conformance Test Specification (YAML files of a folder) against gander.

    python acts.py FOLDER [path of the binary]      needs PyYAML and httpx

Steps that name an operation run over JSON-RPC and HTTP+JSON, raw ones as they are. Prints one verdict per test and binding.
"""

import json
import pathlib
import re
import sys
import uuid

import httpx
import yaml

import house

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
ERRORS = {
    "TaskNotFoundError": -32001, "TaskNotCancelableError": -32002, "PushNotificationNotSupportedError": -32003,
    "UnsupportedOperationError": -32004, "ContentTypeNotSupportedError": -32005, "VersionNotSupportedError": -32009,
    "InvalidParamsError": -32602, "InvalidRequestError": -32600, "MethodNotFoundError": -32601, "JSONParseError": -32700,
}


class Mismatch(Exception):
    pass


class Skip(Exception):
    pass


def fill(value, known):
    if isinstance(value, dict):
        return {k: fill(v, known) for k, v in value.items()}
    if isinstance(value, list):
        return [fill(v, known) for v in value]
    if isinstance(value, str):
        whole = re.fullmatch(r"\{\{([^}]+)\}\}", value)
        if whole and whole[1] in known:
            return known[whole[1]]
        return re.sub(r"\{\{([^}]+)\}\}", lambda m: str(known.get(m[1], m[0])), value)
    return value


def look(value, path):
    for piece in re.findall(r"[^.\[\]]+", path):
        if isinstance(value, list) and piece.isdigit():
            value = value[int(piece)] if int(piece) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(piece)
        else:
            return None
    return value


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(piece.capitalize() for piece in rest)


RULES = {"type", "exists", "absent", "one_of", "not_one_of", "matches", "pattern", "contains", "min_length", "max_length",
         "min_count", "max_count", "not_empty", "equals", "gte", "lte", "format", "length", "not"}


def match(found, wanted, place="body"):
    if isinstance(wanted, dict) and wanted and set(wanted) <= RULES:
        return rule(found, wanted, place)
    if isinstance(wanted, dict):
        for name, inner in wanted.items():
            value = found.get(name, found.get(camel(name))) if isinstance(found, dict) else None
            match(value, inner, f"{place}.{name}")
    elif isinstance(wanted, list):
        for index, inner in enumerate(wanted):
            match(found[index] if isinstance(found, list) and index < len(found) else None, inner, f"{place}[{index}]")
    elif found != wanted:
        raise Mismatch(f"{place}: {wanted!r} wanted, {json.dumps(found)[:120]} found")


def rule(found, wanted, place):
    kinds = {"string": str, "object": dict, "array": list, "boolean": bool, "number": (int, float), "integer": int}
    for name, value in wanted.items():
        good = {
            "type": lambda: isinstance(found, kinds[value]),
            "exists": lambda: (found is not None) == value,
            "absent": lambda: (found is None) == value,
            "one_of": lambda: found in value,
            "not_one_of": lambda: found not in value,
            "matches": lambda: isinstance(found, str) and re.search(value, found),
            "pattern": lambda: isinstance(found, str) and re.search(value, found),
            "contains": lambda: value in (found or ""),
            "min_length": lambda: len(found or []) >= value,
            "max_length": lambda: len(found or []) <= value,
            "min_count": lambda: len(found or []) >= value,
            "max_count": lambda: len(found or []) <= value,
            "length": lambda: len(found or []) == value,
            "not_empty": lambda: bool(found) == value,
            "equals": lambda: found == value,
            "gte": lambda: found >= value,
            "lte": lambda: found <= value,
            "not": lambda: found != value,
            "format": lambda: isinstance(found, str),
        }[name]
        if not good():
            raise Mismatch(f"{place}: {name} {value!r}, {json.dumps(found)[:120]} found")


class Runner:
    def __init__(self, url, binding):
        self.url, self.binding = url, binding
        self.http = httpx.Client(timeout=30, trust_env=False)

    def run(self, test, variables):
        known = dict(variables)
        for step in test["steps"]:
            step = fill(step, known)
            status, body, events = self.step(step)
            known.update({f"{step['id']}.{k}": look(body, v) for k, v in (step.get("capture") or {}).items()})
            self.judge(step, status, body, events)

    def step(self, step):
        if "raw" in step:
            return self.raw(step["raw"])
        if "operation" not in step:
            raise Skip("a step without an operation")
        if step["operation"] == "get_agent_card":
            response = self.http.get(self.url + "/.well-known/agent-card.json")
            return response.status_code, response.json(), None
        times = step.get("repeat") or {}
        for _ in range(int(times.get("max", times.get("times", 1))) if isinstance(times, dict) else 1):
            result = self.operation(step)
            until = times.get("until") if isinstance(times, dict) else None
            try:
                if until is not None:
                    match(result[1], until.get("body", until))
                break
            except Mismatch:
                import time
                time.sleep(int(times.get("delay_ms", 500)) / 1000)
        return result

    def operation(self, step):
        method, verb, path = METHODS[step["operation"]]
        params = dict(step.get("params") or {})
        if "message" in params:
            params["message"] = {"messageId": str(uuid.uuid4()), **params["message"]}
            for name in ("taskId", "contextId"):
                if name in params:
                    params["message"].setdefault(name, params.pop(name))
        if "pushNotificationConfig" in params:
            params.update(params.pop("pushNotificationConfig"))
        if "configId" in params:
            params["id"] = params.pop("configId")
        headers = {"A2A-Version": "1.0", **(step.get("headers") or {})}
        if self.binding == "jsonrpc":
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            response = self.http.post(self.url + "/a2a", json=body, headers=headers)
        else:
            names = re.findall(r"\{(\w+)\}", path)
            address = self.url + "/a2a" + path.format(**{name: params.pop(name, "") for name in names})
            if verb == "POST":
                response = self.http.post(address, json=params, headers=headers)
            else:
                query = {k: str(v).lower() if isinstance(v, bool) else v for k, v in params.items()}
                response = self.http.request(verb, address, params=query, headers=headers)
        return self.answer(response)

    def raw(self, raw):
        path = raw.get("path", "/")
        address = self.url + (path if path.startswith("/.well-known") else "/a2a" + path)
        content = raw.get("body_raw", raw.get("body"))
        content = content if isinstance(content, str) else json.dumps(content) if content is not None else None
        response = self.http.request(raw.get("method", "POST"), address, content=content, headers=raw.get("headers"))
        try:
            return response.status_code, response.json(), None
        except ValueError:
            return response.status_code, response.text, None

    def answer(self, response):
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
            events = [json.loads(line) for line in lines]
            events = [event.get("result", event) for event in events]
            return response.status_code, events[-1] if events else None, events
        body = response.json() if response.content else None
        if self.binding == "jsonrpc" and isinstance(body, dict) and "result" in body:
            body = body["result"]
        return response.status_code, body, None

    def judge(self, step, status, body, events):
        expected = step.get("expect")
        if expected is not None:
            inner = expected.get("body", {k: v for k, v in expected.items() if k not in ("status", "headers")})
            if "status" in expected and self.binding == "jsonrpc" or "raw" in step and "status" in expected:
                match(status, expected["status"], "status")
            match(body, inner)
        if "expect_error" in step:
            error = (body or {}).get("error") if isinstance(body, dict) else None
            if error is None:
                raise Mismatch(f"no error: {json.dumps(body)[:120]}")
            kind = step["expect_error"].get("error_type")
            if self.binding == "jsonrpc" and kind in ERRORS and error.get("code") != ERRORS[kind]:
                raise Mismatch(f"{kind} wanted, {json.dumps(error)[:120]} found")
        if "expect_stream" in step:
            self.stream(step["expect_stream"], events)

    def stream(self, wanted, events):
        if events is None:
            raise Mismatch("not a stream")
        flat = [next(iter(event.values())) | event for event in events]
        if len(events) < wanted.get("min_count", 0):
            raise Mismatch(f"{len(events)} events")
        if "final_event" in wanted:
            match(flat[-1], wanted["final_event"], "final")


def tests():
    for path in sorted(FOLDER.glob("*.acts.yaml")):
        document = yaml.safe_load(path.read_text())
        for suite in document.get("suites") or []:
            for test in suite["tests"]:
                yield test, document.get("variables") or {}


def judge(runner, test, variables):
    wanted = test.get("transport")
    names = {"jsonrpc": "jsonrpc", "http_json": "http_json", "rest": "http_json", "http+json": "http_json"}
    if wanted and runner.binding not in [names.get(str(t).lower()) for t in wanted]:
        return None
    capabilities = (test.get("preconditions") or {}).get("capabilities") or {}
    if any(value is False for value in capabilities.values()):
        return "skip", "wants a server without this capability"
    try:
        runner.run(test, variables)
        return "pass", ""
    except Skip as why:
        return "skip", str(why)
    except Exception as error:
        return "fail", f"{type(error).__name__}: {error}".replace("\n", " ")[:200]


with house.server(GANDER) as url:
    for test, variables in tests():
        for binding in ("jsonrpc", "http_json"):
            verdict = judge(Runner(url, binding), test, variables)
            if verdict:
                print(verdict[0], f"{test['id']}-{binding}", f"[{test.get('level')}]", verdict[1], flush=True)
