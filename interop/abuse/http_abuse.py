"""HTTP clients that mean no good: slow ones, silent ones, and those who take everything back."""

import re
import socket
import struct
import subprocess
import time

from gander_server import Watch

SLOW = 200
SILENT = 2000
RESETS = 10_000
# RFC 9113: types and flags of frames, and the preface.
HEADERS, RST_STREAM, SETTINGS, GOAWAY = 1, 3, 4, 7
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def slowhttptest(server, *options):
    """Debian's slowhttptest; gives what became of its connections."""
    command = ["slowhttptest", "-c", str(SLOW), "-r", "100", "-l", "30", "-p", "5", *options]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", said.stdout)
    counts = {name: int(found[-1]) for name in ("closed", "error", "connected", "pending") if (found := re.findall(rf"^{name}:\s+(\d+)", plain, re.M))}
    assert "Exit status" in plain, f"slowhttptest said nothing: {plain[-300:]} {said.stderr[-300:]}"
    # Whether the service is there is what `Watch` asks. slowhttptest's own probe has no token, and whoever asks without one
    # often enough is told 429, which it takes for an outage.
    return counts


def slow_requests(server, mode):
    """slowhttptest in one of its modes: the server stays there for others, and gives the slow ones up."""
    base = f"http://127.0.0.1:{server.port}"
    options = {
        "header": ["-H", "-i", "5", "-x", "24", "-t", "GET", "-u", f"{base}/health"],
        "body": ["-B", "-i", "5", "-s", "2048", "-x", "10", "-t", "POST", "-f", "application/json", "-u", f"{base}/gander/login"],
        "read": ["-X", "-w", "8", "-y", "16", "-n", "5", "-z", "8", "-k", "10", "-u", f"{base}/"],
    }[mode]
    with Watch(server) as watch:
        counts = slowhttptest(server, *options)
    return f"{SLOW} connections, {counts}; {watch.verdict()}"


def slow_bodies_with_a_token(server):
    """Who has a token may send a body, a byte a second: others are served meanwhile."""
    head = (f"POST /runs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\nContent-Type: application/json\r\n"
            "Content-Length: 4096\r\n\r\n").encode()
    with Watch(server) as watch:
        sockets = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(SLOW)]
        for each in sockets:
            each.sendall(head)
        for _ in range(8):
            for each in sockets:
                each.sendall(b" ")
            time.sleep(1)
        for each in sockets:
            each.close()
    return f"{SLOW} bodies; {watch.verdict()}"


def h2_frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def h2_request(server):
    """GET /agents with a token, in HPACK without its table: name and value as they are."""
    def literal(index, value):
        value = value.encode()
        assert len(value) < 127 and index < 15, "one octet is enough for each length"
        return bytes([index, len(value)]) + value

    authorization = f"Bearer {server.token}".encode()
    named = bytes([0x0F, 23 - 15, len(authorization)]) + authorization
    return bytes([0x82, 0x86]) + literal(4, "/agents") + literal(1, "localhost") + named


def rapid_resets(server):
    """Requests that are taken back at once, 10,000 of them, on as many connections as the server wants."""
    request, sent, connections, farewells = h2_request(server), 0, 0, 0
    with Watch(server) as watch:
        begun = time.monotonic()
        while sent < RESETS:
            connections += 1
            assert connections < RESETS, "no connection takes anything"
            with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
                connection.sendall(PREFACE + h2_frame(SETTINGS, 0, 0))
                taken, farewell = reset_until_farewell(connection, request, RESETS - sent)
                sent, farewells = sent + taken, farewells + farewell
        took = time.monotonic() - begun
    return f"{sent} resets on {connections} connections in {took:.1f} s, {farewells} of them ended by the server; {watch.verdict()}"


def reset_until_farewell(connection, request, most):
    """Sends resets in groups of a hundred; gives how many, and whether the server said goodbye."""
    sent, stream = 0, 1
    try:
        while sent < most:
            group = b""
            for _ in range(min(100, most - sent)):
                group += h2_frame(HEADERS, 0x05, stream, request) + h2_frame(RST_STREAM, 0, stream, struct.pack(">I", 8))
                stream += 2
                sent += 1
            connection.sendall(group)
            connection.setblocking(False)
            try:
                if not connection.recv(1 << 16):
                    return sent, True
            except BlockingIOError:
                pass
            finally:
                connection.settimeout(30)
    except (ConnectionError, TimeoutError):
        return sent, True
    return sent, False


def silent_readers(server):
    """Readers of a long list of events who read nothing: each costs little, and all of it is given back."""
    text = "x" * 2000
    run = server.prompt("[[script:[[" + ",".join(['{"text":"%s"}' % text] * 40) + "]]]]")
    head = (f"GET /runs/{run['run_id']}/events HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n"
            f"Authorization: Bearer {server.token}\r\n\r\n").encode()
    sockets = []
    with Watch(server) as watch:
        try:
            for _ in range(SILENT):
                one = socket.socket()
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
                one.settimeout(60)
                one.connect(("127.0.0.1", server.port))
                one.sendall(head)
                sockets.append(one)
            answered = sum(bool(one.recv(1, socket.MSG_PEEK)) for one in sockets)
            grown, there = server.memory() - watch.before, server.descriptors()
        finally:
            for one in sockets:
                one.close()
    return f"{SILENT} readers, {answered} answered, {grown // 1024 // SILENT} KiB each with {there} descriptors open; {watch.verdict()}"
