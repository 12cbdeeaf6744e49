"""Clients of the Agent Development Kit that nobody here wrote, against `gander serve`.

assistant-ui comes with a token that was made for it, to prompt and to answer with. google-adk's client, adk-devtools and the web page
can send no header: they find a server that was opened for them (`serve --open adk`), and where they answer a question one that also
lets whoever is on this machine answer (`--open-approve`).

Prints `pass NAME` or `fail NAME reason` for each thing that a client did. Usage: drive.py GANDER [picture folder]
"""

import asyncio
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import urllib.request

from google.adk.cli.api_server import RunAgentRequest
from google.adk.cli.conformance.adk_web_server_client import AdkWebServerClient
from google.adk.events.event import Event
from google.genai import types

import live

HERE = os.path.dirname(os.path.abspath(__file__))
GANDER = sys.argv[1]
# The same server with the agents that the clients are checked with; cargo puts it beside the product.
CONFORMANCE = os.path.join(os.path.dirname(GANDER), "gander-conformance")
PICTURES = sys.argv[2] if len(sys.argv) > 2 else None


def report(name, problem=None):
    print(f"pass {name}" if problem is None else f"fail {name} {' '.join(str(problem).split())[:300]}", flush=True)


def page_folder():
    import google.adk.cli

    return os.path.join(os.path.dirname(google.adk.cli.__file__), "browser")


def environment(data):
    return {"PATH": os.environ["PATH"], "HOME": data, "GANDER_MODEL": "demo/demo"}


@contextlib.contextmanager
def started(*flags):
    """A server with the agents that the clients are checked with: its data directory and its address."""
    with tempfile.TemporaryDirectory(prefix="adk-clients-") as data:
        command = [CONFORMANCE, "--data", data, "serve", "--listen", "127.0.0.1:0", *flags]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment(data))
        try:
            for line in server.stdout:
                if "listening on http://" in line:
                    yield data, "http://" + line.strip().rsplit("http://", 1)[1]
                    return
            raise SystemExit("gander did not start")
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(30)


def holds(data, name):
    """Whether a session has made a file of this name."""
    return any(pathlib.Path(data).rglob(name))


def touch(name):
    """A prompt whose one command makes a file, so that somebody is asked."""
    calls = [[{"tool": "shell", "args": {"command": f"touch {name}"}}], [{"text": "All done."}]]
    return f"[[script:{json.dumps(calls)}]]"


def request(session, text, streaming=True):
    return RunAgentRequest(
        app_name="wire", user_id="py", session_id=session, streaming=streaming, new_message=types.UserContent(text)
    )


async def python_client(base):
    where = {"app_name": "wire", "user_id": "py"}
    async with AdkWebServerClient(base_url=base) as client:
        version = await client.get_version_data()
        assert version["language"] == "rust", version
        report("python:version")
        session = await client.create_session(**where, state={"a": 1})
        session = await client.update_session(**where, session_id=session.id, state_delta={"b": 2})
        assert session.state == {"a": 1, "b": 2}, session.state
        report("python:sessions")
        events = [event async for event in client.run_agent(request(session.id, "tool"))]
        final = [event for event in events if event.is_final_response()]
        assert final[-1].content.parts[0].text.startswith("Tool get_weather said"), final
        assert {event.id for event in events if event.partial} <= {event.id for event in events if not event.partial}
        report("python:run_sse")
        async for _ in client.run_agent(request(session.id, "artifact")):
            pass
        named = {**where, "session_id": session.id, "artifact_name": "note.txt"}
        versions = await client.list_artifact_versions_metadata(**named)
        one = await client.get_artifact_version_metadata(**named, version=0)
        assert len(versions) == 1 and one.mime_type == "text/plain", versions
        report("python:artifacts")
        try:
            codes = [event.error_code async for event in client.run_agent(request(session.id, "raise"))]
            report("python:errors", f"nothing was raised: {codes}")
        except RuntimeError:
            report("python:errors")
        session = await client.get_session(**where, session_id=session.id)
        assert len(session.events) > 8, len(session.events)
        await client.delete_session(**where, session_id=session.id)
        report("python:history")


async def python_asked(data, base):
    """The agent itself asks before it runs a command, and a function response allows or refuses it."""
    where = {"app_name": "gander", "user_id": "py"}
    async with AdkWebServerClient(base_url=base) as client:
        for confirmed in (True, False):
            session, file = await client.create_session(**where), f"confirmed-{confirmed}"

            async def run(content):
                wish = RunAgentRequest(**where, session_id=session.id, streaming=False, new_message=content)
                return [event async for event in client.run_agent(wish)]

            asked = [call for event in await run(types.UserContent(touch(file))) for call in event.get_function_calls()]
            question = next(call for call in asked if call.name == "adk_request_confirmation")
            assert f"touch {file}" in json.dumps(question.args), question
            assert not holds(data, file), "it ran before anybody said so"
            answer = types.FunctionResponse(id=question.id, name=question.name, response={"confirmed": confirmed})
            events = await run(types.Content(role="user", parts=[types.Part(function_response=answer)]))
            said = [part.text for event in events if event.content for part in event.content.parts if part.text]
            assert said[-1] == "All done." and holds(data, file) == confirmed, (confirmed, said)
    report("python:asked")


