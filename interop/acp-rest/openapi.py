"""schemathesis on descriptions of the Agent Communication Protocol: prints one verdict per kind of failure and path.

    openapi.py GANDER SCHEMATHESIS NAME=FILE…

A failure's name is NAME:METHOD/path:code:what, where what is the schema that was broken, or the status that was not expected.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, "../a2a")
import gander_server

GANDER, SCHEMATHESIS, *DOCUMENTS = sys.argv[1:]
PHASES = "examples,coverage,fuzzing,stateful"


def failures(events):
    """Every failed check with the answer that it is about."""
    for event in events:
        recorder = (event.get("ScenarioFinished") or {}).get("recorder") or {}
        for case, checks in (recorder.get("checks") or {}).items():
            response = ((recorder.get("interactions") or {}).get(case) or {}).get("response") or {}
            for check in checks:
                failure = (check.get("failure_info") or {}).get("failure")
                if failure:
                    yield failure, response.get("status_code")


def named(document, failure, status):
    place = re.search(r"Schema at /components/schemas/(\w+)", failure["message"])
    operation = failure["operation"].replace(" ", "")
    return f"{document}:{operation}:{failure['code']}:{place[1] if place else status}"


def run(document, path, server, folder):
    command = [SCHEMATHESIS, "run", path, "--url", server.url, "--checks", "all", "--max-examples", "25", "--continue-on-failure"]
    command += ["-H", f"Authorization: Bearer {server.token()}"]
    command += ["--report", "ndjson", "--report-dir", folder, "--generation-deterministic", "--no-color"]
    command += ["--phases", PHASES, "--max-time", "150", "--request-timeout", "30"]
    # It keeps notes where it is started.
    subprocess.run(command, stdout=sys.stderr, check=False, cwd=folder)
    events = [json.loads(line) for line in open(glob.glob(f"{folder}/*.ndjson")[0])]
    found, cases = {}, 0
    for event in events:
        cases += len(((event.get("ScenarioFinished") or {}).get("recorder") or {}).get("checks") or {})
    for failure, status in failures(events):
        found.setdefault(named(document, failure, status), failure)
    if cases < 100:
        print(f"fail {document}:cases only {cases} cases were tried")
    else:
        print(f"pass {document}:cases")
    for name, failure in sorted(found.items()):
        reason = " ".join(f"{failure['title']}: {failure['message']}".split())[:300]
        print(f"fail {name} {reason}")
    print(f"# {document}: {cases} cases", file=sys.stderr)


for argument in DOCUMENTS:
    document, _, path = argument.partition("=")
    path = os.path.abspath(path)
    with gander_server.server(GANDER) as server, tempfile.TemporaryDirectory() as folder:
        run(document, path, server, folder)
