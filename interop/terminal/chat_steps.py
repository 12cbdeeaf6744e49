"""The chat at a terminal: what a person types, and what stands on the screen and in the scrollback."""

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

from steps import step


def opened(home, name="one", command="gander chat", columns=100, rows=30, **options):
    """A terminal in which the chat waits for the first prompt."""
    one = home.terminal(name, columns=columns, rows=rows, **options)
    one.run(command)
    one.wait(r"mock/mock · ask")
    return one


def session_of(home):
    return json.loads(home.gander_run("sessions", "list", "--json").stdout.splitlines()[0])["sessionId"]


def leave(one):
    one.press("C-d")
    return one.ended()


def wait_until(holds, patience=30):
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < patience, "waited in vain"
        time.sleep(0.05)


def resize(home, name, columns, rows):
    home.tmux("resize-window", "-t", name, "-x", str(columns), "-y", str(rows))


@step
def chat_streams_markdown(home, _):
    one = home.terminal("one", columns=100, rows=30)
    one.run("gander")
    one.wait(r"mock/mock · ask")
    one.type("markdown")
    one.wait(r"waiting for mock/mock")
    one.keep("20-chat-streams")
    shown = one.wait(r"(?s)A title\n\nSome bold text and code\.\n\n• one\n• two\n\n +rust\n +fn main\(\) \{\}\n\nname +value\n─+ +─+\na +1\n.*tokens in").string
    assert "**" not in shown and "```" not in shown, shown
    colours = one.colours()
    assert "\x1b[1mbold" in colours and "\x1b[36mcode" in colours, colours
    one.keep("20-chat-markdown")
    assert "Come back: gander chat --session" in leave(one)


@step
def chat_asks_and_takes_a_key(home, _):
    one = opened(home)
    one.type("edit")
    one.wait(r"\? Allow edit of calc.py\?\n\s+calc.py\n\s+- +return a - b\n\s+\+ +return a \+ b\n\s+1\) Allow \(y\)")
    one.keep("21-chat-question")
    one.press("?")
    one.wait("reject it, and tell the model why")
    one.press("y")
    one.wait(r"→ Allow\n(.*\n)*.*✓ changed calc.py: \+1 -1 lines")
    one.wait("edited; the tool said")
    assert "return a + b" in (home.work / "calc.py").read_text()
    one.type("shell")
    one.wait(r"\? Run this command\?\n\s+\$ touch made.txt")
    one.type("rnot on main")
    one.wait("They say: not on main")
    one.keep("21-chat-answered")
    assert not (home.work / "made.txt").exists()
    # Answered in another terminal, the question is gone here.
    one.type("shell please")
    one.wait(r"\$ touch made.txt\n\s+1\) Allow")
    two = home.terminal("two")
    two.run("gander watch")
    two.wait(r"\] >$")
    two.type("y")
    one.wait("answered by another client")
    one.wait(r"(?s)answered by another client.*ran it; the tool said")
    assert (home.work / "made.txt").exists()
    leave(one)


@step
def chat_cancels_then_leaves(home, _):
    one = opened(home)
    one.type("count")
    one.wait(r"w3 w4")
    one.press("C-c")
    one.wait(r"cancelling; ctrl-c again leaves")
    one.wait(r"(?m)^cancelled")
    one.keep("22-chat-cancelled")
    one.press("C-c")
    one.wait("ctrl-c again leaves *$")
    one.press("C-c")
    one.ended()
    assert "w40" not in home.gander_run("sessions", "show", session_of(home)).stdout


@step
def chat_survives_resize_and_suspend(home, _):
    one = opened(home, columns=100)
    one.type("hello")
    one.wait("you said: hello")
    one.type("a draft of some length that has to be wrapped when the terminal becomes narrow", enter=False)
    for columns, rows in ((50, 20), (120, 35), (60, 24)):
        resize(home, "one", columns, rows)
        one.wait(r"(?s)› a draft of some length.*/help|› a draft of some length.*\n.*…")
    one.wait(r"› a draft of some length that has to be wrapped when")
    shown = one.screen()
    one.keep("23-chat-resized")
    assert len(re.findall("a draft of some length", shown)) == 1, shown
    assert len(re.findall("you said: hello", shown)) == 1, shown
    one.press("C-z")
    one.wait(r"Stopped")
    one.type("echo in the shell")
    one.wait(r"\nin the shell")
    one.type("fg")
    one.wait(r"(?s)in the shell.*› a draft of some length")
    one.keep("23-chat-back")
    one.press("C-u")
    one.type("again")
    one.wait("you said: again")
    one.press("C-d")
    one.wait("Come back: gander chat")


