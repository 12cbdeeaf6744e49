"""The case list of Autobahn's test suite against the ACP endpoint: the same categories and numbers, with JSON-RPC requests as text.

The suite itself needs Python 2.7 and an echo server. Here a text is a request, and its answer, which repeats the request's id, takes
the place of the echo. Categories 12 and 13 (compression) do not apply: the server negotiates no extension.
"""

import struct

from websocket_client import BINARY, CLOSE, PING, PONG, TEXT, WebSocket, close_frame, frame

# Octets that are UTF-8, from categories 6.2 to 6.23: they stand in a text that is otherwise a request.
VALID = ["\u03ba\u1f79\u03c3\u03bc\u03b5", "\0", "\u0080", "\u0800", "\U00010000", "\u007f", "\u07ff", "\uffff", "\U0010ffff", "\ud7ff", "\ue000",
         "\ufffd", "\ufffe", "\ufdd0", "\U0001fffe", "\U0010fffe"]
# Octets that are not.
INVALID = [b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited", b"\xf8\x88\x80\x80\x80", b"\xfc\x84\x80\x80\x80\x80",
           b"\xf7\xbf\xbf\xbf", b"\xf4\x90\x80\x80", b"\x80", b"\xbf", b"\x80\xbf", b"\x80\xbf\x80\xbf\x80\xbf", bytes(range(0x80, 0xC0)),
           b"\xc0 \xc1 \xc2 ", b"\xe0 \xe1 ", b"\xf0 \xf1 ", b"\xf8 \xf9 ", b"\xfc ", b"\xc0", b"\xe0\x80", b"\xf0\x80\x80", b"\xf8\x80\x80\x80",
           b"\xdf", b"\xef\xbf", b"\xf7\xbf\xbf", b"\xfe", b"\xff", b"\xfe\xfe\xff\xff", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf",
           b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf", b"\xc0\x80", b"\xe0\x80\x80", b"\xf0\x80\x80\x80", b"\xed\xa0\x80",
           b"\xed\xad\xbf", b"\xed\xae\x80", b"\xed\xaf\xbf", b"\xed\xb0\x80", b"\xed\xbe\x80", b"\xed\xbf\xbf", b"\xed\xa0\x80\xed\xb0\x80"]


def fine(*steps, piece=None):
    """After these frames the connection still answers, and a close is answered with its own code."""
    def run(server):
        with WebSocket(server) as socket:
            for step in steps:
                if callable(step):
                    step(socket)
                else:
                    socket.send(step, piece)
            assert "error" in socket.call("no/such"), "no answer"
            socket.send(close_frame())
            assert socket.closed_with() == 1000
    return run


def broken(codes, *steps, piece=None):
    """These frames end the connection with one of these codes, and nothing else comes."""
    def run(server):
        with WebSocket(server) as socket:
            try:
                for step in steps:
                    socket.send(step(socket) if callable(step) else step, piece)
            except ConnectionError:
                pass  # it was closed before all was written
            found = socket.closed_with()
            assert found in codes, f"closed with {found}, not {codes}"
    return run