async def live_client(base):
    async with AdkWebServerClient(base_url=base) as client:
        session = await client.create_session(app_name="wire", user_id="py")
    query = f"app_name=wire&user_id=py&session_id={session.id}&modalities=TEXT"
    events = [Event.model_validate(event) for event in await live.turn(base, query, "hello")]
    assert [event.partial for event in events] == [True, True, True, None, None], events
    assert events[3].content.parts[0].text == "Hello, world!" and events[4].turn_complete, events
    report("python:run_live")


def evaluations(base):
    """A session becomes a case, the case runs and passes; google-adk's own types read every answer."""
    from google.adk.cli.dev_server import ListEvalResultsResponse, ListMetricsInfoResponse, RunEvalResponse
    from google.adk.evaluation.eval_case import EvalCase, get_all_tool_calls
    from google.adk.evaluation.eval_result import EvalSetResult
    from google.adk.evaluation.eval_set import EvalSet

    def call(path, body=None):
        data = None if body is None else json.dumps(body).encode()
        wish = urllib.request.Request(base + path, data, {"Content-Type": "application/json"})
        return json.load(urllib.request.urlopen(wish, timeout=60))

    dev, sessions = "/dev/apps/wire", "/apps/wire/users/py/sessions"
    call(sessions, {"sessionId": "to-evaluate"})
    where = {"appName": "wire", "userId": "py", "sessionId": "to-evaluate"}
    call("/run", {**where, "newMessage": {"role": "user", "parts": [{"text": "tool"}]}})
    made = EvalSet.model_validate(call(f"{dev}/eval-sets", {"evalSet": {"eval_set_id": "kit", "eval_cases": []}}))
    assert made.eval_set_id == "kit", made
    call(f"{dev}/eval-sets/kit/add-session", {"evalId": "weather", "sessionId": "to-evaluate", "userId": "py"})
    case = EvalCase.model_validate(call(f"{dev}/eval-sets/kit/eval-cases/weather"))
    calls = get_all_tool_calls(case.conversation[0].intermediate_data)
    assert [(one.name, one.args) for one in calls] == [("get_weather", {"city": "Paris"})], calls
    known = ListMetricsInfoResponse.model_validate(call(f"{dev}/metrics-info")).metrics_info
    metrics = [{"metricName": one.metric_name, "threshold": 1.0} for one in known]
    ran = RunEvalResponse.model_validate(call(f"{dev}/eval-sets/kit/run", {"evalCaseIds": [], "evalMetrics": metrics}))
    assert [one.final_eval_status.name for one in ran.run_eval_results] == ["PASSED"], ran
    results = ListEvalResultsResponse.model_validate(call(f"{dev}/eval-results")).eval_result_ids
    result = EvalSetResult.model_validate(call(f"{dev}/eval-results/{results[-1]}"))
    assert result.eval_case_results[0].session_details.events, result
    report("python:evaluations")


def vectors():
    """Every expected file of ours, read by the strict models of google-adk."""
    root, read = os.path.join(HERE, "../../crates/wire/tests/vectors"), 0
    for scenario in sorted(os.listdir(root)):
        for name in ("adk.jsonl", "adk_session.jsonl"):
            for line in open(os.path.join(root, scenario, name)):
                value = json.loads(line)
                if "error_details" not in value:
                    Event.model_validate(value)
                    read += 1
    assert read > 100, read
    report("python:vectors")


def javascript(name, *words):
    done = subprocess.run(
        ["node", f"{name}.mjs", *words], cwd=HERE, capture_output=True, text=True, timeout=180, check=False
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith(("pass ", "fail "))]
    print("\n".join(lines), flush=True)
    if done.returncode != 0 or not lines:
        report(f"{name}:whole", f"exit {done.returncode}: {done.stderr or done.stdout}")


def assistant_ui(data, base):
    command = [GANDER, "--data", data, "token", "add", "ui", "--scopes", "prompt,approve"]
    added = subprocess.run(command, capture_output=True, text=True, check=True, env=environment(data))
    javascript("assistant_ui", base, added.stdout.strip())
    report("assistant-ui:files", None if holds(data, "aui-true") and not holds(data, "aui-false") else "not as confirmed")


def page(base):
    browser = os.environ.get("CHROMIUM", "chromium")
    if shutil.which(browser) is None:
        print(f"skip page:whole no {browser} here, CHROMIUM names another", flush=True)
        return
    arguments = [sys.executable, os.path.join(HERE, "page.py"), base] + ([PICTURES] if PICTURES else [])
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=400, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("pass ", "fail "))]
    print("\n".join(lines), flush=True)
    if done.returncode != 0 or not lines:
        report("page:whole", f"exit {done.returncode}: {done.stderr[-500:]}")


def guarded(name, step):
    try:
        step()
    except Exception as problem:  # a client may fail in any way: all are reported
        traceback.print_exc()
        report(name, repr(problem))


def main():
    with started() as (data, base):
        guarded("assistant-ui:whole", lambda: assistant_ui(data, base))
    with started("--open", "adk") as (data, base):
        guarded("python:whole", lambda: asyncio.run(python_client(base)))
        guarded("python:run_live", lambda: asyncio.run(live_client(base)))
        guarded("python:evaluations", lambda: evaluations(base))
        guarded("python:vectors", vectors)
        guarded("devtools:whole", lambda: javascript("devtools", base))
    with started("--open", "adk", "--open-approve", "--adk-ui", page_folder()) as (data, base):
        guarded("python:asked", lambda: asyncio.run(python_asked(data, base)))
        guarded("page:whole", lambda: page(base))
        report("page:ran", None if holds(data, "from-the-page") else "what was confirmed on the page did not run")


main()