@step
def chat_at_sixty_columns(home, _):
    one = opened(home, columns=60, rows=24)
    one.type("markdown")
    one.wait("tokens in")
    one.type("edit")
    one.wait(r"1\) Allow \(y\)")
    one.keep("24-chat-60-columns")
    widest = max(len(line) for line in home.tmux("capture-pane", "-p", "-t", "one").splitlines())
    assert widest <= 60, widest
    one.press("n")
    one.wait("edited; the tool said")
    leave(one)


@step
def chat_outlives_the_server(home, _):
    one = opened(home)
    one.type("count")
    one.wait(r"w5 w6")
    for pid in home.server_pids():
        os.kill(pid, signal.SIGKILL)
    one.wait(r"! Lost the server. The turn is saved and resumes; reconnecting")
    one.wait(r"reconnected")
    one.keep("25-chat-reconnected")
    one.wait(r"(?s)reconnected.*w40", patience=60)
    one.wait(r"(?s)reconnected.*w40\n\n›")
    shown = one.screen()
    one.keep("25-chat-resumed")
    words = lambda text: re.findall(r"\bw\d+\b", text)
    logged = home.gander_run("sessions", "show", session_of(home)).stdout
    assert words(shown) == words(logged), f"the screen has {words(shown)}, the log has {words(logged)}"
    assert len(re.findall(r"(?m)^› count", shown)) == 1, shown
    one.type("hello again")
    one.wait("you said: hello again")
    leave(one)


@step
def chat_in_plain_lines(home, requests):
    one = home.terminal("one")
    one.run("gander chat --plain 2>&1 | tee plain.txt")
    assert "a chat needs a terminal" in one.ended(0), "a pipe is no terminal"
    one.run("script -q -c 'gander chat --plain' plain.txt")
    one.wait(r"(?m)^> *$")
    one.type("edit")
    one.wait(r"\[y/n/a/\?\] >")
    one.type("y")
    one.wait(r"edited; the tool said")
    one.wait(r"(?m)^> *$")
    one.type("/model")
    one.wait(r"\* mock/mock")
    before = len(requests)
    one.type("count")
    # A line is printed when it is whole: that the turn runs is known by the model's call.
    wait_until(lambda: len(requests) > before)
    one.press("C-c")
    one.wait(r"(?m)^cancelled")
    one.keep("26-chat-plain")
    assert "› " not in one.screen(), "what was typed is not said again"
    one.wait(r"(?m)^> *$")
    one.type("/quit")
    one.ended()
    raw = (home.work / "plain.txt").read_bytes()
    assert b"\x1b" not in raw, "no escape sequence at all"
    lines = raw.replace(b"\r\n", b"\n")
    assert b"\r" not in lines and b"\x08" not in lines, "the cursor never goes back"


@step
def chat_without_colours(home, _):
    one = opened(home, environment={"NO_COLOR": "1"})
    one.type("markdown")
    one.wait("tokens in")
    one.type("edit")
    one.wait(r"1\) Allow \(y\)")
    shown = one.colours()
    one.keep("27-chat-no-color")
    assert not re.search(r"\x1b\[[0-9;]*m", shown.split("gander chat")[-1].replace("\x1b[39m", "")), shown
    assert "`code`" in shown and "bold" in shown
    one.press("n")
    one.wait("edited; the tool said")
    leave(one)


@step
def chat_completes_remembers_and_chooses(home, _):
    (home.work / "notes").mkdir()
    (home.work / "notes" / "milk.txt").write_text("remember the milk\n")
    one = opened(home)
    one.type("/mo", enter=False)
    one.wait(r"▸ /mode .*\n +/model +Model: mock/mock")
    one.keep("28-chat-commands")
    one.press("Down", "Tab", "Enter")
    one.wait(r"▸ mock/mock")
    one.keep("28-chat-models")
    one.type("tiny", enter=False)
    one.wait(r"▸ demo/tiny")
    one.press("Enter")
    one.wait(r"model is now demo/tiny")
    one.type("/model mock/mock")
    one.wait(r"model is now mock/mock")
    one.type("/agent")
    one.wait(r"Agent:.*\n▸ Gander +gander .*\n +\S.* coding ")
    one.keep("28-chat-agents")
    one.type("coding", enter=False)
    one.press("Enter")
    one.wait(r"mode is now backend")
    one.type("/agent gander")
    one.wait(r"mode is now assistant")
    one.type("what is in @milk", enter=False)
    one.wait(r"▸ notes/milk.txt")
    one.keep("28-chat-files")
    one.press("Tab")
    one.wait(r"› what is in @notes/milk.txt")
    one.press("M-Enter")
    one.type("and why", enter=False)
    one.wait(r"› what is in @notes/milk.txt *\n +and why")
    one.press("Enter")
    one.wait(r"you said: what is in @notes/milk.txt")
    one.press("Up")
    one.wait(r"(?s)tokens in.*› what is in @notes/milk.txt *\n +and why")
    one.press("C-c")
    first = session_of(home)
    one.type("/new")
    one.type("a second session")
    one.wait("you said: a second session")
    one.type("/sessions")
    one.wait(r"▸ a second session")
    one.type("milk", enter=False)
    one.wait(r"▸ what is in @notes")
    one.keep("28-chat-sessions")
    one.press("Enter")
    one.wait(r"(?s)you said: a second session.*you said: what is in @notes/milk.txt")
    assert first in leave(one)
    assert "what is in" in (home.root / "data" / "chat_history").read_text()
    assert oct((home.root / "data" / "chat_history").stat().st_mode & 0o777) == "0o600"


