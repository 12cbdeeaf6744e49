"""What gander sends for OpenTelemetry, through a real collector and, beside it, to the official protobuf types.

Usage: drive.py GANDER
"""

import base64
import gzip
import http.server
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

import rotel
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

GANDER = sys.argv[1]
PATIENCE = 60
KINDS = {"/v1/traces": ExportTraceServiceRequest, "/v1/logs": ExportLogsServiceRequest}
IDS = ("traceId", "spanId", "parentSpanId")
SECRET = "sesame"


class Receiver(http.server.BaseHTTPRequestHandler):
    """Decodes what comes: JSON strictly, so that a field of the wrong name or kind is refused, or protobuf."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers["content-encoding"] == "gzip":
            body = gzip.decompress(body)
        message = KINDS[self.path]()
        try:
            if self.headers["content-type"].startswith("application/json"):
                self.server.bodies.append(body.decode())
                json_format.Parse(to_base64_ids(body), message)
            else:
                message.ParseFromString(body)
            self.server.received.append(message)
        except Exception as error:
            self.server.failures.append(f"{error}: {body[:400]!r}")
        self.send_response(200)
        self.send_header("content-type", self.headers["content-type"])
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def to_base64_ids(body):
    """OTLP's JSON has ids in hexadecimal, where protobuf's own JSON has base64: the one difference between the two."""
    def convert(value):
        if isinstance(value, dict):
            in_base64 = lambda text: base64.b64encode(bytes.fromhex(text)).decode()
            return {key: in_base64(item) if key in IDS else convert(item) for key, item in value.items()}
        return [convert(item) for item in value] if isinstance(value, list) else value
    return json.dumps(convert(json.loads(body)))


def start_receiver():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.received, server.failures, server.bodies = [], [], []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what, done):
    until = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > until:
            raise RuntimeError(f"not in time: {what}")
        time.sleep(0.1)


def spans(server):
    messages = [message for message in server.received if isinstance(message, ExportTraceServiceRequest)]
    return [span for message in messages for resource in message.resource_spans for scope in resource.scope_spans for span in scope.spans]


def log_records(server):
    messages = [message for message in server.received if isinstance(message, ExportLogsServiceRequest)]
    return [record for message in messages for resource in message.resource_logs for scope in resource.scope_logs for record in scope.log_records]


def drive_server(folder, endpoint):
    """A data directory whose server sends there; gives what runs a command with it."""
    folder.mkdir()
    environment = {
        "HOME": str(folder), "PATH": os.environ["PATH"], "GANDER_DATA": str(folder / "data"), "GANDER_MODEL": "demo/demo",
        "GANDER_OTEL_ENDPOINT": endpoint, "GANDER_AUDIT_OTEL": endpoint,
    }
    run = lambda *words: subprocess.run([GANDER, *words], env=environment, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    return run


def check_spans(server, run):
    if server.failures:
        raise RuntimeError(server.failures[0])
    told = spans(server)
    roots = [span for span in told if span.name == "invoke_agent"]
    tools = [span for span in told if span.name.startswith("execute_tool ")]
    calls = [span for span in told if span.name.startswith("chat ")]
    if len(roots) != 1 or not tools or not calls:
        raise RuntimeError(f"spans are missing: {[span.name for span in told]}")
    if any(span.trace_id != roots[0].trace_id for span in told) or len(roots[0].trace_id) != 16:
        raise RuntimeError(f"not one trace: {told}")
    if any(span.parent_span_id != roots[0].span_id for span in tools + calls):
        raise RuntimeError(f"not below the run: {told}")
    if any(not 0 < span.start_time_unix_nano <= span.end_time_unix_nano for span in told):
        raise RuntimeError(f"no times: {told}")
    records = [json.loads(line) for line in run("audit", "--json").stdout.splitlines()]
    bodies = sorted((json.loads(record.body.string_value) for record in log_records(server)), key=lambda record: record["seq"])
    if not records or bodies != records:
        raise RuntimeError(f"{len(records)} actions, {len(bodies)} at the collector: {bodies}")


def whole(server, run):
    is_whole = lambda: any(span.name == "invoke_agent" for span in spans(server)) and log_records(server) or server.failures
    wait_for("spans and log records", is_whole)
    check_spans(server, run)


def case(name, test):
    try:
        test()
        print("pass", name, flush=True)
    except Exception as error:
        print("fail", name, " ".join(str(error).split())[:600], flush=True)


def official_types(folder):
    """Each body as it is sent: every field has the name and the kind that the specification says."""
    server, endpoint = start_receiver()
    run = drive_server(folder / "direct", endpoint)
    try:
        run("run", f"tools {SECRET}")
        whole(server, run)
        if any(SECRET in body for body in server.bodies if "resourceSpans" in body):
            raise RuntimeError("a span holds what was said")
    finally:
        run("server", "stop")


def collector(folder):
    """Through Rotel: it takes our JSON and passes it on as protobuf."""
    server, endpoint = start_receiver()
    ports = free_port(), free_port()
    agent = pathlib.Path(rotel.__file__).parent / "rotel-agent"
    command = [str(agent), "start", "--otlp-http-endpoint", f"127.0.0.1:{ports[0]}", "--otlp-grpc-endpoint", f"127.0.0.1:{ports[1]}",
               "--exporter", "otlp", "--otlp-exporter-endpoint", endpoint, "--otlp-exporter-protocol", "http",
               "--pid-file", str(folder / "rotel.pid")]
    with open(folder / "rotel.log", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    run = drive_server(folder / "collected", f"http://127.0.0.1:{ports[0]}")
    def listens():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", ports[0])) == 0
    try:
        wait_for("the collector", listens)
        run("run", "tools")
        whole(server, run)
    finally:
        run("server", "stop")
        process.terminate()
        process.wait(PATIENCE)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        case("json_is_what_the_official_types_say", lambda: official_types(folder))
        case("a_collector_takes_it_and_passes_it_on", lambda: collector(folder))


main()
