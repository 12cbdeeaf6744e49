"""Drives gander with Toad (PyPI) in tmux: an answer, a permission allowed and one rejected, a cancel and the prompt after it.

Prints `pass NAME` or `fail NAME reason`. Usage: drive.py PYTHON SITE
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

python, site = sys.argv[1:]
work = Path(os.environ["GANDER_WORK"])
PATIENCE = 60
EMPTY_PROMPT = "How can I help you today?"
NEVER_ENDING = '[[script:[[{"text":"It begins"},{"text":" and goes on","delay_ms":600000}]]]]'
# What the demo writes after the word `ask`.
MADE = work / "gander-hello.txt"


def tmux(*arguments: str) -> str:
    return subprocess.run(["tmux", "-L", "gander-toad", *arguments], check=True, capture_output=True, text=True).stdout


def screen() -> str:
    # The conversation is right of a sidebar; words are broken at its edge.
    return " ".join(line.strip("▎▌▊ ") for line in tmux("capture-pane", "-p").splitlines())


def until(what: str, holds) -> None:
    end = time.time() + PATIENCE
    while not holds():
        if time.time() > end:
            raise AssertionError(f"{what}; the screen: {' '.join(screen().split())[-600:]}")
        time.sleep(0.2)


def shows(text: str) -> None:
    until(f"does not show {text!r}", lambda: text in " ".join(screen().split()))


def say(word: str) -> None:
    """Keys are lost until the prompt has the focus again, which nothing on the screen tells."""
    shows(EMPTY_PROMPT)
    end = time.time() + PATIENCE
    while EMPTY_PROMPT in screen():
        if time.time() > end:
            raise AssertionError(f"nothing can be typed; the screen: {' '.join(screen().split())[-600:]}")
        tmux("send-keys", "-l", "z")
        time.sleep(0.5)
    while EMPTY_PROMPT not in screen() and time.time() < end:
        tmux("send-keys", "BSpace")
        time.sleep(0.2)
    tmux("send-keys", "-l", word)
    until(f"{word!r} was not typed", lambda: EMPTY_PROMPT not in screen() and word[-12:] in screen())
    tmux("send-keys", "Enter")


def log() -> str:
    listed = subprocess.run(["gander", "sessions", "list", "--json"], check=True, capture_output=True, text=True).stdout
    session = json.loads(listed.splitlines()[0])["sessionId"]
    return subprocess.run(["gander", "sessions", "export", session], check=True, capture_output=True, text=True).stdout


def ended(runs: int) -> None:
    """What is typed is on the screen too, so the log says when a turn is over."""
    until(f"{runs} turns have not ended", lambda: log().count('"kind":"run_ended"') == runs)


def opens() -> None:
    command = f"exec {python} -c 'from toad.cli import main; main()' acp 'gander acp' {work}"
    tmux("new-session", "-d", "-x", "140", "-y", "50", "-e", f"PYTHONPATH={site}", command)
    shows(EMPTY_PROMPT)


def answers() -> None:
    say("hello")
    shows("scripted demo, not a language model")
    ended(1)


def allows() -> None:
    say("ask")
    shows("a Allow")
    tmux("send-keys", "a")
    ended(2)
    assert MADE.exists(), "the command did not run"


def rejects() -> None:
    MADE.unlink(missing_ok=True)
    say("ask")
    shows("r Reject")
    tmux("send-keys", "r")
    ended(3)
    assert not MADE.exists(), "a rejected command ran"


def cancelled() -> bool:
    """Toad wants the key twice within three seconds."""
    for _ in range(2):
        tmux("send-keys", "Escape")
        time.sleep(0.7)
    return "cancel_requested" in log()


def cancels() -> None:
    say(NEVER_ENDING)
    until("the turn has not begun", lambda: log().count('"kind":"run_started"') == 4)
    until("the turn is not cancelled", cancelled)
    say("hello")
    ended(5)


def main() -> None:
    for case in [opens, answers, allows, rejects, cancels]:
        try:
            case()
            print(f"pass toad_{case.__name__}", flush=True)
        except Exception as error:  # every failure is one line of the results
            print(f"fail toad_{case.__name__} {error!r}".replace("\n", " "), flush=True)
    subprocess.run(["tmux", "-L", "gander-toad", "kill-server"], check=False)


main()