def text_of(size, opcode=TEXT, fragment=None, piece=None, filler="*"):
    """A request of this size, in fragments of this size, written so many bytes at a time; its answer comes."""
    def step(socket):
        text, number = socket.request("no/such", {"x": ""})
        text = text.replace(b'""', b'"' + (filler.encode() * (size // len(filler.encode()) + 1))[:max(0, size - len(text))] + b'"')
        parts = [text[at:at + (fragment or len(text))] for at in range(0, len(text), fragment or len(text))]
        data = b"".join(frame(opcode if at == 0 else 0, part, fin=at == len(parts) - 1) for at, part in enumerate(parts))
        socket.send(data, piece)
        socket.answered(number)
    return step


def ping(payload, piece=None, answered=True):
    def step(socket):
        socket.send(frame(PING, payload), piece)
        while answered:
            opcode, said = socket.receive()
            if opcode == PONG:
                assert said == payload, f"another pong: {said!r}"
                break
    return step


def in_pieces(first, middle=b"", last_opcode=0):
    """A request in two fragments with other frames between them."""
    def step(socket):
        text, number = socket.request()
        socket.send(frame(first, text[:10], fin=False) + middle + frame(last_opcode, text[10:]))
        socket.answered(number)
    return step


def many_pings(socket):
    """Autobahn wants ten pongs; RFC 6455, 5.5.3 allows to answer the latest alone, which must come."""
    for number in range(10):
        socket.send(frame(PING, b"payload-%d" % number))
    while True:
        opcode, said = socket.receive()
        if opcode == PONG and said == b"payload-9":
            return


def framing_cases():
    sizes = [0, 125, 126, 127, 128, 65535, 65536, 65536]
    for at, size in enumerate(sizes, 1):
        piece = 997 if at == 8 else None
        yield f"1.1.{at}", fine(frame(TEXT)) if size == 0 else fine(text_of(size, piece=piece))
        yield f"1.2.{at}", fine(frame(BINARY)) if size == 0 else fine(frame(BINARY, b"\xfe" * size), piece=piece)


def ping_cases():
    for at, payload in enumerate([b"", b"Hello, world!", b"\x00\xff\xfe\xfd\xfc\xfb\x00\xff", b"\xfe" * 125], 1):
        yield f"2.{at}", fine(ping(payload))
    yield "2.5", broken([1002], frame(PING, b"\xfe" * 126))
    yield "2.6", fine(ping(b"\xfe" * 125, piece=1))
    yield "2.7", fine(frame(PONG))
    yield "2.8", fine(frame(PONG, b"unsolicited"))
    yield "2.9", fine(frame(PONG, b"unsolicited"), ping(b"ping payload"))
    yield "2.10", fine(many_pings)
    yield "2.11", fine(*[ping(b"payload-%d" % number, piece=1) for number in range(10)])


def reserved_cases():
    for bits in range(1, 8):
        opcode = {5: BINARY, 6: PING, 7: CLOSE}.get(bits, TEXT)
        yield f"3.{bits}", broken([1002], frame(opcode, b"x" if opcode != CLOSE else b"", reserved=bits))


def opcode_cases():
    for group, opcodes in (("4.1", [3, 4, 5, 6, 7]), ("4.2", [11, 12, 13, 14, 15])):
        for at, opcode in enumerate(opcodes, 1):
            yield f"{group}.{at}", broken([1002], frame(opcode, b"" if at % 2 else b"reserved opcode payload"))
    yield "4.x unmasked", broken([1002], frame(TEXT, b"{}", masked=False))


def fragmentation_cases():
    yield "5.1", broken([1002], frame(PING, b"fragment1", fin=False))
    yield "5.2", broken([1002], frame(PONG, b"fragment1", fin=False))
    yield "5.3", fine(in_pieces(TEXT))
    yield "5.4", fine(text_of(400, fragment=40))
    yield "5.5", fine(text_of(400, fragment=40, piece=1))
    yield "5.6", fine(in_pieces(TEXT, frame(PING, b"between")))
    yield "5.7", fine(in_pieces(TEXT, frame(PING, b"between") + frame(PONG, b"x")))
    yield "5.8", fine(text_of(200, fragment=1))
    for at in range(9, 15):
        first = frame(0, b"non-continuation payload", fin=at % 2 == 1)
        yield f"5.{at}", broken([1002], first + frame(TEXT, b"{}"), piece=[None, 7, 1][at % 3])
    yield "5.15", broken([1002], frame(TEXT, b"{", fin=False) + frame(0, b"}") + frame(0, b"x", fin=False))
    yield "5.16", broken([1002], frame(0, b"f1", fin=False) + frame(TEXT, b"f2", fin=False))
    yield "5.17", broken([1002], frame(0, b"f1") + frame(TEXT, b"f2", fin=False))
    yield "5.18", broken([1002], frame(TEXT, b"f1", fin=False) + frame(TEXT, b"f2"))
    yield "5.19", fine(in_pieces(TEXT, frame(PING, b"pongme 1!") + frame(0, b"", fin=False) + frame(PING, b"pongme 2!")))
    yield "5.20", fine(in_pieces(TEXT, b"".join(frame(0, b"", fin=False) for _ in range(100))))


def utf8_cases():
    for at, text in enumerate(VALID, 1):
        def step(socket, text=text):
            request, number = socket.request("no/such", {"x": text})
            socket.send(b"".join(frame(TEXT if at == 0 else 0, request[at:at + 1], fin=at == len(request) - 1) for at in range(len(request))))
            socket.answered(number)
        yield f"6.valid.{at}", fine(step)
    for at, octets in enumerate(INVALID, 1):
        yield f"6.invalid.{at}", broken([1007], frame(TEXT, b'{"x":"' + octets + b'"}'))
        half = len(octets) // 2
        yield f"6.invalid.{at}.fragments", broken([1007], frame(TEXT, octets[:half], fin=False) + frame(0, octets[half:]))


def close_cases():
    yield "7.1.1", fine(text_of(50))
    yield "7.1.2", broken([1000], close_frame() + close_frame())
    yield "7.1.3", broken([1000], close_frame() + frame(PING))
    yield "7.1.4", broken([1000], close_frame() + frame(TEXT, b"{}"))
    yield "7.1.5", broken([1000], frame(TEXT, b"{", fin=False) + close_frame() + frame(0, b"}"))
    yield "7.1.6", broken([1000], frame(TEXT, b" " * 262144) + close_frame() + frame(PING))
    yield "7.3.1", broken([None, 1000], frame(CLOSE))
    yield "7.3.2", broken([1002], frame(CLOSE, b"a"))
    yield "7.3.3", broken([1000], close_frame())
    yield "7.3.4", broken([1000], close_frame(reason=b"Hello World!"))
    yield "7.3.5", broken([1000], close_frame(reason=b"*" * 123))
    yield "7.3.6", broken([1002], close_frame(reason=b"*" * 124))
    yield "7.5.1", broken([1002, 1007], close_frame(reason=b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80"))
    for at, code in enumerate([1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999], 1):
        yield f"7.7.{at}", broken([code], close_frame(code))
    for at, code in enumerate([0, 999, 1004, 1005, 1006, 1016, 1100, 2000, 2999], 1):
        yield f"7.9.{at}", broken([1002], close_frame(code))
    yield "7.13.1", broken([1002], close_frame(5000))
    yield "7.13.2", broken([1002], frame(CLOSE, struct.pack(">H", 65535)))


def limit_cases():
    for at, size in enumerate([64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20, 15 << 20], 1):
        yield f"9.1.{at}", fine(text_of(size))
        yield f"9.2.{at}", fine(text_of(size, opcode=BINARY))
    for at, fragment in enumerate([64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10], 1):
        yield f"9.3.{at}", fine(text_of(1 << 20, fragment=fragment))
        yield f"9.5.{at}", fine(text_of(1 << 20, piece=max(fragment, 512)))
    for at, size in enumerate([0, 16, 64, 256, 1024, 4096], 1):
        yield f"9.7.{at}", fine(*[text_of(size) for _ in range(200)])
    yield "9.over the limit", broken([1009], frame(TEXT, length=17 << 20))
    yield "9.over the limit in fragments", broken([1009], *[frame(TEXT if at == 0 else 0, b"x" * (1 << 20), fin=False) for at in range(17)])
    yield "9.a length that is none", broken([1002], bytes([0x81, 0xFF]) + b"\xff" * 8 + b"mask")
    yield "9.a long form of a short length", broken([1002], bytes([0x81, 0xFE, 0, 5]) + b"maskhello")
    yield "10.1.1", fine(text_of(65536, fragment=1300))


def all_cases():
    for cases in (framing_cases, ping_cases, reserved_cases, opcode_cases, fragmentation_cases, utf8_cases, close_cases, limit_cases):
        yield from cases()
