"""Abuses the real server in every way this folder knows; prints `pass NAME figures` or `fail NAME reason`."""

import sys
import traceback

from gander_server import Server, Watch
from http_abuse import rapid_resets, silent_readers, slow_bodies_with_a_token, slow_requests
from tool_abuse import default_cases, limited_cases
from websocket_cases import all_cases


def attempt(name, what):
    """One result line. The figures are on a line of their own: the verdict counts names."""
    name = name.replace(" ", "_")
    try:
        figures = what()
    except Exception as error:  # noqa: BLE001 whatever goes wrong is this case's failure
        print(f"fail {name} {type(error).__name__}: {error}".replace("\n", " ")[:600], flush=True)
        if not isinstance(error, (AssertionError, ConnectionError, TimeoutError)):
            traceback.print_exc()
        return
    print(f"pass {name} {figures or ''}".rstrip(), flush=True)


def websocket(binary):
    with Server(binary) as server, Watch(server) as watch:
        for name, case in all_cases():
            attempt(f"websocket {name}", lambda case=case: case(server))
        attempt("websocket: the server afterwards", watch.verdict)


def http(binary):
    for mode in ("header", "body", "read"):
        with Server(binary) as server:
            attempt(f"slowhttptest {mode}", lambda: slow_requests(server, mode))
    for name, case in (("slow bodies with a token", slow_bodies_with_a_token), ("10,000 resets", rapid_resets)):
        with Server(binary) as server:
            attempt(name, lambda: case(server))
    with Server(binary) as server:
        attempt("2,000 silent readers", lambda: silent_readers(server))


def tools(binary):
    with Server(binary) as server:
        for name, case in default_cases(server):
            attempt(name, case)
    with Server(binary, GANDER_SANDBOX_MEMORY="256 MiB", GANDER_SANDBOX_PROCESSES="64") as server:
        for name, case in limited_cases(server):
            attempt(name, case)


def main():
    binary, *sections = sys.argv[1:]
    known = {"websocket": websocket, "http": http, "tools": tools}
    for section in sections or known:
        known[section](binary)


if __name__ == "__main__":
    main()
