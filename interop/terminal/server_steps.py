"""The server, its settings and its other clients, as a person meets them in the first hour."""

import base64
import http.client
import json
import os
import re
import signal
import socket
from urllib.parse import urlsplit

from steps import MCP_SERVER, step

DENY = '\n[[permissions.rules]]\ntool = "shell"\npattern = "touch *"\naction = "deny"\n'


def settings_of(home):
    return home.root / ".config" / "gander" / "gander.toml"


def first_session(home):
    return json.loads(home.gander_run("sessions", "list", "--json").stdout.splitlines()[0])["sessionId"]


def listening(terminal):
    return terminal.wait(r"listening on (http://\S+)").group(1)


@step
def edited_settings_count_at_once(home, _):
    one = home.terminal("one")
    one.run("gander run shell")
    one.wait(r"\] >$")
    # The rule is written while the question is open: the next decision of the same server knows it.
    settings_of(home).write_text(settings_of(home).read_text() + DENY)
    one.type("n")
    one.ended()
    one.run("gander run shell")
    shown = one.ended()
    one.keep("02-denied")
    assert "Run this command?" not in shown and "refused: a rule" in shown and not (home.work / "made.txt").exists(), shown
    settings_of(home).write_text(settings_of(home).read_text() + '\n[daemon]\nidle = "33m"\n')
    one.run("gander doctor | grep -A1 'daemon.idle'")
    shown = one.ended()
    one.keep("02-doctor-differs")
    assert re.search(r'the server uses "10m", this command finds "33m" +\(apply it with: gander server restart\)', shown), shown
    one.run("gander server restart && gander doctor | grep -c 'the server uses'")
    assert re.search(r"restarted: process \d+\n0\n", one.ended(1))


@step
def the_server_is_shown_stopped_and_restarted(home, _):
    one, two = home.terminal("one"), home.terminal("two")
    one.run("gander server status")
    assert "not running" in one.ended(1)
    two.run("gander run slow")
    two.wait("waiting for")
    one.run("gander server status")
    shown = one.ended()
    one.keep("03-status")
    assert re.search(r"running +process \d+, in the background", shown) and "sessions    1 running" in shown, shown
    one.run("gander server restart")
    assert "restarted: process" in one.ended()
    two.wait("reconnected")
    assert "a slow" in two.ended(patience=60)
    one.run("gander server logs -n 3")
    assert "background server started" in one.ended()
    one.run("gander server stop && gander server stop")
    shown = one.ended()
    one.keep("03-stopped")
    assert re.search(r"stopped the server \(process \d+\)\nno server was running", shown), shown
    one.run("gander doctor --rebuild")
    assert "Rebuilt the indexes of 1 session." in one.ended()


@step
def sub_sessions_stand_below_their_parent(home, _):
    one = home.terminal("one", columns=140)
    one.run("gander run delegate")
    one.wait(r"\[y/n/a/\?\] >$")
    one.type("y")
    one.ended()
    one.run("gander sessions list")
    assert "└" not in one.ended()
    one.run("gander sessions list --all")
    shown = one.ended()
    one.keep("04-sub-sessions")
    assert re.search(r"(?m)^[0-9a-f-]{8,} +idle +\S+ \S+ +└ ", shown), shown


@step
def a_first_turn_waits_for_its_servers(home, _):
    slow = MCP_SERVER.replace("for line in sys.stdin:", "import time\ntime.sleep(3)\nfor line in sys.stdin:")
    (home.work / "server.py").write_text(slow)
    one = home.terminal("one")
    one.run("gander extensions add --no-start notes -- python3 $PWD/server.py good")
    one.ended()
    one.run("gander run hello")
    one.wait(r"! Waiting up to 10 s for MCP servers to start: notes")
    one.keep("05-waits-for-servers")
    assert "you said: hello" in one.ended()
    one.run("gander extensions off notes && gander extensions list")
    shown = one.ended()
    one.keep("05-extensions")
    assert re.search(r"(?m)^NAME +STATE +TOOLS +RUNS", shown) and re.search(r"(?m)^notes +off +python3", shown), shown


