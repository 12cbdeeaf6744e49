"""gander beside an issuer of OpenID Connect that others wrote: tokens of every kind, rotated keys, device login, refresh.

Usage: drive.py GANDER
"""

import contextlib
import html.parser
import http.cookiejar
import json
import os
import pathlib
import pty
import re
import select
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

GANDER = sys.argv[1]
AUDIENCE = "https://agents.example"
PATIENCE = 60


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Issuer:
    """The issuer's process. Its keys are new whenever it is started."""

    def __init__(self):
        self.port, self.process, self.starts = free_port(), None, 0
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        self.stop()
        self.starts += 1
        command = ["node", "issuer.mjs", str(self.port), f"keys{self.starts}"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if self.process.stdout.readline().strip() != self.url:
            raise RuntimeError("the issuer does not start")

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(PATIENCE)
            self.process = None

    def token(self, client, resource=AUDIENCE):
        fields = {"grant_type": "client_credentials", "client_id": client, "client_secret": "a-secret-of-no-worth"}
        if resource:
            fields |= {"resource": resource, "scope": "gander:prompt"}
        body = urllib.parse.urlencode(fields).encode()
        with urllib.request.urlopen(f"{self.url}/token", body, timeout=PATIENCE) as answer:
            return json.load(answer)["access_token"]


class Server:
    """gander with this issuer in its settings file."""

    def __init__(self, folder, issuer):
        self.home = folder
        self.config = folder / "gander.toml"
        self.config.write_text(
            f'[auth.oidc]\nissuer = "{issuer.url}"\naudience = "{AUDIENCE}"\nclock_skew = "0s"\nclient_id = "gander-cli"\n'
            'login_scopes = ["openid", "offline_access", "gander:prompt"]\n'
            f'[server]\nroots = ["{folder / "elsewhere"}"]\n'
        )
        self.environment = environment(folder) | {"GANDER_CONFIG": str(self.config)}
        command = [GANDER, "serve", "--listen", "127.0.0.1:0"]
        log = open(folder / "serve.log", "w")
        self.process = subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True)
        found = None
        while not found:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"gander does not start: {(folder / 'serve.log').read_text()}")
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
        self.url = found[0]

    def status(self, token):
        request = urllib.request.Request(f"{self.url}/gander/status", headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return 200, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def stop(self):
        self.process.terminate()
        self.process.wait(PATIENCE)


def environment(folder):
    return {"HOME": str(folder), "PATH": os.environ["PATH"], "GANDER_DATA": str(folder / "data"), "GANDER_MODEL": "demo/demo", "TERM": "xterm"}


class Forms(html.parser.HTMLParser):
    """The first form of a page: where it goes, and what it sends unless somebody fills it in."""

    def __init__(self, page):
        super().__init__()
        self.action, self.fields = None, {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "form" and self.action is None:
            self.action = attributes.get("action", "")
        if tag == "input" and attributes.get("name"):
            self.fields[attributes["name"]] = attributes.get("value") or ""


def enter_code(address):
    """What a person does in a browser: opens the address, confirms the code, logs in as ada and consents."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    answer = browser.open(address, timeout=PATIENCE)
    for _ in range(6):
        page, at = answer.read().decode(), answer.geturl()
        form = Forms(page)
        if form.action is None:
            return page
        filled = form.fields | {name: "ada" for name in ("login", "password") if name in form.fields}
        if "user_code" in filled or "xsrf" in filled:
            filled["confirm"] = "yes"
        body = urllib.parse.urlencode(filled).encode()
        answer = browser.open(urllib.parse.urljoin(at, form.action), body, timeout=PATIENCE)
    raise RuntimeError(f"the login does not end: {page[:300]}")


def read_until(terminal, wanted):
    shown, until = "", time.monotonic() + PATIENCE
    while wanted not in shown:
        if time.monotonic() > until:
            raise RuntimeError(f"{wanted!r} is not shown: {shown[-500:]!r}")
        if select.select([terminal], [], [], 1)[0]:
            try:
                shown += os.read(terminal, 4096).decode(errors="replace")
            except OSError:
                raise RuntimeError(f"it ended before it showed {wanted!r}: {shown[-500:]!r}") from None
    return shown


def expect(found, wanted):
    if found != wanted:
        raise RuntimeError(f"{found!r} instead of {wanted!r}")


def refused(server, token, reason):
    status, body = server.status(token)
    message = body["error"]["message"]
    if status != 401 or reason not in message:
        raise RuntimeError(f"{status} {message!r} instead of 401 {reason!r}")


def signed_tokens_count(issuer, server, _):
    for client in ("service", "curve"):
        status, who = server.status(issuer.token(client))
        expect((status, who["principal"], who["scopes"]), (200, f"oidc:{client}", ["read", "prompt"]))


def another_audience_is_refused(issuer, server, _):
    refused(server, issuer.token("service", "https://other.example"), "meant for another audience")


def an_opaque_token_is_refused(issuer, server, _):
    refused(server, issuer.token("service", None), "invalid token")


def an_expired_token_is_refused(issuer, server, _):
    token = issuer.token("short")
    until = time.monotonic() + PATIENCE
    while server.status(token)[0] == 200 and time.monotonic() < until:
        time.sleep(0.2)
    refused(server, token, "it has expired")


def a_changed_token_is_refused(issuer, server, _):
    head, body, signature = issuer.token("service").split(".")
    refused(server, f"{head}.{body}.{signature[:-4]}AAAA", "signature is wrong")


def a_device_login_attaches_and_is_refreshed(issuer, server, folder):
    home = folder / "elsewhere"
    home.mkdir()
    login = subprocess.Popen([GANDER, "login", server.url, "--audience", AUDIENCE], env=environment(home), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    shown = ""
    while "or open " not in shown:
        line = login.stdout.readline()
        if not line:
            raise RuntimeError(f"gander login ended: {login.stderr.read()}")
        shown += line
    page = enter_code(re.search(r"or open (\S+)", shown)[1])
    if login.wait(PATIENCE) != 0:
        raise RuntimeError(f"gander login failed: {login.stderr.read()}; the page said: {page[-300:]}")
    file = home / "data/logins.json"
    expect(file.stat().st_mode & 0o777, 0o600)
    before = json.loads(file.read_text())[server.url]["access_token"]
    expect(server.status(before)[1]["principal"], "oidc:ada")
    ours, theirs = pty.openpty()
    chat = subprocess.Popen([GANDER, "chat", "--plain", "--attach", server.url], env=environment(home), cwd=home, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    try:
        read_until(ours, "/help")
        os.write(ours, b"text\r")
        read_until(ours, "scripted")
    finally:
        chat.terminate()
        chat.wait(PATIENCE)
        os.close(ours)
    after = json.loads(file.read_text())[server.url]["access_token"]
    if before == after:
        raise RuntimeError("the token was not refreshed")
    expect(server.status(after)[1]["principal"], "oidc:ada")


def doctor_shows_the_issuer(issuer, server, _):
    shown = subprocess.run([GANDER, "doctor"], env=server.environment, capture_output=True, text=True, timeout=PATIENCE).stdout
    for wanted in (issuer.url, AUDIENCE, "signing keys                 2"):
        if wanted not in shown:
            raise RuntimeError(f"{wanted!r} is not in {shown[-1500:]!r}")


def a_rotated_key_is_found_and_the_old_one_ends(issuer, server, _):
    old = issuer.token("service")
    expect(server.status(old)[0], 200)
    issuer.start()
    status, body = server.status(issuer.token("service"))
    expect((status, body.get("principal")), (200, "oidc:service"))
    refused(server, old, "a key that the issuer does not publish")


CHECKS = [
    signed_tokens_count,
    another_audience_is_refused,
    an_opaque_token_is_refused,
    an_expired_token_is_refused,
    a_changed_token_is_refused,
    a_device_login_attaches_and_is_refreshed,
    doctor_shows_the_issuer,
    a_rotated_key_is_found_and_the_old_one_ends,
]


def main():
    issuer = Issuer()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        stack.callback(issuer.stop)
        issuer.start()
        server = Server(pathlib.Path(folder), issuer)
        stack.callback(server.stop)
        for check in CHECKS:
            try:
                check(issuer, server, pathlib.Path(folder))
                print("pass", check.__name__, flush=True)
            except Exception as error:
                print("fail", check.__name__, " ".join(str(error).split()), flush=True)


main()
