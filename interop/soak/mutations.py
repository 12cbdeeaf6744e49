"""Valid requests of every protocol, and what becomes of them when somebody makes mistakes."""

import copy
import json
import random
import string

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

# Values that no request expects where they end up.
ODD = [
    None, True, -1, 0, 2**63, 1e308, "", " ", "\u0000", "\u202e\u200d", "../../etc/passwd", "file:///etc/passwd", "x" * 70_000,
    [], {}, [[]], [None], {"": {}}, {"__proto__": 1}, "00000000-0000-0000-0000-000000000000", "adk-" + "f" * 32, DOT,
]


def script(*steps):
    """What the demo model is told to do."""
    return "[[script:" + json.dumps([list(steps)]) + "]]"


def requests(rng, ids):
    """Every kind of request once, valid: (protocol, method, path, body). `ids` are those that the server gave out."""
    text = rng.choice([
        script({"text": "hello", "chunks": 3}),
        script({"text": "y" * rng.choice([10, 5_000, 60_000])}),
        script({"tool": "list", "args": {"path": "."}}),
        script({"tool": "shell", "args": {"command": "echo x > y"}}),
        script({"error": rng.choice(["overloaded", "refused", "bad_request"])}),
        "hello",
    ])
    session, run = ids.any("session"), ids.any("run")
    adk = {
        "appName": "gander", "userId": "user", "sessionId": session, "streaming": rng.random() < 0.5,
        "newMessage": {"role": "user", "parts": [{"text": text}]},
    }
    sent = {"messageId": f"m-{rng.getrandbits(64)}", "role": "ROLE_USER", "parts": [{"text": text}]}
    old = {"messageId": f"m-{rng.getrandbits(64)}", "role": "user", "kind": "message", "parts": [{"kind": "text", "text": text}]}
    said = {"role": "user", "created": 1, "content": [{"type": "text", "text": text}], "metadata": {}}
    picture = {"type": "image", "data": DOT, "mimeType": "image/png"}
    user = f"/apps/gander/users/user/sessions"

    def rpc(method, params):
        return {"jsonrpc": "2.0", "id": rng.getrandbits(32), "method": method, "params": params}

    message = [{"role": "user", "parts": [{"content": text, "content_type": "text/plain"}]}]
    new_run = {"agent_name": "gander", "mode": rng.choice(["sync", "async", "stream"]), "input": message}
    resume = {"mode": "sync", "await_resume": {"type": "message", "message": message[0]}}
    return [
        ("acp-rest", "GET", "/agents", None),
        ("acp-rest", "POST", "/runs", new_run),
        ("acp-rest", "POST", "/runs", {**new_run, "session_id": session}),
        ("acp-rest", "GET", f"/runs/{run}", None),
        ("acp-rest", "GET", f"/runs/{run}/events", None),
        ("acp-rest", "POST", f"/runs/{run}", resume),
        ("acp-rest", "POST", f"/runs/{run}/cancel", {}),
        ("acp-rest", "GET", f"/session/{session}", None),
        ("goose", "POST", "/agent/start", {"working_dir": ids.folder}),
        ("goose", "POST", "/reply", {"session_id": session, "user_message": said}),
        ("goose", "POST", "/reply", {"session_id": session, "user_message": {**said, "content": [picture]}}),
        ("goose", "GET", "/sessions", None),
        ("goose", "GET", f"/sessions/{session}", None),
        ("goose", "POST", "/agent/update_session", {"session_id": session, "name": "a name"}),
        ("goose", "POST", "/config/read", {"key": "GOOSE_MODEL", "is_secret": False}),
        ("goose", "POST", "/recipes/decode", {"deeplink": "e30"}),
        ("goose", "GET", f"/agent/tools?session_id={session}", None),
        ("adk", "GET", "/list-apps", None),
        ("adk", "POST", user, {"state": {"k": 1}}),
        ("adk", "GET", f"{user}/{session}", None),
        ("adk", "POST", "/run", adk),
        ("adk", "POST", "/run_sse", adk),
        ("adk", "POST", f"{user}/{session}/artifacts", {"filename": "a.txt", "artifact": {"text": text}}),
        ("adk", "GET", f"{user}/{session}/artifacts", None),
        ("adk", "DELETE", f"{user}/{ids.any('session')}", None) if rng.random() < 0.2 else ("adk", "GET", user, None),
        ("a2a", "GET", "/.well-known/agent-card.json", None),
        ("a2a", "POST", "/a2a/message:send", {"message": sent}),
        ("a2a", "POST", "/a2a/message:stream", {"message": {**sent, "contextId": session}}),
        ("a2a", "GET", f"/a2a/tasks/{run}", None),
        ("a2a", "GET", "/a2a/tasks?pageSize=5", None),
        ("a2a", "POST", "/a2a", rpc("SendMessage", {"message": sent})),
        ("a2a", "POST", "/a2a", rpc("message/send", {"message": old})),
        ("a2a", "POST", "/a2a", rpc("GetTask", {"id": run})),
        ("a2a", "POST", "/a2a", rpc("CancelTask", {"id": run})),
        ("acp", "POST", "/acp", rpc("initialize", {"protocolVersion": 1, "clientCapabilities": {}})),
        ("own", "GET", "/gander/status", None),
        ("own", "GET", "/health", None),
    ]