@step
def a_recipe_prints_its_result_alone(home, _):
    (home.work / "count.yaml").write_text(
        'version: "1.0.0"\ntitle: Count\ndescription: counts lines\nprompt: "result please"\n'
        "response:\n  json_schema: {type: object, properties: {lines: {type: integer}}, required: [lines]}\n"
    )
    done = home.gander_run("run", "--recipe", "count.yaml")
    assert done.returncode == 0 and json.loads(done.stdout) == {"lines": 2}, done
    one = home.terminal("one")
    one.run("gander run --recipe count.yaml | jq -c . 2>/dev/null || gander run --recipe count.yaml 2>/dev/null")
    shown = one.ended()
    one.keep("13-recipe-result")
    assert re.search(r'(?m)^\{"lines": ?2\}', shown), shown
    missing = home.gander_run("run", "--recipe", "none.yaml")
    assert missing.returncode != 0 and "no such recipe: none.yaml" in missing.stderr, missing


@step
def tab_completes_what_the_server_knows(home, _):
    home.gander_run("run", "hello")
    session = first_session(home)
    one = home.terminal("one")
    one.type("source <(gander completions bash)")
    one.type("clear")
    one.type("gander chat --ses", enter=False)
    one.press("Tab")
    one.wait(r"gander chat --session $|gander chat --session\s*$")
    one.type("", enter=False)
    one.press("Tab")
    one.wait(re.escape(f"gander chat --session {session[:8]}"))
    one.press("C-u")
    one.type("gander run --mode plann", enter=False)
    one.press("Tab")
    one.wait(r"gander run --mode planner")
    one.press("C-u")
    one.type("gander run --model mock/", enter=False)
    one.press("Tab")
    one.wait(r"gander run --model mock/mock")
    one.keep("14-completion")
    one.press("C-u")


@step
def serve_beside_a_running_server(home, _):
    home.gander_run("run", "hello")
    one = home.terminal("one")
    one.run("gander serve --listen 127.0.0.1:0 --open a2a")
    shown = one.ended(2)
    one.keep("16-serve-refused")
    assert "--open would be ignored" in shown and "gander server stop && gander serve" in shown, shown
    assert "listening on" not in shown, shown
    one.run("gander serve --listen 127.0.0.1:0")
    listening(one)
    one.wait("added this address to the running server")
    one.keep("16-serve-joined")
    two = home.terminal("two")
    base = listening(one)
    two.run(f"gander --data ../other serve --listen {base.removeprefix('http://')}")
    shown = two.ended(1)
    two.keep("16-busy-port")
    assert "cannot listen, another program uses this address" in shown, shown
    one.press("C-c")
    one.ended()


