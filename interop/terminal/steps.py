"""What a person does in the first hour, and what they must see."""

import json
import os
import re
import signal
import time
import urllib.error
import urllib.request

STEPS = {}


def step(function):
    STEPS[function.__name__.replace("_", "-")] = function
    return function


@step
def parallel_questions_one_at_a_time(home, _):
    one = home.terminal("one")
    one.run("gander run parallel")
    one.wait(r"\? Run this command\?\n\s+\$ touch one.txt")
    one.wait(r"\[y/n/a/\?\] >$")
    one.keep("01-parallel-first")
    assert "touch two.txt" not in one.screen().split("Run this command?")[1]
    one.type("y")
    one.wait(r"\? Run this command\?\n\s+\$ touch two.txt")
    one.type("n")
    shown = one.ended()
    one.keep("01-parallel")
    assert (home.work / "one.txt").exists() and not (home.work / "two.txt").exists()
    assert "both are done" in shown


@step
def sub_agents_say_their_name(home, _):
    one = home.terminal("one")
    one.run("gander run delegate")
    one.wait(r"\? tests: Run this command\?\n\s+\$ touch made.txt")
    one.keep("01-sub-agent")
    one.type("y")
    one.ended()
    assert (home.work / "made.txt").exists()


@step
def an_edit_shows_its_diff_first(home, _):
    one = home.terminal("one", columns=60)
    one.run("gander run edit")
    one.wait(r"\? Allow edit of calc.py\?\n\s+calc.py\n\s+- +return a - b\n\s+\+ +return a \+ b")
    one.keep("09-edit-60-columns")
    one.type("x")
    one.wait(r"Enter y, n, 1–\d, or \? for help:")
    one.type("?")
    one.wait("words +reject it, and tell the model why")
    one.type("yes")
    shown = one.ended()
    one.keep("09-edit-done")
    assert "return a + b" in (home.work / "calc.py").read_text()
    assert re.search(r"✓ changed calc.py: \+1 -1 lines", shown), shown


@step
def words_reject_and_the_model_is_told(home, _):
    one = home.terminal("one")
    one.run("gander run shell")
    one.wait(r"\] >$")
    one.type("not on main, please")
    shown = one.ended()
    one.keep("09-reason")
    assert "They say: not on main, please" in shown and not (home.work / "made.txt").exists()


@step
def nobody_at_the_terminal_is_not_a_no(home, _):
    done = home.gander_run("run", "shell")
    assert "nobody could be asked" in done.stderr, done
    assert "the tool said: nobody could be asked" in done.stdout, done


@step
def output_exit_code_and_time(home, _):
    one = home.terminal("one")
    one.run("gander run output")
    one.wait(r"\] >$")
    one.type("y")
    one.wait(r"│ line 10\n")
    one.wait(r"running for n in .* · \d s")
    one.keep("07-output-live")
    shown = one.ended()
    one.keep("07-output")
    assert re.search(r"│ … 15 more lines\n.*│ line 26\n", shown), shown
    assert "│ line 40" in shown and "✗ exit code 3" in shown
    session = re.search(r"session ([0-9a-f-]{36})", shown).group(1)
    replayed = home.gander_run("sessions", "show", session).stdout
    assert "✗ exit code 3" in replayed and "│ line 40" in replayed, replayed


@step
def a_spinner_says_what_it_waits_for(home, _):
    one = home.terminal("one")
    one.run("gander run slow")
    one.wait(r". waiting for .* · [2-9] s")
    one.keep("08-spinner")
    shown = one.ended()
    assert "waiting for" not in shown, "the spinner is gone"
    piped = home.gander_run("run", "slow again")
    assert "waiting" not in piped.stderr and "\r" not in piped.stderr, piped


@step
def retries_are_told(home, _):
    one = home.terminal("one")
    one.run("gander run retry")
    one.wait(r"! mock returned HTTP 500: .*: retrying in [\d.]+ s \(attempt 2 of \d\)")
    one.wait(r"! rate limited by mock \(HTTP 429\): .*: retrying in")
    shown = one.ended()
    one.keep("08-retries")
    assert "at last" in shown
    one.run("gander run broken")
    shown = one.ended(1, patience=60)
    assert "failed: mock returned HTTP 500" in shown, shown