def acp_messages(rng, ids):
    """What an editor sends over a WebSocket, in order; a session's id is filled in by whoever reads the answers."""
    block = {"type": "text", "text": script({"text": "hello", "chunks": rng.randint(1, 5)})}
    return [
        ("initialize", {"protocolVersion": 1, "clientCapabilities": {}}),
        ("session/new", {"cwd": ids.folder, "mcpServers": []}),
        ("session/prompt", {"sessionId": "SESSION", "prompt": [block]}),
        ("session/list", {}),
        ("session/set_mode", {"sessionId": "SESSION", "modeId": "default"}),
        ("session/load", {"sessionId": "SESSION", "cwd": ids.folder, "mcpServers": []}),
        ("session/prompt", {"sessionId": "SESSION", "prompt": [{"type": "image", "data": DOT, "mimeType": "image/png"}]}),
    ]


def places(value, path=()):
    """Every place in a JSON value."""
    yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from places(child, path + (key,))


def mutate(rng, body):
    """A value with a few mistakes in it, as bytes."""
    body = copy.deepcopy(body)
    for _ in range(rng.randint(1, 3)):
        path = rng.choice(list(places(body)))
        if not path:
            continue
        parent = body
        for key in path[:-1]:
            parent = parent[key]
        key, kind = path[-1], rng.randrange(5)
        if kind == 0:
            # A copy: threads that change what they share trip each other up.
            parent[key] = copy.deepcopy(rng.choice(ODD))
        elif kind == 1 and isinstance(parent, dict):
            del parent[key]
        elif kind == 2 and isinstance(parent, dict):
            parent["".join(rng.choices(string.ascii_letters, k=6))] = parent[key]
        elif kind == 3:
            # Three such mistakes inside each other would make gigabytes.
            most = (1 << 20) // len(json.dumps(parent[key]))
            parent[key] = [parent[key]] * min(rng.choice([0, 2, 100]), most)
        else:
            for _ in range(rng.choice([3, 200])):
                parent[key] = {"a": parent[key]}
    raw = json.dumps(body).encode()
    if rng.random() < 0.15:
        raw = bytearray(raw)
        for _ in range(rng.randint(1, 8)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        raw = bytes(raw)
    return raw[: rng.randrange(len(raw) + 1)] if rng.random() < 0.05 else raw


def mutate_path(rng, path):
    """An address with a mistake in it."""
    kind = rng.randrange(6)
    if kind == 0:
        return path + rng.choice(["/", "//", "/..", "%00", "?limit=-1", "?limit=99999999999", "?x=" + "y" * 4_000])
    if kind == 1:
        at = rng.randrange(len(path))
        return path[:at] + rng.choice("/%?#.~") + path[at:]
    if kind == 2:
        return "/".join(rng.sample(path.split("/"), len(path.split("/")))) or "/"
    return path
