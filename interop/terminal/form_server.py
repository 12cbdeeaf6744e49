"""An MCP server on stdio whose only tool asks the person for a name, a number and an address."""

import json
import sys

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "maxLength": 40},
        "seats": {"type": "integer", "title": "Seats", "minimum": 1, "maximum": 8},
        "write_to": {"type": "string", "title": "E-mail", "format": "email"},
    },
    "required": ["name", "seats", "write_to"],
}
TOOL = {"name": "book", "description": "Books seats", "inputSchema": {"type": "object", "properties": {}}}


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(request):
    """The result of a request; a tool's call asks first, and is answered when the person has."""
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        version = params.get("protocolVersion", "2025-06-18")
        return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "forms", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        send({"id": "form", "method": "elicitation/create", "params": {"message": "Who comes?", "requestedSchema": SCHEMA}})
        filled = next(message for message in map(json.loads, sys.stdin) if message.get("id") == "form")
        return {"content": [{"type": "text", "text": json.dumps(filled.get("result"))}]}
    return {} if method == "ping" else None


for line in sys.stdin:
    request = json.loads(line)
    if "method" in request and "id" in request:
        result = answer(request)
        missing = {"error": {"code": -32601, "message": "method not found"}}
        send({"id": request["id"], **(missing if result is None else {"result": result})})
