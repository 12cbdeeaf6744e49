"""Describes goose's REST as this server serves it, for a program that makes up requests. Prints OpenAPI.

    describe.py SESSION

Our own table: the paths and the fields of their bodies, with their types. Routes that answer 501 on purpose are not in it. Half of
the ids are that of a real session.
"""

import json
import sys

TEXT = {"type": "string"}
SESSION = {"anyOf": [{"type": "string", "enum": [sys.argv[1]]}, TEXT]}
FLAG = {"type": "boolean"}
NUMBER = {"type": "integer"}
OBJECT = {"type": "object"}
LIST = {"type": "array", "items": {}}
MESSAGE = {
    "type": "object",
    "required": ["role", "created", "content", "metadata"],
    "properties": {
        "id": {"type": "string", "nullable": True},
        "role": {"type": "string", "enum": ["user", "assistant"]},
        "created": NUMBER,
        "content": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["type"],
                "properties": {
                    "type": {"type": "string", "enum": ["text", "image", "thinking", "toolRequest", "toolResponse"]},
                    "text": TEXT,
                    "data": TEXT,
                    "mimeType": TEXT,
                    "id": TEXT,
                    "toolCall": OBJECT,
                    "toolResult": OBJECT,
                },
            },
        },
        "metadata": {
            "type": "object",
            "required": ["userVisible", "agentVisible"],
            "properties": {"userVisible": FLAG, "agentVisible": FLAG},
        },
    },
}
MESSAGES = {"type": "array", "items": MESSAGE}

# method, path, fields of the body (a star is required) or of the query
ROUTES = [
    ("post", "/reply", {"user_message*": MESSAGE, "session_id*": SESSION, "override_conversation": MESSAGES, "mode": TEXT}),
    ("post", "/sessions/{id}/reply", {"request_id*": TEXT, "user_message*": MESSAGE, "override_conversation": MESSAGES}),
    ("post", "/sessions/{id}/cancel", {"request_id*": TEXT}),
    ("post", "/action-required/tool-confirmation", {"id*": TEXT, "action*": TEXT, "sessionId*": SESSION}),
    ("post", "/confirm", {"request_id*": TEXT, "session_id*": SESSION, "approved*": FLAG}),
    ("get", "/sessions", {}),
    ("get", "/sessions/search", {"query*": TEXT, "limit": NUMBER, "after_date": TEXT, "before_date": TEXT}),
    ("get", "/sessions/insights", {}),
    ("post", "/sessions/import", {"json*": TEXT}),
    ("get", "/sessions/{id}", {}),
    ("put", "/sessions/{id}/name", {"name*": TEXT}),
    ("put", "/sessions/{id}/user_recipe_values", {"userRecipeValues*": OBJECT}),
    ("get", "/sessions/{id}/export", {}),
    ("get", "/sessions/{id}/extensions", {}),
    ("post", "/sessions/{id}/fork", {"timestamp": NUMBER, "truncate*": FLAG, "copy*": FLAG}),
    ("post", "/sessions/{id}/messages", {"message": MESSAGE}),
    ("post", "/agent/start", {"working_dir*": TEXT, "recipe": OBJECT, "recipe_id": TEXT, "recipe_deeplink": TEXT,
                              "extension_overrides": LIST}),
    ("post", "/agent/resume", {"session_id*": SESSION, "load_model_and_extensions*": FLAG}),
    ("post", "/agent/restart", {"session_id*": SESSION}),
    ("post", "/agent/stop", {"session_id*": SESSION}),
    ("post", "/agent/update_provider", {"session_id*": SESSION, "provider*": TEXT, "model": TEXT, "context_limit": NUMBER,
                                        "request_params": OBJECT}),
    ("post", "/agent/update_session", {"session_id*": SESSION, "goose_mode": TEXT}),
    ("post", "/agent/update_from_session", {"session_id*": SESSION}),
    ("get", "/agent/tools", {"session_id*": SESSION, "extension_name": TEXT}),
    ("get", "/agent/list_apps", {"session_id": SESSION}),
    ("get", "/agent/export_app/{name}", {}),
    ("post", "/agent/import_app", {"html*": TEXT}),
    ("get", "/agent/prompts", {"session_id": SESSION}),
    ("get", "/config", {}),
    ("post", "/config/read", {"key*": TEXT, "is_secret*": FLAG}),
    ("post", "/config/upsert", {"key*": TEXT, "value*": {}, "is_secret*": FLAG}),
    ("post", "/config/remove", {"key*": TEXT, "is_secret*": FLAG}),
    ("get", "/config/extensions", {}),
    ("get", "/config/providers", {}),
    ("get", "/config/providers/{name}/models", {}),
    ("post", "/config/providers/{name}/model-info", {"model*": TEXT}),
    ("post", "/config/canonical-model-info", {"provider*": TEXT, "model*": TEXT}),
    ("get", "/config/provider-catalog", {"format": TEXT}),
    ("get", "/config/provider-catalog/{id}", {}),
    ("post", "/config/set_provider", {"provider*": TEXT, "model*": TEXT}),
    ("post", "/config/check_provider", {"provider*": TEXT}),
    ("get", "/config/prompts", {}),
    ("get", "/config/slash_commands", {"working_dir": TEXT}),
    ("get", "/config/validate", {}),
    ("get", "/system_info", {}),
    ("get", "/features", {}),
    ("get", "/status", {}),
    ("post", "/recipes/encode", {"recipe*": OBJECT}),
    ("post", "/recipes/decode", {"deeplink*": TEXT}),
    ("post", "/recipes/scan", {"recipe*": OBJECT}),
    ("post", "/recipes/parse", {"content*": TEXT}),
    ("get", "/recipes/list", {}),
]


def operation(method, path, fields):
    """One route, with what it takes."""
    parameters = [
        {"name": name.strip("{}"), "in": "path", "required": True, "schema": SESSION if name == "{id}" else TEXT}
        for name in path.split("/")
        if name.startswith("{")
    ]
    described = {"parameters": parameters, "responses": {"default": {"description": "an answer"}}}
    names = {name.rstrip("*"): schema for name, schema in fields.items()}
    required = [name.rstrip("*") for name in fields if name.endswith("*")]
    if method == "get":
        parameters += [
            {"name": name, "in": "query", "required": name in required, "schema": schema}
            for name, schema in names.items()
        ]
    else:
        schema = {"type": "object", "properties": names}
        if required:
            schema["required"] = required
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return described


paths = {}
for method, path, fields in ROUTES:
    paths.setdefault(path, {})[method] = operation(method, path, fields)
print(json.dumps({"openapi": "3.0.3", "info": {"title": "goose's REST", "version": "1.35"}, "paths": paths}))
