"""The audit trail of gander in an rsyslogd of Debian, by each transport, compared with the file and with `gander audit`.

Usage: drive.py GANDER
"""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

GANDER = sys.argv[1]
PATIENCE = 60
CONFIG = """
global(workDirectory="{folder}")
module(load="imudp") module(load="imtcp") module(load="imuxsock" SysSock.Use="off")
input(type="imudp" address="127.0.0.1" port="{udp}")
input(type="imtcp" address="127.0.0.1" port="{tcp}")
input(type="imuxsock" Socket="{unix}" CreatePath="on" UseSpecialParser="off" ParseHostname="on")
template(name="told" type="string" string="%protocol-version%|%syslogfacility-text%|%syslogseverity-text%|%app-name%|%msgid%|%inputname%|%msg%\\n")
action(type="omfile" file="{folder}/told" template="told")
"""


def free_port(kind):
    with socket.socket(socket.AF_INET, kind) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what, done):
    until = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > until:
            raise RuntimeError(f"not in time: {what}")
        time.sleep(0.1)


def lines(file):
    return file.read_text().splitlines() if file.exists() else []


def check(folder, address, told, name):
    """One server with this sink: what the syslog was told is what the file and the command say."""
    home = folder / name
    home.mkdir()
    audit = home / "audit.jsonl"
    environment = {
        "HOME": str(home), "PATH": os.environ["PATH"], "GANDER_DATA": str(home / "data"), "GANDER_MODEL": "demo/demo",
        "GANDER_AUDIT_SYSLOG": address, "GANDER_AUDIT_FILE": str(audit),
    }
    before = len(lines(told))
    run = lambda *words: subprocess.run([GANDER, *words], env=environment, cwd=home, capture_output=True, text=True, timeout=PATIENCE)
    try:
        run("run", "tools")
        wait_for("the file", lambda: len(lines(audit)) > 0)
        wait_for("the syslog", lambda: len(lines(told)) - before >= len(lines(audit)))
        records = [json.loads(line) for line in run("audit", "--json").stdout.splitlines()]
        in_file = [json.loads(line) for line in lines(audit)]
        in_syslog = []
        for line in lines(told)[before:]:
            version, facility, severity, app, kind, source, text = line.split("|", 6)
            if (version, facility, severity, app, kind, source) != ("1", "authpriv", "info", "gander", "audit", f"im{name}"):
                raise RuntimeError(f"not as it was sent: {line}")
            in_syslog.append(json.loads(text))
        # Actions are written in the order in which they ended, and listed in the order in which they began.
        by_call = lambda record: (record["session"], record["seq"])
        records, in_file, in_syslog = (sorted(some, key=by_call) for some in (records, in_file, in_syslog))
        if not records or in_file != records or in_syslog != records:
            raise RuntimeError(f"{len(records)} actions, {len(in_file)} in the file, {len(in_syslog)} in the syslog: {in_syslog}")
    finally:
        run("server", "stop")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        udp, tcp, unix = free_port(socket.SOCK_DGRAM), free_port(socket.SOCK_STREAM), folder / "log"
        (folder / "rsyslog.conf").write_text(CONFIG.format(folder=folder, udp=udp, tcp=tcp, unix=unix))
        command = ["rsyslogd", "-n", "-f", str(folder / "rsyslog.conf"), "-i", str(folder / "pid")]
        receiver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            wait_for("rsyslogd", lambda: unix.exists())
            for kind, address in (("udp", f"udp://127.0.0.1:{udp}"), ("tcp", f"tcp://127.0.0.1:{tcp}"), ("uxsock", f"unix:{unix}")):
                try:
                    check(folder, address, folder / "told", kind)
                    print("pass", f"rsyslog_over_{kind}", flush=True)
                except Exception as error:
                    print("fail", f"rsyslog_over_{kind}", " ".join(str(error).split())[:600], flush=True)
        finally:
            receiver.terminate()
            receiver.wait(PATIENCE)


main()