@step
def back_into_a_running_turn(home, _):
    one, two = home.terminal("one"), home.terminal("two")
    one.run("gander run slow")
    one.wait("waiting for")
    listed = home.gander_run("sessions", "list").stdout
    assert re.search(r"ID +STATE +UPDATED +TITLE +FOLDER\n[0-9a-f-]{8,} +running ", listed), listed
    short = listed.splitlines()[1].split()[0]
    two.run(f"gander run --session {short}")
    two.wait("› slow")
    two.keep("04-attached")
    both = one.ended(), two.ended()
    assert all("a slow" in shown for shown in both), both
    two.run(f"gander run --session {short}")
    assert "No turn is running" in two.ended()


@step
def a_prompt_for_a_busy_session(home, _):
    one, two = home.terminal("one"), home.terminal("two")
    one.run("gander run slow")
    one.wait("waiting for")
    short = json.loads(home.gander_run("sessions", "list", "--json").stdout.splitlines()[0])["sessionId"][:18]
    refused = home.gander_run("run", "--session", short, "and then?")
    assert refused.returncode == 1 and "--if-busy steer, queue or wait" in refused.stderr, refused
    two.run(f"gander run --session {short} 'hello there'")
    two.wait(r"\? A turn is running in this session.\n\s+s\) steer")
    two.keep("04-busy")
    two.type("q")
    shown = two.ended()
    two.keep("04-queued")
    assert "you said: hello there" in shown, shown
    one.ended()


@step
def watch_and_cancel(home, _):
    one, two = home.terminal("one"), home.terminal("two")
    two.run("gander watch")
    two.wait("Waiting for questions")
    one.run("gander run shell")
    one.wait(r"\] >$")
    assert "waiting for you" in home.gander_run("sessions", "list").stdout
    two.wait(r"\? Run this command\?\n\s+\$ touch made.txt")
    two.keep("04-watch")
    two.type("y")
    shown = one.ended()
    assert "answered by another client" in shown and (home.work / "made.txt").exists(), shown
    two.press("C-c")
    two.ended()
    one.run("gander run slow")
    one.wait("waiting for")
    cancelled = home.gander_run("cancel")
    assert cancelled.returncode == 0 and "cancelled the turn" in cancelled.stderr, cancelled
    one.ended(130)
    one.keep("04-cancelled")


@step
def always_is_shown_listed_and_revoked(home, _):
    one = home.terminal("one")
    one.run("gander run shell")
    one.wait(r"2\) Always allow `touch made.txt`")
    one.keep("09-always")
    one.type("2")
    one.ended()
    listed = home.gander_run("grants", "list").stdout
    assert "touch made.txt" in listed and str(home.work) in listed, listed
    one.run("gander run shell")
    assert "Run this command?" not in one.ended()
    number = listed.splitlines()[1].split()[0]
    assert home.gander_run("grants", "revoke", number).returncode == 0
    one.run("gander run shell")
    one.wait(r"\] >$")
    one.type("n")
    one.ended()


