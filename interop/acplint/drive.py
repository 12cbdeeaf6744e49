"""Runs acplint against gander, in the words that gander finds for it and in forced dialects; one line per check.

acplint speaks a dialect of its own: see expected-failures.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

GANDER, LINTER = sys.argv[1], Path(sys.executable).with_name("acplint")


# How gander is told to speak, and how the checks are called then.
DIALECTS = {"": "", "agentkit.": " --dialect agentkit", "aptove.": " --dialect aptove"}


def lint(data, work, flags):
    report = data.parent / "report.json"
    arguments = f"acp --data {data}{flags}"
    command = [LINTER, "--agent", GANDER, "--agent-args", arguments, "--cwd", work, "--timeout", "60"]
    env = {"PATH": os.environ["PATH"], "HOME": str(data.parent), "GANDER_MODEL": "demo/demo"}
    subprocess.run([*command, "--output", "json", "--output-file", report], env=env, check=False, timeout=250)
    return json.loads(report.read_text())["results"]


def end_background(data):
    """The background server goes on after its clients: find it by its data directory and end it."""
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            if str(data).encode() in words:
                os.kill(int(entry.name), signal.SIGTERM)
        except OSError:
            pass  # it has just ended by itself


def verdicts(prefix, results):
    """One verdict per check: a check that was done several times passes if it passed every time."""
    found = {}
    for result in results:
        name = f"{prefix}{result['category']}.{result['name']}"
        reason = (result["message"] or "no reason").replace("\n", " ")[:300]
        verdict = {"PASS": "pass", "SKIP": f"skip {name} {reason}"}.get(result["status"], f"fail {name} {reason}")
        if found.get(name, "pass") == "pass":
            found[name] = verdict
    return [f"pass {name}" if verdict == "pass" else verdict for name, verdict in found.items()]


root = Path(tempfile.mkdtemp(prefix="gander-acplint-"))
try:
    data, work = root / "data", root / "work"
    data.mkdir()
    work.mkdir()
    for prefix, flags in DIALECTS.items():
        print("\n".join(verdicts(prefix, lint(data, work, flags))), flush=True)
finally:
    end_background(root / "data")
    shutil.rmtree(root, ignore_errors=True)