@step
def chat_fills_in_a_form(home, _):
    server = Path(__file__).with_name("form_server.py")
    # The sandbox shows toolchains in the home of whoever runs gander, and this home is new: the system's Python.
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    added = home.gander_run("extensions", "add", "forms", "--", python, str(server))
    assert added.returncode == 0, added
    one = opened(home)
    one.type("form")
    one.wait(r"1\) Allow")
    one.press("y")
    one.wait(r"\? .*Who comes\?\n +1 of 3: Your name\n +at most 40 characters\n›")
    one.keep("31-chat-form")
    one.type("Ada")
    one.wait(r"2 of 3: Seats\n +a number, 1 to 8\n›")
    one.type("many")
    one.wait("not a whole number")
    one.press("C-u")
    one.type("30")
    one.wait("must be 1 to 8")
    one.press("C-u")
    one.type("3")
    one.wait(r"3 of 3: .*\n +an e-mail address\n›")
    one.type("")
    one.wait("E-mail is required")
    one.type("ada")
    one.wait("not an e-mail address")
    one.keep("31-chat-form-wrong")
    one.press("C-u")
    one.type("ada@example.org")
    one.wait(r'booked; the tool said: .*"name": ?"Ada", ?"seats": ?3')
    leave(one)


@step
def chat_attaches_by_address(home, _):
    two = home.terminal("two")
    two.run("gander serve --listen 127.0.0.1:0")
    base = two.wait(r"listening on (http://\S+)").group(1)
    one = opened(home, command=f"gander chat --attach {base}")
    one.type("shell")
    one.wait(r"\$ touch made.txt\n\s+1\) Allow")
    one.press("y")
    one.wait("ran it; the tool said")
    one.keep("29-chat-attached")
    leave(one)
    wrong = home.root / "wrong"
    wrong.write_text("not-a-token\n")
    one.run(f"gander chat --attach {base} --token-file {wrong}")
    assert "401" in one.ended(1)
    two.press("C-c")
    two.ended()


@step
def without_a_terminal_gander_alone_says_what_it_can(home, _):
    alone = home.gander_run()
    assert alone.returncode == 2 and "Usage: gander" in alone.stderr + alone.stdout, alone
    refused = home.gander_run("chat")
    assert refused.returncode == 2 and "a chat needs a terminal" in refused.stderr, refused


@step
def inspect_shows_the_log_beside_every_protocol(home, _):
    one, two = opened(home), home.terminal("two", columns=120)
    one.type("hello")
    one.wait("you said: hello")
    session = session_of(home)
    two.run(f"gander inspect --follow {session[:18]}")
    two.wait(r"\d+ +\d+\.\d+s +\+\d+\.\d+s +run_ended")
    two.wait(r"acp_rest run\.completed")
    one.type("shell")
    one.wait(r"1\) Allow")
    two.wait(r"question_asked(.*\n)+ +acp session/request_permission")
    two.keep("30-inspect-follow")
    one.press("y")
    two.wait(r"tool_done(.*\n)+.*run_ended")
    two.press("C-c")
    two.ended()
    leave(one)
    entries = [json.loads(line) for line in home.gander_run("inspect", "--json", session).stdout.splitlines()]
    numbers = [entry["entry"]["seq"] for entry in entries]
    assert numbers == sorted(set(numbers)) and entries[-1]["entry"]["event"]["kind"] == "run_ended", numbers
    assert all(set(entry["projections"]) == {"acp", "acp_rest", "a2a", "adk", "goose"} for entry in entries)
    # As it happened, only faster: the same lines, and a speed that is none is refused.
    at_once = home.gander_run("inspect", session).stdout
    assert " commit " in at_once, at_once
    assert home.gander_run("inspect", "--replay", "1000x", session).stdout == at_once
    refused = home.gander_run("inspect", "--replay", "fast", session)
    assert refused.returncode == 2 and "between 0.01x and 10000x" in refused.stderr, refused
    only = home.gander_run("inspect", "--protocol", "a2a", "--after", "2", session).stdout
    assert "acp_rest" not in only and " a2a " in only and "session_created" not in only, only