@step
def stdin_files_and_pictures(home, requests):
    (home.work / "notes.txt").write_text("remember the milk\n")
    (home.work / "dot.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 40)
    piped = home.gander_run("run", "review this", stdin="def f(): pass\n")
    assert "you said: review this" in piped.stdout and "def f(): pass" in piped.stdout, piped
    alone = home.gander_run("run", stdin="only stdin\n")
    assert "you said: only stdin" in alone.stdout, alone
    home.gander_run("run", "--file", "notes.txt", "what is in it?")
    assert "remember the milk" in json.dumps(requests[-2:]), requests[-1]
    bad = home.gander_run("run", "--image", "notes.txt", "look")
    assert bad.returncode == 1 and "not an image" in bad.stderr, bad
    folder = home.root / "other"
    folder.mkdir()
    home.gander_run("run", "--folder", str(folder), "hello")
    assert str(folder) in home.gander_run("sessions", "list").stdout


@step
def a_server_that_dies(home, _):
    one = home.terminal("one")
    one.run("gander run slow")
    one.wait("waiting for")
    for pid in home.server_pids():
        os.kill(pid, signal.SIGKILL)
    one.wait(r"! Lost the server. The turn is saved and resumes; reconnecting")
    one.wait("reconnected")
    shown = one.ended(patience=60)
    one.keep("11-reconnected")
    assert "a slow" in shown, shown


@step
def errors_in_plain_words(home, _):
    unknown = home.gander_run("run", "--mode", "nosuch", "hi")
    assert unknown.returncode == 2 and "unknown mode 'nosuch', available: " in unknown.stderr, unknown
    nothing = home.gander_run("run")
    assert nothing.returncode == 2 and "nothing to do: give a prompt" in nothing.stderr, nothing
    wrong = home.gander_run("sessions", "show", "0000000000")
    assert wrong.returncode == 1 and "-32" not in wrong.stderr, wrong
    events = [json.loads(line) for line in home.gander_run("run", "--json", "hi").stdout.splitlines()]
    assert events[-1]["usage"]["inputTokens"] == 1200, events[-1]
    one = home.terminal("one")
    one.run("gander run hello")
    shown = one.ended()
    one.keep("12-usage")
    assert re.search(r"1,200 tokens in, 34 out · session cost \$0.0013 · \d s · session", shown), shown
    session = re.search(r"session ([0-9a-f-]{36})", shown).group(1)
    assert "tokens in" in home.gander_run("sessions", "show", session).stderr


@step
def what_can_be_chosen(home, _):
    for command, expected in (("models", r"\* +mock/mock"), ("modes", r"(?m)^backend +"), ("agents", r"(?m)^AGENT +MODES")):
        done = home.gander_run(command)
        assert done.returncode == 0 and re.search(expected, done.stdout), done
    one = home.terminal("one", columns=60)
    one.run("gander modes")
    one.ended()
    one.keep("14-modes-60-columns")


@step
def setup_tests_a_key_and_keeps_it(home, _):
    settings = home.root / ".config" / "gander" / "gander.toml"
    text = settings.read_text().replace('[model]\ndefault = "mock/mock"\n', "").replace("key_variables = []", 'key_variables = ["MOCK_API_KEY"]')
    settings.write_text(text)
    one = home.terminal("one")
    one.run("gander setup")
    one.wait(r"Enter 1–\d+ or a name:")
    one.type("mock")
    one.wait(r"Paste your Mock API key")
    one.type("wrong-key")
    refused = one.ended(code=1)
    one.keep("14-setup-refused")
    assert "nothing was saved" in refused and "401" in refused and "wrong-key" not in refused, refused
    # As an editor starts it that was offered it as a login.
    one.run("gander acp setup")
    one.wait(r"Enter 1–\d+ or a name:")
    one.type("mock")
    one.wait(r"Paste your Mock API key")
    one.type("right-key")
    shown = one.ended()
    one.keep("14-setup")
    assert "mock/mock answers. It is the default from now on." in shown and "right-key" not in shown, shown
    kept = home.root / "data" / "keys.json"
    assert kept.stat().st_mode & 0o777 == 0o600, oct(kept.stat().st_mode)
    done = home.gander_run("run", "hello")
    assert done.returncode == 0 and "you said: hello" in done.stdout, done
    assert re.search(r"\* +mock/mock", home.gander_run("models").stdout)
    scripted = home.gander_run("setup")
    assert scripted.returncode == 2 and "run it in a terminal" in scripted.stderr, scripted


@step
def colours_can_be_switched_off(home, _):
    one = home.terminal("one", environment={"NO_COLOR": "1"})
    one.run("gander run edit")
    one.wait(r"\] >$")
    shown = one.colours()
    one.keep("00-no-color")
    assert "\x1b[3" not in shown.split("gander run edit")[-1], shown
    one.type("n")
    one.ended()


def post(base, path, token, body, **headers):
    """Status and body of a request, as any HTTP client sends it."""
    request = urllib.request.Request(base + path, json.dumps(body).encode(), method="POST")
    for name, value in {"content-type": "application/json", "authorization": f"Bearer {token}", **headers}.items():
        request.add_header(name.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.loads(response.read() or b"null")
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


@step
def rest_clients_choose_the_workspace_and_read_plain_errors(home, _):
    one = home.terminal("one")
    one.run("gander serve --listen 127.0.0.1:0")
    base = one.wait(r"listening on (http://\S+)").group(1)
    token = home.gander_run("token").stdout.strip()
    folder = home.root / "project"
    folder.mkdir()
    status, made = post(base, "/apps/gander/users/me/sessions", token, {"state": {"gander_workspace": str(folder)}})
    assert status == 200, made
    message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "hello"}], "metadata": {"gander/workspace": str(folder)}}
    send = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    status, sent = post(base, "/a2a", token, send, A2A_Version="1.0")
    assert status == 200 and "result" in sent, sent
    folders = [json.loads(line)["cwd"] for line in home.gander_run("sessions", "list", "--json").stdout.splitlines()]
    assert folders == [str(folder)] * 2, folders
    status, refused = post(base, "/apps/gander/users/me/sessions", token, {"state": {"gander_workspace": str(home.root / "data")}})
    assert status == 400 and "gander_workspace cannot be used" in json.dumps(refused), refused
    status, wrong = post(base, "/a2a", "not-a-token", send, A2A_Version="1.0")
    assert status == 401 and "invalid token" in json.dumps(wrong), wrong
    status, method = post(base, "/gander/status", token, {})
    assert status == 405 and "allowed: GET" in json.dumps(method), method
    one.press("C-c")
    one.ended()


