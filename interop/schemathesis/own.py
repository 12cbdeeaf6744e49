"""Of the server's description on standard input, its own routes. Prints OpenAPI."""

import json
import sys

api = json.load(sys.stdin)
api["paths"] = {
    path: own
    for path, methods in api["paths"].items()
    if (own := {method: operation for method, operation in methods.items() if "gander" in operation["tags"]})
}
json.dump(api, sys.stdout)
