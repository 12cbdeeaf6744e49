"""Drives gander in tmux, step by step, and says of each whether it passed."""

import sys
import traceback

import chat_steps  # noqa: F401: its steps count themselves among the others
import model
import server_steps  # noqa: F401
import steps
from test_home import TestHome

GANDER, CAPTURES, *ONLY = sys.argv[1:]


def main():
    unknown = set(ONLY) - set(steps.STEPS)
    if unknown:
        sys.exit(f"no such step: {', '.join(sorted(unknown))}; there are: {', '.join(steps.STEPS)}")
    port, requests = model.start()
    for name, step in steps.STEPS.items():
        if ONLY and name not in ONLY:
            continue
        home = TestHome(GANDER, CAPTURES, port)
        try:
            step(home, requests)
            print(f"pass {name}", flush=True)
        except Exception as error:  # each step says for itself what went wrong
            traceback.print_exc()
            print(f"fail {name} {str(error).splitlines()[0] if str(error) else type(error).__name__}", flush=True)
        finally:
            home.close()


main()