@step
def deleted_sessions_are_gone(home, _):
    home.gander_run("run", "the-planted-word")
    one = home.terminal("one")
    one.run("gander sessions prune --older-than 0s --dry-run")
    shown = one.ended()
    assert re.search(r"ID +UPDATED +SIZE +TITLE\n[0-9a-f-]{8,} .* [KM]?i?B +.*the-planted-word", shown), shown
    assert re.search(r"Would delete 1 session, \d+ [KM]?i?B\.", shown), shown
    one.run("gander sessions prune --older-than 0s")
    shown = one.ended()
    one.keep("15-prune")
    assert "Deleted 1 session, " in shown, shown
    began = time.monotonic()
    while any(b"the-planted-word" in path.read_bytes() for path in (home.root / "data").rglob("*") if path.is_file()):
        assert time.monotonic() - began < 20, "the word is still on the disk"
        time.sleep(0.1)
    one.run("gander doctor | head -n 14")
    shown = one.ended()
    one.keep("15-disk-use")
    assert re.search(r"disk use +\d+ [KM]iB\n +sessions +\d+ [KM]?i?B", shown), shown


@step
def back_up_and_restore(home, _):
    home.gander_run("run", "remember me")
    one = home.terminal("one")
    one.run("gander backup ../all.backup")
    shown = one.ended()
    one.keep("19-backup")
    assert re.search(r"Backed up 1 session, 0 open questions to .*all\.backup \(\d+ KiB\)", shown), shown
    one.run("gander restore ../all.backup")
    shown = one.ended(1)
    one.keep("19-restore-refused")
    assert "gander server stop" in shown, shown
    one.run("gander --data ../other restore ../all.backup && gander --data ../other sessions list; gander --data ../other server stop")
    shown = one.ended()
    one.keep("19-restored")
    assert "Restored 1 session" in shown and "remember me" in shown, shown


MCP_SERVER = """
import json, os, socket, sys
if sys.argv[1] == "online":
    try:
        socket.create_connection(("127.0.0.1", int(sys.argv[2])), 2)
    except OSError:
        sys.exit("connect: Network is unreachable")
if sys.argv[1] == "broken":
    sys.exit("opening notes.db\\nno such database")
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "initialize":
        answer = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "notes", "version": "1"}}
    elif message.get("method") == "tools/list":
        answer = {"tools": [{"name": "add_note", "description": "Adds a note", "inputSchema": {"type": "object"}}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"""


@step
def an_added_server_is_tried(home, _):
    (home.work / "server.py").write_text(MCP_SERVER)
    one = home.terminal("one")
    one.run("gander extensions add notes -- python3 $PWD/server.py good")
    shown = one.ended()
    one.keep("05-added")
    assert "notes works, 1 tool:" in shown and "notes__add_note" in shown, shown
    one.run("gander extensions add broken -- python3 $PWD/server.py broken")
    shown = one.ended(1)
    one.keep("05-broken")
    assert "broken does not start: it exited during startup: no such database" in shown, shown
    assert "│ opening notes.db" in shown and "gander extensions remove broken" in shown, shown
    port = re.search(r"127.0.0.1:(\d+)", (home.root / ".config/gander/gander.toml").read_text()).group(1)
    one.run(f"gander extensions add online -- python3 $PWD/server.py online {port}")
    one.wait(r"online does not start without network access. Grant it from now on\? \[y/n\]")
    one.keep("05-network")
    one.type("y")
    shown = one.ended()
    assert "online works, 1 tool:" in shown, shown
    one.run("gander extensions show notes")
    shown = one.ended()
    one.keep("06-show")
    assert re.search(r"home +\S+/extensions/owner/notes \(", shown), shown
