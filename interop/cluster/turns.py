"""What clients behind a load balancer have in common: turns until the driver says stop, and a new try when a connection is lost."""

import asyncio
import json
import os
import sys
import time

NAME, URL, TOKEN, FOLDER = sys.argv[1:5]
PATIENCE = 120
# How long a prompt whose answer was lost may take to show in the session before it counts as never arrived, where prompts have no ids: longer
# than another node needs to take a session over.
DOUBT = 20


def prompt(word, turn):
    """Some words, a command that writes down that it ran, more words. Every third turn is longer than a drain waits."""
    count = 130 if turn % 3 == 1 else 25

    def say(start):
        text = "".join(f"~{word}:{index} " for index in range(start, start + count))
        return {"text": text, "chunks": count, "delay_ms": 50}

    shell = {"tool": "shell", "args": {"command": f"mktemp ran-{word}-XXXXXX"}}
    return f"[[script:{json.dumps([[say(0), shell], [say(count), {'text': f'end-{word} '}]])}]]"


class Wrong(Exception):
    """What no reconnect explains."""


class Shown:
    """The text that a client shows, and that only grows."""

    def __init__(self):
        self.text = ""

    def now(self, text):
        """The whole text, told anew."""
        if not text.startswith(self.text) and not self.text.startswith(text):
            raise Wrong(f"shown before and not now: {self.text[-200:]!r}, now {text[-200:]!r}")
        if len(text) > len(self.text):
            self.text = text


async def take_turns(attempt):
    """`attempt(word, prompt, again)` does what is left of a turn; gives the session and the text of the turn."""
    report = {"client": NAME, "turns": 0, "reconnects": 0, "troubles": {}}
    texts, last, turn = [], False, 0
    while not last:
        last = os.path.exists(os.path.join(FOLDER, "stop"))
        word, began, again = f"{NAME}-{turn}", time.monotonic(), False
        while True:
            try:
                session, text = await asyncio.wait_for(attempt(word, prompt(word, turn), again), PATIENCE)
                break
            except Wrong as error:
                print(json.dumps({**report, "wrong": str(error)}), flush=True)
                raise SystemExit(1)
            except Exception as error:  # a client's errors are of any kind
                why = f"{type(error).__name__}: {error}".replace("\n", " ")[:160]
                report["troubles"][why] = report["troubles"].get(why, 0) + 1
                report["reconnects"] += 1
                if time.monotonic() - began > PATIENCE:
                    print(json.dumps({**report, "wrong": f"turn {turn} was not over in time: {why}"}), flush=True)
                    raise SystemExit(1)
                again = True
                await asyncio.sleep(0.3)
        texts.append(text)
        turn += 1
        report["turns"] += 1
    print(json.dumps({**report, "session": session, "text": "".join(texts)}), flush=True)
