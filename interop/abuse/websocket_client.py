"""A WebSocket client that sends any frames, right and wrong ones, to the server's ACP endpoint."""

import base64
import json
import os
import socket
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


def frame(opcode, payload=b"", fin=True, reserved=0, masked=True, length=None):
    """A frame of a client. `length` announces another one than there is."""
    mask = os.urandom(4) if masked else b""
    size = len(payload) if length is None else length
    head = bytes([(0x80 if fin else 0) | reserved << 4 | opcode])
    bit = 0x80 if masked else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 65536:
        head += bytes([bit | 126]) + struct.pack(">H", size)
    else:
        head += bytes([bit | 127]) + struct.pack(">Q", size)
    if masked:
        long = (mask * (len(payload) // 4 + 1))[:len(payload)]
        payload = (int.from_bytes(payload, "big") ^ int.from_bytes(long, "big")).to_bytes(len(payload), "big") if payload else b""
    return head + mask + payload


def close_frame(code=1000, reason=b""):
    return frame(CLOSE, struct.pack(">H", code) + reason)


class WebSocket:
    """One connection, introduced."""

    def __init__(self, server, hello=True):
        self.socket = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET /acp HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nAuthorization: Bearer {server.token}\r\n\r\n").encode())
        self.unread, self.calls = b"", 0
        while b"\r\n\r\n" not in self.unread:
            self.unread += self.more()
        head, self.unread = self.unread.split(b"\r\n\r\n", 1)
        assert b" 101 " in head.split(b"\r\n")[0], head
        if hello:
            self.call("initialize", {"protocolVersion": 1})

    def more(self):
        data = self.socket.recv(1 << 16)
        if not data:
            raise ConnectionError("the connection ended without a close frame")
        return data

    def exactly(self, count):
        while len(self.unread) < count:
            self.unread += self.more()
        data, self.unread = self.unread[:count], self.unread[count:]
        return data

    def send(self, data, piece=None):
        """Writes bytes; `piece` bytes at a time."""
        for start in range(0, len(data), piece or len(data) or 1):
            self.socket.sendall(data[start:start + (piece or len(data))])

    def receive(self):
        """The next frame: its opcode and payload. A server's frame is whole, unmasked and without reserved bits."""
        first, second = self.exactly(2)
        assert first & 0xF0 == 0x80 and second & 0x80 == 0, f"no frame of a server: {first:#x} {second:#x}"
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack(">H", self.exactly(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", self.exactly(8))
        return first & 0x0F, self.exactly(length)

    def next_text(self):
        while True:
            opcode, payload = self.receive()
            if opcode == PING:
                self.send(frame(PONG, payload))
            elif opcode == CLOSE:
                raise ConnectionError(f"closed with {payload!r}")
            elif opcode == TEXT:
                return json.loads(payload)

    def request(self, method="no/such", params=None):
        """The next request as text, and its id."""
        self.calls += 1
        return json.dumps({"jsonrpc": "2.0", "id": self.calls, "method": method, "params": params or {}}, ensure_ascii=False).encode(), self.calls

    def answered(self, number):
        while True:
            message = self.next_text()
            if message.get("id") == number and "method" not in message:
                return message

    def call(self, method, params=None):
        text, number = self.request(method, params)
        self.send(frame(TEXT, text))
        return self.answered(number)

    def closed_with(self):
        """The code of the server's close frame, behind which nothing comes; None if it has no code."""
        while True:
            opcode, payload = self.receive()
            if opcode == CLOSE:
                break
        self.socket.settimeout(10)
        rest = self.unread
        try:
            while True:
                piece = self.socket.recv(1 << 16)
                if not piece:
                    break
                rest += piece
        except ConnectionResetError:
            pass
        assert not rest, f"more came after the close: {rest[:40]!r}"
        return struct.unpack(">H", payload[:2])[0] if payload else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