@step
def a_link_opens_the_page_once(home, _):
    one = home.terminal("one")
    one.run("gander open --print --listen 127.0.0.1:0")
    link = re.search(r"(http://127\.0\.0\.1:\d+/\S+)", one.ended()).group(1)
    one.keep("17-open")
    at = urlsplit(link)

    def send(method, path, body=None):
        """As the page itself sends it."""
        connection = http.client.HTTPConnection(at.hostname, at.port, timeout=30)
        headers = {"content-type": "application/json", "origin": f"{at.scheme}://{at.netloc}"}
        connection.request(method, path, json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        return response.status, response.getheader("set-cookie") or "", response.read().decode(errors="replace")

    status, _, page = send("GET", "/")
    assert status == 200 and "<title>" in page, (status, page[:300])
    ticket = re.search(r"ticket=([^&]+)", at.fragment or at.query).group(1)
    status, cookie, _ = send("POST", "/gander/login", {"ticket": ticket})
    assert status == 200 and "HttpOnly" in cookie and "SameSite=Strict" in cookie, (status, cookie)
    status, cookie, _ = send("POST", "/gander/login", {"ticket": ticket})
    assert status == 401 and not cookie, "the link works once"
    one.run("gander open --revoke")
    assert "signed out: 1 browser" in one.ended()


@step
def a_hundred_and_twenty_sockets_of_one_person(home, _):
    one = home.terminal("one")
    one.run("gander serve --listen 127.0.0.1:0")
    at = urlsplit(listening(one))
    token = home.gander_run("token").stdout.strip()
    sockets = []
    for _ in range(120):
        connection = socket.create_connection((at.hostname, at.port), 30)
        key = base64.b64encode(os.urandom(16)).decode()
        connection.sendall(
            f"GET /acp HTTP/1.1\r\nHost: {at.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {key}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        )
        sockets.append(connection)
    answers = {connection.recv(64).split(b"\r\n")[0] for connection in sockets}
    assert answers == {b"HTTP/1.1 101 Switching Protocols"}, answers
    for connection in sockets:
        connection.close()
    one.press("C-c")
    one.ended()


@step
def schedules_run_in_the_background(home, _):
    (home.work / "news.yaml").write_text('version: "1.0.0"\ntitle: News\ndescription: says hello\nprompt: "hello from the clock"\n')
    one = home.terminal("one", columns=120)
    one.run('gander schedule add news --cron "0 7 * * 1-5" --zone Europe/Berlin --recipe news.yaml')
    assert re.search(r"Added news\. Next run: \d{4}-\d\d-\d\d 07:00", one.ended())
    one.run("gander schedule list")
    shown = one.ended()
    one.keep("03-schedules")
    assert re.search(r"(?m)^NAME +CRON +NEXT RUN +STATE +RECIPE\nnews +0 7 \* \* 1-5 Europe/Berlin +\S+ 07:00 +waiting +\S+news.yaml", shown), shown
    one.run("gander run --session $(gander schedule run news)")
    one.ended()
    one.run("gander sessions show $(gander schedule sessions news --json | sed 's/.*\"id\":\"\\([^\"]*\\)\".*/\\1/' | head -n 1)")
    shown = one.ended()
    assert "you said: hello from the clock" in shown, shown
    one.run("gander schedule pause news && gander schedule show news && gander schedule remove news && gander schedule list")
    shown = one.ended()
    one.keep("03-schedule-show")
    assert "Paused news." in shown and re.search(r"(?m)^state +paused", shown) and "No schedules yet." in shown, shown


@step
def a_strangers_hour(home, _):
    """Without a step that needs a guess: an edit of several files with tests, two questions at once, an MCP server, a
    schedule, a second terminal, and a server that is killed."""
    (home.work / "server.py").write_text(MCP_SERVER)
    one, two = home.terminal("one"), home.terminal("two")
    one.run("gander run project")
    one.wait(r"\? Allow edit of calc.py\?")
    one.type("y")
    one.wait(r"\? Allow edit of test_calc.py\?")
    one.type("y")
    one.wait(r"\? Run this command\?\n\s+\$ python3 -m unittest -q")
    two.run("gander watch")
    two.wait(r"\$ python3 -m unittest -q")
    two.type("y")
    shown = one.ended()
    one.keep("99-stranger-project")
    assert "answered by another client" in shown and "│ OK" in shown and "the tests pass" in shown, shown
    two.press("C-c")
    two.ended()
    one.run("gander extensions add notes -- python3 $PWD/server.py good")
    assert "notes works, 1 tool:" in one.ended()
    one.run("gander run slow")
    one.wait("waiting for")
    two.run(f"gander run --session {first_session(home)[:18]}")
    two.wait("› slow")
    for pid in home.server_pids():
        os.kill(pid, signal.SIGKILL)
    for terminal in (one, two):
        terminal.wait("reconnected")
        assert "a slow" in terminal.ended(patience=60)
    one.keep("99-stranger-killed")
